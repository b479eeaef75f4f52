"""pi-durable-python: the SQLite and the JSONL storage. The option ``fsync`` of the latter is about maintenance, not appends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pi_durable import Harness, UserEntry, create_registry
from pi_durable.context import BACKGROUND_CONTEXT
from pi_durable.env.posix import PosixExecutionEnv
from pi_durable.storage.jsonl import JsonlStorage
from pi_durable.storage.sqlite.posix import open_posix_sqlite_storage

from benchmarks.system import CHAT, System

ROOT = {"ownership": {"kind": "ownerless"}}


class PiSqlite(System):
    name = "pi-durable SQLite"
    packages = ("pi-durable-python",)
    most_messages = 10_000
    is_single_loop = True

    async def open(self) -> None:
        options: Any = {"models": {}, "registry": create_registry()}
        self.harness: Any = await Harness.open(await self.storage(), options, BACKGROUND_CONTEXT)
        # The ids of conversations are numbers that the storage gives out; the first one is kept for ``CHAT``.
        self.chats: dict[str, Any] = {CHAT: await self.harness.root(BACKGROUND_CONTEXT)}

    async def storage(self) -> Any:
        return await open_posix_sqlite_storage(str(self.folder / "pi.db"))

    async def close(self) -> None:
        await self.harness.close(BACKGROUND_CONTEXT)

    async def chat(self, name: str) -> Any:
        if name not in self.chats:
            self.chats[name] = await self.harness.create_conversation(ROOT, BACKGROUND_CONTEXT)
        return self.chats[name]

    async def fill(self, chat: str, messages: Sequence[str]) -> None:
        conversation = await self.chat(chat)

        async def change(tx: Any) -> None:
            for message in messages:
                content = [{"role": "user", "content": message, "timestamp": 0}]
                await tx.append_entry(UserEntry, conversation.id, {"model": content})

        await conversation.commit(change, BACKGROUND_CONTEXT)

    async def append(self, chat: str, message: str) -> None:
        await self.fill(chat, [message])

    async def read(self, chat: str) -> Any:
        return await self.last(chat, 10_000_000)

    async def last(self, chat: str, count: int) -> Any:
        conversation = await self.chat(chat)
        return (await conversation.entries({}, count, None, BACKGROUND_CONTEXT))["items"]

    async def fork(self, chat: str) -> Any:
        conversation = await self.chat(chat)
        if "middle" not in self.__dict__:
            entries = await self.read(chat)
            self.middle = entries[len(entries) // 2]["id"]
        return await conversation.fork(self.middle, ROOT, BACKGROUND_CONTEXT)


class PiJsonl(PiSqlite):
    name = "pi-durable JSONL"

    async def storage(self) -> Any:
        files = PosixExecutionEnv(cwd=str(self.folder))
        return await JsonlStorage.open(str(self.folder / "pi"), files, BACKGROUND_CONTEXT)


SYSTEMS = [PiSqlite, PiJsonl]
