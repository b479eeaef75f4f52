"""Sessions of openai-agents beside ``SQLiteSession``."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from agents import SQLiteSession
from agents.memory import SessionABC

from benchmarks.adapters.calls import LAST, TEXT, Call, is_answer
from sessiontree.adapters.openai_agents import SessionTreeSession


@contextmanager
def _beside_sqlite(folder: Path, messages: int) -> Iterator[list[Call]]:
    items: list[Any] = [
        {"role": "assistant" if is_answer(number) else "user", "content": TEXT} for number in range(messages)
    ]
    with asyncio.Runner() as runner, closing(SQLiteSession("chat", folder / "theirs.db")) as theirs:
        run = runner.get_loop().run_until_complete
        ours = SessionTreeSession(f"sqlite:///{folder}/ours.db", "chat")
        sides: tuple[SessionABC, SessionABC] = (ours, theirs)
        for side in sides:
            run(side.add_items(items))
        yield [
            Call.on(sides, "append", lambda side: run(side.add_items(items[:1]))),
            Call.on(sides, "read all", lambda side: run(side.get_items())),
            Call.on(sides, f"last {LAST}", lambda side: run(side.get_items(LAST))),
        ]
        run(ours.close())


KINDS = {"SQLite": _beside_sqlite}
