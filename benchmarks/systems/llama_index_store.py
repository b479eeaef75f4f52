"""llama-index: SQLAlchemyChatStore on SQLite."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llama_index.core.llms import ChatMessage
from llama_index.core.storage.chat_store.sql import SQLAlchemyChatStore

from benchmarks.system import System


class LlamaSqlite(System):
    name = "llama-index SQLAlchemyChatStore"
    packages = ("llama-index-core",)
    most_messages = 10_000

    def open(self) -> None:
        self.store = SQLAlchemyChatStore("chats", f"sqlite+aiosqlite:///{self.folder}/chats.db")

    async def fill(self, chat: str, messages: Sequence[str]) -> None:
        await self.store.add_messages(chat, [ChatMessage(role="user", content=message) for message in messages])

    async def append(self, chat: str, message: str) -> None:
        await self.store.add_message(chat, ChatMessage(role="user", content=message))

    async def read(self, chat: str) -> Any:
        return await self.store.get_messages(chat)

    async def last(self, chat: str, count: int) -> Any:
        return (await self.store.get_messages(chat))[-count:]

    async def list_chats(self, count: int) -> Any:
        return (await self.store.get_keys())[:count]


SYSTEMS = [LlamaSqlite]
