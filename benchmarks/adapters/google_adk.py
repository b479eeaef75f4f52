"""Sessions of Google ADK beside ``SqliteSessionService`` and, on PostgreSQL, ``DatabaseSessionService``, which needs sqlalchemy."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from google.adk.events import Event
from google.adk.sessions import BaseSessionService, Session
from google.adk.sessions.base_session_service import GetSessionConfig
from google.adk.sessions.sqlite_session_service import SqliteSessionService
from google.genai.types import Content, Part

from benchmarks.adapters.calls import LAST, TEXT, Call, is_answer, new_database
from sessiontree.adapters.google_adk import SessionTreeSessionService


class Conversation:
    """A session with events, in a service."""

    def __init__(self, service: BaseSessionService) -> None:
        self.service = service
        self.session: Session

    async def write(self, messages: int) -> None:
        """Create the session with so many events."""
        self.session = await self.service.create_session(app_name="app", user_id="ann", session_id="chat")
        for _ in range(messages):
            await self.append()

    async def append(self) -> None:
        role = "model" if is_answer(len(self.session.events)) else "user"
        event = Event(author=role, invocation_id="run", content=Content(role=role, parts=[Part(text=TEXT)]))
        await self.service.append_event(self.session, event)

    async def read(self, last: int | None = None) -> None:
        config = GetSessionConfig(num_recent_events=last)
        found = await self.service.get_session(app_name="app", user_id="ann", session_id="chat", config=config)
        assert found is not None
        assert len(found.events) == (last or len(self.session.events))

    async def list_sessions(self) -> None:
        assert (await self.service.list_sessions(app_name="app", user_id="ann")).sessions


def _calls(run: Callable[[Any], object], services: tuple[BaseSessionService, ...], messages: int) -> list[Call]:
    ours, theirs = map(Conversation, services)
    sides = (ours, theirs)
    for side in sides:
        run(side.write(messages))
    return [
        Call.on(sides, "append", lambda side: run(side.append())),
        Call.on(sides, "read all", lambda side: run(side.read())),
        Call.on(sides, f"last {LAST}", lambda side: run(side.read(LAST))),
        Call.on(sides, "list", lambda side: run(side.list_sessions())),
    ]


@contextmanager
def _beside_sqlite(folder: Path, messages: int) -> Iterator[list[Call]]:
    with asyncio.Runner() as runner:
        run = runner.get_loop().run_until_complete
        ours = SessionTreeSessionService(f"sqlite:///{folder}/ours.db")
        yield _calls(run, (ours, SqliteSessionService(str(folder / "theirs.db"))), messages)
        run(ours.close())


@contextmanager
def _beside_postgres(folder: Path, messages: int) -> Iterator[list[Call]]:
    from google.adk.sessions import DatabaseSessionService  # noqa: PLC0415  needs a package of its own

    with asyncio.Runner() as runner:
        run = runner.get_loop().run_until_complete
        ours = SessionTreeSessionService(new_database())
        theirs = DatabaseSessionService(new_database().replace("postgresql:", "postgresql+psycopg:"))
        yield _calls(run, (ours, theirs), messages)
        run(ours.close())
        run(theirs.close())


KINDS = {"SQLite": _beside_sqlite, "PostgreSQL": _beside_postgres}
