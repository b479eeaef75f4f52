"""Sessions of openai-agents beside ``SQLiteSession`` and, on PostgreSQL, ``SQLAlchemySession``, which needs sqlalchemy."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from agents import SQLiteSession
from agents.memory import SessionABC

from benchmarks.adapters.calls import LAST, TEXT, Call, is_answer, new_database
from sessiontree.adapters.openai_agents import SessionTreeSession


def _calls(run: Callable[[Any], object], sides: tuple[SessionABC, SessionABC], messages: int) -> list[Call]:
    items: list[Any] = [
        {"role": "assistant" if is_answer(number) else "user", "content": TEXT} for number in range(messages)
    ]
    for side in sides:
        run(side.add_items(items))
    return [
        Call.on(sides, "append", lambda side: run(side.add_items(items[:1]))),
        Call.on(sides, "read all", lambda side: run(side.get_items())),
        Call.on(sides, f"last {LAST}", lambda side: run(side.get_items(LAST))),
    ]


@contextmanager
def _beside_sqlite(folder: Path, messages: int) -> Iterator[list[Call]]:
    with asyncio.Runner() as runner, closing(SQLiteSession("chat", folder / "theirs.db")) as theirs:
        run = runner.get_loop().run_until_complete
        ours = SessionTreeSession(f"sqlite:///{folder}/ours.db", "chat")
        yield _calls(run, (ours, theirs), messages)
        run(ours.close())


@contextmanager
def _beside_postgres(folder: Path, messages: int) -> Iterator[list[Call]]:
    from agents.extensions.memory import SQLAlchemySession  # noqa: PLC0415  needs a package of its own

    with asyncio.Runner() as runner:
        run = runner.get_loop().run_until_complete
        ours = SessionTreeSession(new_database(), "chat")
        url = new_database().replace("postgresql:", "postgresql+psycopg:")
        theirs = SQLAlchemySession.from_url("chat", url=url, create_tables=True)
        yield _calls(run, (ours, theirs), messages)
        run(ours.close())
        run(theirs.engine.dispose())


KINDS = {"SQLite": _beside_sqlite, "PostgreSQL": _beside_postgres}
