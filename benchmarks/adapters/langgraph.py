"""Checkpoints of LangGraph beside ``SqliteSaver`` and ``PostgresSaver``."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.base import BaseCheckpointSaver, empty_checkpoint
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver

from benchmarks.adapters.calls import TEXT, Call, is_answer, new_database
from sessiontree.adapters.langgraph import SessionTreeSaver


class Conversation:
    """A thread of a graph with one list of messages, written through a saver."""

    def __init__(self, saver: BaseCheckpointSaver[str], messages: int) -> None:
        self.saver = saver
        self.messages: list[Any] = []
        self._thread: Any = {"configurable": {"thread_id": "chat", "checkpoint_ns": ""}}
        self.config: Any = self._thread
        self.version: str | None = None
        self.forks = 0
        self._put(messages - 25)
        for _ in range(25):
            self._put(1)

    def _put(self, count: int) -> None:
        first = len(self.messages)
        new = [
            (AIMessage if is_answer(number) else HumanMessage)(TEXT, id=f"m{number}")
            for number in range(first, first + count)
        ]
        self.messages = [*self.messages, *new]
        self.version = self.saver.get_next_version(self.version, None)
        checkpoint: Any = {**empty_checkpoint(), "channel_values": {"messages": self.messages}}
        checkpoint["channel_versions"] = {"messages": self.version}
        self.config = self.saver.put(self.config, checkpoint, {"step": first}, {"messages": self.version})

    def append(self) -> None:
        self._put(1)

    def read_all(self) -> None:
        found = self.saver.get_tuple(self._thread)
        assert found is not None
        assert len(found.checkpoint["channel_values"]["messages"]) == len(self.messages)

    def list_five(self) -> None:
        assert len(list(self.saver.list(self._thread, limit=5))) == 5

    def fork(self) -> None:
        """A new thread that begins with this one; LangGraph's savers have to write the state again."""
        self.forks += 1
        name = f"fork {self.forks}"
        if isinstance(self.saver, SessionTreeSaver):
            self.saver.fork("chat", name)
            return
        found = self.saver.get_tuple(self._thread)
        assert found is not None
        target: Any = {"configurable": {"thread_id": name, "checkpoint_ns": ""}}
        versions: Any = found.checkpoint["channel_versions"]
        self.saver.put(target, found.checkpoint, found.metadata, versions)


def _calls(ours: SessionTreeSaver, theirs: BaseCheckpointSaver[str], messages: int) -> list[Call]:
    sides = (Conversation(ours, messages), Conversation(theirs, messages))
    return [
        Call.on(sides, "append", Conversation.append),
        Call.on(sides, "read all", Conversation.read_all),
        Call.on(sides, "list 5", Conversation.list_five),
        Call.on(sides, "fork", Conversation.fork),
    ]


@contextmanager
def _beside_sqlite(folder: Path, messages: int) -> Iterator[list[Call]]:
    with (
        SessionTreeSaver(f"sqlite:///{folder}/ours.db") as ours,
        closing(sqlite3.connect(folder / "theirs.db", check_same_thread=False)) as connection,
    ):
        connection.execute("PRAGMA synchronous = FULL")  # both survive a power loss
        yield _calls(ours, SqliteSaver(connection), messages)


@contextmanager
def _beside_postgres(folder: Path, messages: int) -> Iterator[list[Call]]:
    with (
        SessionTreeSaver(new_database()) as ours,
        PostgresSaver.from_conn_string(new_database()) as theirs,
    ):
        theirs.setup()
        yield _calls(ours, theirs, messages)


KINDS = {"SQLite": _beside_sqlite, "PostgreSQL": _beside_postgres}
