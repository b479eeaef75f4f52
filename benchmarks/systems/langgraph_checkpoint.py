"""langgraph-checkpoint: the SQLite and PostgreSQL savers, with the list of messages as the state of a graph."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any, ClassVar

from langchain_core.messages import HumanMessage
from langgraph.checkpoint.base import create_checkpoint, empty_checkpoint
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver
from psycopg import Connection
from psycopg.rows import dict_row

from benchmarks import postgres
from benchmarks.system import System


class LanggraphSqlite(System):
    """``put`` alone, which is the least that a step of a graph costs."""

    name = "langgraph SqliteSaver"
    packages: ClassVar[tuple[str, ...]] = ("langgraph-checkpoint-sqlite", "langgraph-checkpoint")
    most_messages = 10_000

    def open(self) -> None:
        self.connection: Any = sqlite3.connect(self.folder / "checkpoints.db", check_same_thread=False)
        self.saver: Any = SqliteSaver(self.connection)
        self.saver.setup()
        self.states: dict[str, tuple[Any, dict[str, Any]]] = {}

    def close(self) -> None:
        self.connection.close()

    def state(self, chat: str) -> tuple[Any, dict[str, Any]]:
        """The config and the checkpoint that a running graph holds in memory."""
        if chat not in self.states:
            config: Any = {"configurable": {"thread_id": chat, "checkpoint_ns": ""}}
            found = self.saver.get_tuple(config)
            checkpoint: Any = found.checkpoint if found else empty_checkpoint()
            checkpoint["channel_values"].setdefault("messages", [])
            self.states[chat] = (found.config if found else config), checkpoint
        return self.states[chat]

    def fill(self, chat: str, messages: Sequence[str]) -> None:
        config, before = self.state(chat)
        values = [*before["channel_values"]["messages"], *(HumanMessage(message) for message in messages)]
        version = self.saver.get_next_version(before["channel_versions"].get("messages"), None)
        after: Any = create_checkpoint(before, None, len(values))
        after["channel_values"] = {"messages": values}
        after["channel_versions"] = {"messages": version}
        config = self.saver.put(config, after, {"source": "loop", "step": len(values)}, {"messages": version})
        self.states[chat] = config, after

    def append(self, chat: str, message: str) -> None:
        self.fill(chat, [message])

    def read(self, chat: str) -> Any:
        config = {"configurable": {"thread_id": chat, "checkpoint_ns": ""}}
        return self.saver.get_tuple(config).checkpoint["channel_values"]["messages"]

    def last(self, chat: str, count: int) -> Any:
        return self.read(chat)[-count:]

    def list_chats(self, count: int) -> Any:
        """The threads, as far as there is a way: the newest checkpoints of all of them."""
        return [found.config for found in self.saver.list(None, limit=count)]


class LanggraphPostgres(LanggraphSqlite):
    name = "langgraph PostgresSaver"
    packages = ("langgraph-checkpoint-postgres",)
    is_remote = True

    def open(self) -> None:
        self.url = postgres.database(self.folder)
        self.connection = Connection.connect(self.url, autocommit=True, prepare_threshold=0, row_factory=dict_row)
        self.saver = PostgresSaver(self.connection)
        self.saver.setup()
        self.states = {}

    def bytes_on_disk(self) -> int:
        return postgres.database_bytes(self.url)


SYSTEMS = [LanggraphSqlite, LanggraphPostgres]
