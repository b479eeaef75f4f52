"""The history provider of agent-framework on sessiontree."""

from __future__ import annotations

from typing import Any

from benchmarks.systems.agent_framework_files import AgentFrameworkFiles
from sessiontree.adapters.agent_framework import SessionTreeHistoryProvider


class AdaptedAgentFramework(AgentFrameworkFiles):
    name = "agent-framework on sessiontree"
    family = "adapter"
    store: Any

    def open(self) -> None:
        self.store = SessionTreeHistoryProvider(f"sqlite:///{self.folder}/journal.db")

    async def close(self) -> None:
        await self.store.close()

    async def fork(self, chat: str) -> Any:
        return await (await self.store.thread(chat)).fork()


SYSTEMS = [AdaptedAgentFramework]
