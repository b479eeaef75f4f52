"""Histories of Agent Framework beside ``FileHistoryProvider``, which does not sync."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from agent_framework import FileHistoryProvider, HistoryProvider, Message

from benchmarks.adapters.calls import TEXT, Call, is_answer
from sessiontree.adapters.agent_framework import SessionTreeHistoryProvider


@contextmanager
def _beside_files(folder: Path, messages: int) -> Iterator[list[Call]]:
    numbers = count()

    def message() -> Message:
        number = next(numbers)  # in its text: the provider leaves out messages that it has
        return Message("assistant" if is_answer(number) else "user", [f"{TEXT}{number}"])

    with asyncio.Runner() as runner:
        run = runner.get_loop().run_until_complete
        ours = SessionTreeHistoryProvider(f"sqlite:///{folder}/ours.db")
        sides: tuple[HistoryProvider, HistoryProvider] = (ours, FileHistoryProvider(folder / "theirs"))
        said = [message() for _ in range(messages)]
        for side in sides:
            run(side.save_messages("chat", said))
        yield [
            Call.on(sides, "read all", lambda side: run(side.get_messages("chat"))),
            Call.on(sides, "append", lambda side: run(side.save_messages("chat", [message()]))),
        ]
        run(ours.close())


KINDS = {"files": _beside_files}
