"""Verbs that move the leaf, and take moves back."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from msgspec import UNSET, UnsetType

from sessiontree.journal.base import Verbs
from sessiontree.later import Later
from sessiontree.model import Lease, Move, Thread
from sessiontree.operations import leaf

if TYPE_CHECKING:
    from sessiontree.workspace import settings
else:
    settings = Later("sessiontree.workspace.settings")

__all__ = ["LeafVerbs"]


class LeafVerbs(Verbs):
    def move_leaf(
        self,
        thread_id: str,
        entry_id: str | None,
        *,
        expect_leaf: str | UnsetType | None = UNSET,
        lease: Lease | None = None,
        at_ns: int | None = None,
    ) -> Thread:
        """Go on from any entry that the thread can see; ``None`` is before the first one."""
        return self._run(
            leaf.move_leaf(
                self._sources, thread_id, entry_id, "move", expect_leaf=expect_leaf, lease=lease, at_ns=at_ns
            )
        )

    def rewind(
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
            return self._run(leaf.move_leaf(self._sources, thread_id, entry_id, "rewind"))
        return self._run(self.workspace.rewinding(thread_id, entry_id, files, conflicts))

    def reset(self, thread_id: str) -> Thread:
        """Start over with an empty path. Nothing is deleted; ``undo`` comes back."""
        return self._run(leaf.move_leaf(self._sources, thread_id, None, "reset"))

    def undo(self, thread_id: str, *, conflicts: settings.Conflicts = "stop") -> Thread:
        """Take the last leaf move back; files that moved with it come back too."""
        return self._run(self.workspace.undoing(thread_id, conflicts))

    def redo(self, thread_id: str, *, conflicts: settings.Conflicts = "stop") -> Thread:
        """Take the last undo back; files that moved with it go along again."""
        return self._run(self.workspace.redoing(thread_id, conflicts))

    def reflog(self, thread_id: str) -> list[Move]:
        """Every leaf move, oldest first."""
        return self._run(leaf.reflog(thread_id))
