"""llm: LogStore."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlite_utils
from llm.logs import LogStore
from llm.parts import Message, TextPart

from benchmarks.system import System


class LlmLogStore(System):
    name = "llm LogStore"
    packages = ("llm",)
    most_messages = 10_000
    is_single_threaded = True

    def open(self) -> None:
        database = sqlite_utils.Database(self.folder / "logs.db")
        self.database = database
        self.store = LogStore(database)
        self.threads: set[str] = set()

    def close(self) -> None:
        self.database.conn.close()

    def fill(self, chat: str, messages: Sequence[str]) -> None:
        if chat not in self.threads:
            self.store.ensure_thread(chat)
            self.threads.add(chat)
        self.store.append(chat, [Message(role="user", parts=[TextPart(text=message)]) for message in messages])

    def append(self, chat: str, message: str) -> None:
        self.fill(chat, [message])

    def read(self, chat: str) -> Any:
        return self.store.thread_messages(chat)

    def last(self, chat: str, count: int) -> Any:
        return self.store.thread_messages(chat)[-count:]

    def fork(self, chat: str) -> Any:
        if "middle" not in self.__dict__:
            hashes = [row[0] for row in self.database.execute("select hash from messages order by rowid")]
            self.middle = hashes[len(hashes) // 2]
        return self.store.fork(self.middle)

    def list_chats(self, count: int) -> Any:
        return list(self.database.query("select * from threads order by datetime_utc desc limit ?", [count]))


SYSTEMS = [LlmLogStore]
