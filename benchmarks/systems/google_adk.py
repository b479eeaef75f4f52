"""google-adk: SqliteSessionService."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from google.adk.events import Event
from google.adk.sessions.base_session_service import GetSessionConfig
from google.adk.sessions.sqlite_session_service import SqliteSessionService
from google.genai.types import Content, Part

from benchmarks.system import System

WHO = {"app_name": "bench", "user_id": "user"}


class AdkSqlite(System):
    name = "google-adk SqliteSessionService"
    packages = ("google-adk",)
    most_messages = 10_000
    most_processes = 8

    def open(self) -> None:
        self.service = SqliteSessionService(str(self.folder / "adk.db"))
        self.sessions: dict[str, Any] = {}

    async def session(self, chat: str) -> Any:
        if chat not in self.sessions:
            found = await self.service.get_session(**WHO, session_id=chat)
            self.sessions[chat] = found or await self.service.create_session(**WHO, session_id=chat)
        return self.sessions[chat]

    async def fill(self, chat: str, messages: Sequence[str]) -> None:
        for message in messages:
            await self.append(chat, message)

    async def append(self, chat: str, message: str) -> None:
        session = await self.session(chat)
        session.events.clear()
        event = Event(author="user", content=Content(role="user", parts=[Part(text=message)]))
        await self.service.append_event(session, event)

    async def read(self, chat: str) -> Any:
        return await self.service.get_session(**WHO, session_id=chat)

    async def last(self, chat: str, count: int) -> Any:
        config = GetSessionConfig(num_recent_events=count)
        return await self.service.get_session(**WHO, session_id=chat, config=config)

    async def list_chats(self, count: int) -> Any:
        """All of them: there are no pages."""
        return await self.service.list_sessions(**WHO)


SYSTEMS = [AdkSqlite]
