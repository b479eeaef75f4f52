"""Verbs that move the leaf, and take moves back; for asyncio."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from msgspec import UNSET, UnsetType

from sessiontree.async_journal.base import AsyncVerbs
from sessiontree.later import Later
from sessiontree.model import Lease, Move, Thread
from sessiontree.operations import leaf

if TYPE_CHECKING:
    from sessiontree.workspace import settings
else:
    settings = Later("sessiontree.workspace.settings")

__all__ = ["AsyncLeafVerbs"]


class AsyncLeafVerbs(AsyncVerbs):
    async def move_leaf(
        self,
        thread_id: str,
        entry_id: str | None,
        *,
        expect_leaf: str | UnsetType | None = UNSET,
        lease: Lease | None = None,
        at_ns: int | None = None,
    ) -> Thread:
        """Go on from any entry that the thread can see; ``None`` is before the first one."""
        return await self._run(
            leaf.move_leaf(
                self._sources, thread_id, entry_id, "move", expect_leaf=expect_leaf, lease=lease, at_ns=at_ns
            )
        )

    async def rewind(
        self,
        thread_id: str,
        entry_id: str,
        *,
        files: str | os.PathLike[str] | None = None,
        conflicts: settings.Conflicts = "stop",
    ) -> Thread:
        """Go back to an entry, which becomes the leaf. Nothing is deleted; ``undo`` comes back.

        With ``files`` that folder goes back to the entry's checkpoint too: both move, or neither does.
        """
        if files is None:
            return await self._run(leaf.move_leaf(self._sources, thread_id, entry_id, "rewind"))
        return await self._run(self.workspace.rewinding(thread_id, entry_id, files, conflicts))

    async def reset(self, thread_id: str) -> Thread:
        """Start over with an empty path. Nothing is deleted; ``undo`` comes back."""
        return await self._run(leaf.move_leaf(self._sources, thread_id, None, "reset"))

    async def undo(self, thread_id: str, *, conflicts: settings.Conflicts = "stop") -> Thread:
        """Take the last leaf move back; files that moved with it come back too."""
        return await self._run(self.workspace.undoing(thread_id, conflicts))

    async def redo(self, thread_id: str, *, conflicts: settings.Conflicts = "stop") -> Thread:
        """Take the last undo back; files that moved with it go along again."""
        return await self._run(self.workspace.redoing(thread_id, conflicts))

    async def reflog(self, thread_id: str) -> list[Move]:
        """Every leaf move, oldest first."""
        return await self._run(leaf.reflog(thread_id))
