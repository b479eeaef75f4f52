"""The journal: all verbs about the conversations of one store."""

from __future__ import annotations

import os
from typing import Literal, overload

from msgspec import UNSET, UnsetType

from sessiontree.journal._verbs_async import AsyncVerbs
from sessiontree.journal.context_async import AsyncCompactionVerbs
from sessiontree.journal.entries_async import AsyncEntryVerbs, AsyncThreadVerbs
from sessiontree.journal.imports_async import AsyncImportVerbs
from sessiontree.journal.operations import leaf, reads
from sessiontree.journal.operations.reads import ExportFormat
from sessiontree.journal.turn_async import AsyncTurnVerbs
from sessiontree.model import Lease, Move, NextMove, Thread
from sessiontree.model._base import Progress
from sessiontree.model.codec import Scope
from sessiontree.model.thread import Direction
from sessiontree.search import SearchOrder, SearchPage
from sessiontree.workspace import Conflicts

__all__ = ["AsyncFindingVerbs", "AsyncJournal", "AsyncLeafVerbs"]


class AsyncFindingVerbs(AsyncVerbs):
    async def search(
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
        return await self.run(operation)

    async def thread_ids(self, part: str, *, limit: int = 20) -> list[str]:
        """Ids of threads that begin or end with ``part``; only ``part`` itself where it is an id."""
        return await self.run(reads.thread_ids(part, limit))

    async def entry_ids(self, thread_id: str, part: str, *, limit: int = 20) -> list[str]:
        """Ids of entries that the thread sees and that begin or end with ``part``."""
        return await self.run(reads.entry_ids(thread_id, part, limit))

    async def export(
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
        return await self.run(reads.export(thread_id, format, scope, progress))


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
        return await self.run(
            leaf.move_leaf(self.runtime, thread_id, entry_id, "move", expect_leaf=expect_leaf, lease=lease, at_ns=at_ns)
        )

    async def rewind(
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
            return await self.run(leaf.move_leaf(self.runtime, thread_id, entry_id, "rewind"))
        from sessiontree.journal.operations import restore  # noqa: PLC0415  only a rewind with files loads it

        return await self.run(
            restore.rewind(self.runtime, self.workspace.cache, thread_id, entry_id, files, conflicts=conflicts)
        )

    async def reset(self, thread_id: str) -> Thread:
        """Start over with an empty path. Nothing is deleted; ``undo`` comes back."""
        return await self.run(leaf.move_leaf(self.runtime, thread_id, None, "reset"))

    @overload
    async def undo(
        self, thread_id: str, *, conflicts: Conflicts = "stop", dry_run: Literal[False] = False
    ) -> Thread: ...
    @overload
    async def undo(self, thread_id: str, *, conflicts: Conflicts = "stop", dry_run: Literal[True]) -> NextMove: ...
    async def undo(self, thread_id: str, *, conflicts: Conflicts = "stop", dry_run: bool = False) -> Thread | NextMove:
        """Take the last leaf move back; files that moved with it come back too.

        With ``dry_run``, return the move that would be taken back. Raises NothingToUndoError if there is none.
        """
        return await self._take_back(thread_id, "undo", conflicts, dry_run=dry_run)

    @overload
    async def redo(
        self, thread_id: str, *, conflicts: Conflicts = "stop", dry_run: Literal[False] = False
    ) -> Thread: ...
    @overload
    async def redo(self, thread_id: str, *, conflicts: Conflicts = "stop", dry_run: Literal[True]) -> NextMove: ...
    async def redo(self, thread_id: str, *, conflicts: Conflicts = "stop", dry_run: bool = False) -> Thread | NextMove:
        """Take the last undo back; files that moved with it move again.

        With ``dry_run``, return the undo that would be taken back. Raises NothingToRedoError if there is none.
        """
        return await self._take_back(thread_id, "redo", conflicts, dry_run=dry_run)

    async def reflog(self, thread_id: str) -> list[Move]:
        """Every leaf move, oldest first."""
        return await self.run(leaf.reflog(thread_id))

    async def _take_back(
        self, thread_id: str, direction: Direction, conflicts: Conflicts, *, dry_run: bool
    ) -> Thread | NextMove:
        if dry_run:
            return await self.run(leaf.next_move(thread_id, direction))
        return await self.run(
            leaf.take_back(self.runtime, lambda: self.workspace.cache, thread_id, direction, conflicts)
        )


class AsyncJournal(
    AsyncThreadVerbs,
    AsyncEntryVerbs,
    AsyncLeafVerbs,
    AsyncTurnVerbs,
    AsyncCompactionVerbs,
    AsyncFindingVerbs,
    AsyncImportVerbs,
):
    """All conversations of one store.

    The blocking form may be used from many threads, the form for asyncio from one event loop. Cancelling a write does
    not undo it: it may still be committed, so append with an ``id`` of your own if you may have to repeat it.
    """
