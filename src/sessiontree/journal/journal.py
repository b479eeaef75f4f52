# Generated from journal_async.py by tools/async_to_sync.py; do not edit.
"""The journal: all verbs about the conversations of one store."""

from __future__ import annotations

import os
from typing import Literal, overload

from msgspec import UNSET, UnsetType

from sessiontree.journal._verbs import Verbs
from sessiontree.journal.context import CompactionVerbs
from sessiontree.journal.entries import EntryVerbs, ThreadVerbs
from sessiontree.journal.imports import ImportVerbs
from sessiontree.journal.operations import leaf, reads
from sessiontree.journal.operations.reads import ExportFormat
from sessiontree.journal.turn import TurnVerbs
from sessiontree.model import Lease, Move, NextMove, Thread
from sessiontree.model._base import Progress
from sessiontree.model.codec import Scope
from sessiontree.model.thread import Direction
from sessiontree.search import SearchOrder, SearchPage
from sessiontree.workspace import Conflicts

__all__ = ["FindingVerbs", "Journal", "LeafVerbs"]


class FindingVerbs(Verbs):
    def search(
        self,
        text: str,
        *,
        order: SearchOrder = "best",
        limit: int = 20,
        cursor: str | None = None,
        progress: Progress | None = None,
    ) -> SearchPage:
        """Entries by what they say: words, "phrases", prefix*, -without, and filters such as role:user or after:7d.

        Filters are role, tool, model, file, label, thread, branch, before and after. A search sees everything that
        was committed before it began; ``progress`` hears how far the index has caught up.
        """
        operation = reads.search(self.runtime, text, order=order, limit=limit, cursor=cursor, progress=progress)
        return self.run(operation)

    def thread_ids(self, part: str, *, limit: int = 20) -> list[str]:
        """Ids of threads that begin or end with ``part``; only ``part`` itself where it is an id."""
        return self.run(reads.thread_ids(part, limit))

    def entry_ids(self, thread_id: str, part: str, *, limit: int = 20) -> list[str]:
        """Ids of entries that the thread sees and that begin or end with ``part``."""
        return self.run(reads.entry_ids(thread_id, part, limit))

    def export(
        self,
        thread_id: str,
        *,
        format: ExportFormat = "markdown",
        scope: Scope | None = None,
        progress: Progress | None = None,
    ) -> str:
        """A thread as text: ``markdown`` of its path, or ``json`` or ``jsonl`` that ``import_sessions`` reads back.

        ``scope`` is ``path``, ``thread`` (every branch, the default) or ``tree`` (with all forks). ``progress`` hears
        how many entries were written, and how many there are.
        """
        return self.run(reads.export(thread_id, format, scope, progress))


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
        return self.run(
            leaf.move_leaf(self.runtime, thread_id, entry_id, "move", expect_leaf=expect_leaf, lease=lease, at_ns=at_ns)
        )

    def rewind(
        self,
        thread_id: str,
        entry_id: str,
        *,
        files: str | os.PathLike[str] | None = None,
        conflicts: Conflicts = "stop",
    ) -> Thread:
        """Go back to an entry, which becomes the leaf. Nothing is deleted; ``undo`` comes back.

        With ``files`` that folder goes back to the entry's checkpoint too: both move, or neither does.
        """
        if files is None:
            return self.run(leaf.move_leaf(self.runtime, thread_id, entry_id, "rewind"))
        from sessiontree.journal.operations import restore  # noqa: PLC0415  only a rewind with files loads it

        return self.run(
            restore.rewind(self.runtime, self.workspace.cache, thread_id, entry_id, files, conflicts=conflicts)
        )

    def reset(self, thread_id: str) -> Thread:
        """Start over with an empty path. Nothing is deleted; ``undo`` comes back."""
        return self.run(leaf.move_leaf(self.runtime, thread_id, None, "reset"))

    @overload
    def undo(self, thread_id: str, *, conflicts: Conflicts = "stop", dry_run: Literal[False] = False) -> Thread: ...
    @overload
    def undo(self, thread_id: str, *, conflicts: Conflicts = "stop", dry_run: Literal[True]) -> NextMove: ...
    def undo(self, thread_id: str, *, conflicts: Conflicts = "stop", dry_run: bool = False) -> Thread | NextMove:
        """Take the last leaf move back; files that moved with it come back too.

        With ``dry_run``, return the move that would be taken back. Raises NothingToUndoError if there is none.
        """
        return self._take_back(thread_id, "undo", conflicts, dry_run=dry_run)

    @overload
    def redo(self, thread_id: str, *, conflicts: Conflicts = "stop", dry_run: Literal[False] = False) -> Thread: ...
    @overload
    def redo(self, thread_id: str, *, conflicts: Conflicts = "stop", dry_run: Literal[True]) -> NextMove: ...
    def redo(self, thread_id: str, *, conflicts: Conflicts = "stop", dry_run: bool = False) -> Thread | NextMove:
        """Take the last undo back; files that moved with it move again.

        With ``dry_run``, return the undo that would be taken back. Raises NothingToRedoError if there is none.
        """
        return self._take_back(thread_id, "redo", conflicts, dry_run=dry_run)

    def reflog(self, thread_id: str) -> list[Move]:
        """Every leaf move, oldest first."""
        return self.run(leaf.reflog(thread_id))

    def _take_back(
        self, thread_id: str, direction: Direction, conflicts: Conflicts, *, dry_run: bool
    ) -> Thread | NextMove:
        if dry_run:
            return self.run(leaf.next_move(thread_id, direction))
        return self.run(leaf.take_back(self.runtime, lambda: self.workspace.cache, thread_id, direction, conflicts))


class Journal(
    ThreadVerbs,
    EntryVerbs,
    LeafVerbs,
    TurnVerbs,
    CompactionVerbs,
    FindingVerbs,
    ImportVerbs,
):
    """All conversations of one store.

    The blocking form may be used from many threads, the form for asyncio from one event loop. Cancelling a write does
    not undo it: it may still be committed, so append with an ``id`` of your own if you may have to repeat it.
    """
