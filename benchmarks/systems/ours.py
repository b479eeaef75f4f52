"""sessiontree on its four stores, blocking and under asyncio."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import sessiontree as st
from benchmarks import postgres
from benchmarks.system import System


class Blocking(System):
    """A ``Journal``. Cases that are about sessiontree alone use ``journal``."""

    family = "ours"
    journal: st.Journal = None  # type: ignore[assignment]
    url: ClassVar[str]

    def open(self) -> None:
        durability: Any = "process_crash" if self.is_filling else "power_loss"
        self.journal = st.open(self.address(), durability=durability)
        self.known: set[str] = set()

    def address(self) -> str:
        return self.url.format(self.folder)

    def close(self) -> None:
        self.journal.close()

    def fill(self, chat: str, messages: Sequence[str]) -> None:
        self.journal.append_many(chat, [st.user(message) for message in messages], create=True)

    def append(self, chat: str, message: str) -> Any:
        if chat not in self.known:
            self.known.add(chat)
            return self.journal.append(chat, st.user(message), create=True)
        return self.journal.append(chat, st.user(message))

    def last(self, chat: str, count: int) -> Any:
        return self.journal.path(chat, limit=count)

    def read(self, chat: str) -> Any:
        return self.journal.path(chat)

    def fork(self, chat: str) -> Any:
        return self.journal.fork(chat, at=self.middle(chat))

    def middle(self, chat: str) -> str:
        """The entry in the middle of the conversation, looked up once."""
        found: dict[str, str] = self.__dict__.setdefault("middles", {})
        if chat not in found:
            path = self.journal.path(chat)
            found[chat] = path[len(path) // 2].id
        return found[chat]

    def list_chats(self, count: int) -> Any:
        return self.journal.list_threads(limit=count)

    def search(self, words: str) -> Any:
        return self.journal.search(words)


class Sqlite(Blocking):
    name = "sessiontree SQLite"
    url = "sqlite:///{}/journal.db"
    most_chats = 100_000
    most_processes = 64


class Jsonl(Blocking):
    name = "sessiontree JSONL"
    url = "jsonl:///{}/trees"
    most_chats = 10_000
    most_processes = 64


class Memory(Blocking):
    name = "sessiontree memory"
    url = "memory:"
    is_in_memory = True
    most_messages = 100_000


class Postgres(Blocking):
    name = "sessiontree PostgreSQL"
    packages = ("psycopg",)
    is_remote = True
    most_processes = 8
    most_messages = 100_000

    def address(self) -> str:
        return postgres.database(self.folder)

    def bytes_on_disk(self) -> int:
        return postgres.database_bytes(self.address())


class Asyncio(System):
    """An ``AsyncJournal``."""

    family = "ours"
    url: ClassVar[str]

    async def open(self) -> None:
        durability: Any = "process_crash" if self.is_filling else "power_loss"
        self.async_journal = st.open_async(self.address(), durability=durability)
        self.known: set[str] = set()

    def address(self) -> str:
        return self.url.format(self.folder)

    async def close(self) -> None:
        await self.async_journal.close()

    async def fill(self, chat: str, messages: Sequence[str]) -> None:
        await self.async_journal.append_many(chat, [st.user(message) for message in messages], create=True)

    async def append(self, chat: str, message: str) -> Any:
        if chat not in self.known:
            self.known.add(chat)
            return await self.async_journal.append(chat, st.user(message), create=True)
        return await self.async_journal.append(chat, st.user(message))


class AsyncSqlite(Asyncio):
    name = "sessiontree SQLite, asyncio"
    url = Sqlite.url


class AsyncJsonl(Asyncio):
    name = "sessiontree JSONL, asyncio"
    url = Jsonl.url


class AsyncMemory(Asyncio):
    name = "sessiontree memory, asyncio"
    url = Memory.url
    is_in_memory = True


class AsyncPostgres(Asyncio):
    name = "sessiontree PostgreSQL, asyncio"
    is_remote = True
    most_messages = 100_000

    def address(self) -> str:
        return postgres.database(self.folder)

    def bytes_on_disk(self) -> int:
        return postgres.database_bytes(self.address())


SYSTEMS = [Sqlite, AsyncSqlite, Jsonl, AsyncJsonl, Memory, AsyncMemory, Postgres, AsyncPostgres]
