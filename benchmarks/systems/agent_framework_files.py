"""agent-framework: FileHistoryProvider, one JSONL file a session."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agent_framework import FileHistoryProvider, Message

from benchmarks.system import System


class AgentFrameworkFiles(System):
    name = "agent-framework FileHistoryProvider"
    packages = ("agent-framework-core",)
    most_messages = 10_000

    def open(self) -> None:
        self.store = FileHistoryProvider(self.folder)

    async def fill(self, chat: str, messages: Sequence[str]) -> None:
        await self.store.save_messages(chat, [Message("user", [message]) for message in messages])

    async def append(self, chat: str, message: str) -> None:
        await self.fill(chat, [message])

    async def read(self, chat: str) -> Any:
        return await self.store.get_messages(chat)

    async def last(self, chat: str, count: int) -> Any:
        return (await self.store.get_messages(chat))[-count:]


SYSTEMS = [AgentFrameworkFiles]
