"""The conversation store of pydantic-ai on sessiontree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic_ai.conversation import Conversation

from benchmarks.systems.pydantic_ai_store import PydanticMemory
from sessiontree.adapters.pydantic_ai import SessionTreeConversationStore


class AdaptedPydanticAi(PydanticMemory):
    name = "pydantic-ai on sessiontree"
    family = "adapter"
    is_in_memory = False
    store: Any

    def open(self) -> None:
        super().open()
        self.store = SessionTreeConversationStore(f"sqlite:///{self.folder}/journal.db")

    async def close(self) -> None:
        await self.store.close()

    async def fill(self, chat: str, messages: Sequence[str]) -> None:
        await self._load(chat)
        await super().fill(chat, messages)

    async def middle(self, chat: str) -> int:
        await self._load(chat)
        return await super().middle(chat)

    async def _load(self, chat: str) -> None:
        """Load what another process has filled."""
        if chat not in self.chats:
            self.chats[chat] = await self.store.load(chat) or Conversation(conversation_id=chat)


SYSTEMS = [AdaptedPydanticAi]
