"""openai-agents: SQLiteSession and AdvancedSQLiteSession."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agents import SQLiteSession
from agents.extensions.memory import AdvancedSQLiteSession

from benchmarks.system import System


class OpenaiSqlite(System):
    name = "openai-agents SQLiteSession"
    packages = ("openai-agents",)
    most_messages = 100_000
    most_processes = 8

    def open(self) -> None:
        self.sessions: dict[str, Any] = {}

    def session(self, chat: str) -> Any:
        if chat not in self.sessions:
            self.sessions[chat] = SQLiteSession(chat, self.folder / "sessions.db")
        return self.sessions[chat]

    async def close(self) -> None:
        for session in self.sessions.values():
            session.close()

    async def fill(self, chat: str, messages: Sequence[str]) -> None:
        await self.session(chat).add_items([{"role": "user", "content": message} for message in messages])

    async def append(self, chat: str, message: str) -> None:
        await self.session(chat).add_items([{"role": "user", "content": message}])

    async def last(self, chat: str, count: int) -> Any:
        return await self.session(chat).get_items(limit=count)

    async def read(self, chat: str) -> Any:
        return await self.session(chat).get_items()


class OpenaiAdvanced(OpenaiSqlite):
    name = "openai-agents AdvancedSQLiteSession"
    most_messages = 10_000
    forks_copy = True

    def session(self, chat: str) -> Any:
        if chat not in self.sessions:
            self.sessions[chat] = AdvancedSQLiteSession(
                session_id=chat, db_path=self.folder / "sessions.db", create_tables=True
            )
        return self.sessions[chat]

    async def fork(self, chat: str) -> Any:
        session = self.session(chat)
        count = self.__dict__.setdefault("turns", len(await session.get_items()))
        await session.create_branch_from_turn(count // 2)
        await session.switch_to_branch("main")


SYSTEMS = [OpenaiSqlite, OpenaiAdvanced]
