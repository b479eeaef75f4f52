"""pydantic-ai: InMemoryConversationStore, the only store that it ships."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic_ai.conversation import Conversation
from pydantic_ai.conversation_store import InMemoryConversationStore
from pydantic_ai.messages import ModelRequest, UserPromptPart

from benchmarks.system import System


class PydanticMemory(System):
    name = "pydantic-ai InMemoryConversationStore"
    packages = ("pydantic-ai-slim",)
    most_messages = 10_000
    is_in_memory = True

    def open(self) -> None:
        self.store = InMemoryConversationStore()
        self.chats: dict[str, Conversation] = {}

    async def fill(self, chat: str, messages: Sequence[str]) -> None:
        conversation = self.chats.setdefault(chat, Conversation(conversation_id=chat))
        conversation.messages.extend(ModelRequest(parts=[UserPromptPart(content=text)]) for text in messages)
        await self.store.save(conversation)

    async def append(self, chat: str, message: str) -> None:
        await self.fill(chat, [message])

    async def read(self, chat: str) -> Any:
        return await self.store.load(chat)

    async def last(self, chat: str, count: int) -> Any:
        return await self.store.load(chat, limit=count)

    async def fork(self, chat: str) -> Any:
        return await self.store.fork(chat, at=await self.middle(chat))

    async def middle(self, chat: str) -> int:
        """The number of messages before the middle."""
        return len(self.chats[chat].messages) // 2

    async def list_chats(self, count: int) -> Any:
        return await self.store.list_conversations(limit=count)


SYSTEMS = [PydanticMemory]
