"""The sessions of openai-agents on sessiontree."""

from __future__ import annotations

from typing import Any

import sessiontree as st
from benchmarks.systems.openai_agents import OpenaiSqlite
from sessiontree.adapters.openai_agents import SessionTreeSession


class AdaptedOpenaiAgents(OpenaiSqlite):
    name = "openai-agents on sessiontree"
    family = "adapter"

    def open(self) -> None:
        super().open()
        self.journal = st.open_async(f"sqlite:///{self.folder}/journal.db")

    def session(self, chat: str) -> Any:
        return SessionTreeSession(self.journal, chat)

    async def close(self) -> None:
        await self.journal.close()

    async def fork(self, chat: str) -> Any:
        return await self.session(chat).fork()

    async def list_chats(self, count: int) -> Any:
        return await self.journal.list_threads(limit=count)


SYSTEMS = [AdaptedOpenaiAgents]
