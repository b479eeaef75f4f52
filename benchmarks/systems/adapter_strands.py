"""The session repository of strands-agents on sessiontree."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from benchmarks.systems.strands_files import StrandsFiles
from sessiontree.adapters.strands import SessionTreeRepository


class AdaptedStrands(StrandsFiles):
    name = "strands on sessiontree"
    family = "adapter"
    store: Any

    def open(self) -> None:
        super().open()
        self.store = SessionTreeRepository(f"sqlite:///{self.folder}/journal.db")

    def close(self) -> None:
        self.store.close()

    def fork(self, chat: str) -> Any:
        self.store.fork_session(chat, str(uuid4()))


SYSTEMS = [AdaptedStrands]
