"""The session service of google-adk on sessiontree."""

from __future__ import annotations

from typing import Any

from benchmarks.systems.google_adk import AdkSqlite
from sessiontree.adapters.google_adk import SessionTreeSessionService


class AdaptedAdk(AdkSqlite):
    name = "google-adk on sessiontree"
    family = "adapter"
    service: Any

    def open(self) -> None:
        super().open()
        self.service = SessionTreeSessionService(f"sqlite:///{self.folder}/journal.db")

    async def close(self) -> None:
        await self.service.close()

    async def fork(self, chat: str) -> Any:
        journal = await self.service.journal()
        thread = await self.service.thread(await self.session(chat))
        return await journal.fork(thread.id)


SYSTEMS = [AdaptedAdk]
