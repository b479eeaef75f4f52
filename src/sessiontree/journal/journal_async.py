"""The journal: all verbs about the conversations of one store."""

from __future__ import annotations

import os
from datetime import UTC, tzinfo
from typing import TYPE_CHECKING, Literal, Unpack, overload

from msgspec import UNSET, UnsetType

from sessiontree.journal._base_async import AsyncVerbs
from sessiontree.journal.artifacts_async import AsyncArtifactVerbs
from sessiontree.journal.context_async import AsyncCompactionVerbs
from sessiontree.journal.entries_async import AsyncEntryVerbs, AsyncThreadVerbs
from sessiontree.journal.imports_async import AsyncImportVerbs
from sessiontree.journal.operations import leaf, reads, threads
from sessiontree.journal.operations.costs import CostQuery, CostReport, costs
from sessiontree.journal.operations.reads import ExportFormat
from sessiontree.journal.thread_ids import ThreadLike, id_of
from sessiontree.journal.turn_async import AsyncTurnVerbs
from sessiontree.model import Lease, Move, NextMove, SessionKey, Thread, ThreadFields
from sessiontree.model._base import Progress
from sessiontree.model.codec import Scope
from sessiontree.model.prices import PRICES, Prices
from sessiontree.model.thread import Direction
from sessiontree.search import SearchOrder, SearchPage
from sessiontree.workspace import Conflicts

if TYPE_CHECKING:
    from sessiontree.journal.handle_async import AsyncThreadHandle

__all__ = ["AsyncFindingVerbs", "AsyncJournal", "AsyncLeafVerbs"]


class AsyncFindingVerbs(AsyncVerbs):
    """The verbs that find entries and threads, and export them."""

    async def search(
        self,
        text: str,
        *,
        order: SearchOrder = "best",
        limit: int = 20,
        cursor: str | None = None,
        progress: Progress | None = None,
    ) -> SearchPage:
        """Search entries by words, "phrases", prefix*, -excluded words, and filters such as role:user or after:7d.

        Filters are role, tool, model, file, label, thread, branch, before and after. A search sees everything that
        was committed before it began; ``progress(done, total)`` is called while the index catches up.
        """
        operation = reads.search(self.runtime, text, order=order, limit=limit, cursor=cursor, progress=progress)
        return await self.run(operation)

    async def thread_ids(self, part: str, *, limit: int = 20) -> list[str]:
        """Return the ids of threads that begin or end with ``part``; only ``part`` itself if it is an id."""
        return await self.run(reads.thread_ids(part, limit))

    async def entry_ids(self, thread_id: ThreadLike, part: str, *, limit: int = 20) -> list[str]:
        """Return the ids of entries that the thread sees and that begin or end with ``part``."""
        return await self.run(reads.entry_ids(id_of(thread_id), part, limit))

    async def has_user_interaction(self, thread_id: ThreadLike) -> bool:
        """Return whether a user has said anything in a thread, on any branch; tool results do not count."""
        return await self.run(reads.has_user_interaction(id_of(thread_id)))

    async def costs(
        self,
        thread_id: ThreadLike | None = None,
        *,
        after_ns: int | None = None,
        before_ns: int | None = None,
        prices: Prices = PRICES,
        zone: tzinfo = UTC,
    ) -> CostReport:
        """Return what requests cost: in total, and for each thread, turn, day and model; of one thread, or of the whole store.

        Usage that was reported without a cost is priced by ``prices``. Models that are not in it get no price: their
        tokens are in ``unpriced_tokens``. Days are those of ``zone``.
        """
        name = None if thread_id is None else id_of(thread_id)
        query = CostQuery(thread_id=name, after_ns=after_ns, before_ns=before_ns, prices=prices, zone=zone)
        return await self.run(costs(query))

    async def export(
        self,
        thread_id: ThreadLike,
        *,
        format: ExportFormat = "markdown",
        scope: Scope | None = None,
        leaf: str | UnsetType | None = UNSET,
        progress: Progress | None = None,
    ) -> str:
        """Return a thread as text: its path as ``markdown``, or ``json`` or ``jsonl`` for ``import_sessions``.

        ``scope`` is ``path``, ``thread`` (every branch, the default) or ``tree`` (with all forks). ``leaf`` exports the
        path to that entry instead of the one to the thread's leaf. Markdown begins at the last compaction, with
        ``scope="path"`` at the first message.
        ``progress(done, total)`` is called with numbers of entries.
        """
        return await self.run(reads.export(id_of(thread_id), format, scope, leaf, progress))


class AsyncLeafVerbs(AsyncVerbs):
    """The verbs that move the leaf of a thread."""

    async def move_leaf(
        self,
        thread_id: ThreadLike,
        entry_id: str | None,
        *,
        expect_leaf: str | UnsetType | None = UNSET,
        lease: Lease | None = None,
        at_ns: int | None = None,
    ) -> Thread:
        """Move the leaf to any entry that the thread sees, or with ``None`` before the first one."""
        return await self.run(
            leaf.move_leaf(
                self.runtime, id_of(thread_id), entry_id, "move", expect_leaf=expect_leaf, lease=lease, at_ns=at_ns
            )
        )

    async def rewind(
        self,
        thread_id: ThreadLike,
        entry_id: str,
        *,
        files: str | os.PathLike[str] | None = None,
        conflicts: Conflicts = "stop",
    ) -> Thread:
        """Move the leaf back to an entry. No entry is deleted, and ``undo`` moves forward again.

        With ``files``, that folder is restored to the checkpoint of the entry too: both happen, or neither.
        """
        if files is None:
            return await self.run(leaf.move_leaf(self.runtime, id_of(thread_id), entry_id, "rewind"))
        from sessiontree.journal.operations import restore  # noqa: PLC0415  only a rewind with files loads it

        return await self.run(
            restore.rewind(self.runtime, self.workspace.cache, id_of(thread_id), entry_id, files, conflicts=conflicts)
        )

    async def reset(self, thread_id: ThreadLike) -> Thread:
        """Start again with an empty path. No entry is deleted, and ``undo`` brings the path back."""
        return await self.run(leaf.move_leaf(self.runtime, id_of(thread_id), None, "reset"))

    @overload
    async def undo(
        self, thread_id: ThreadLike, *, conflicts: Conflicts = "stop", dry_run: Literal[False] = False
    ) -> Thread: ...
    @overload
    async def undo(
        self, thread_id: ThreadLike, *, conflicts: Conflicts = "stop", dry_run: Literal[True]
    ) -> NextMove: ...
    async def undo(
        self, thread_id: ThreadLike, *, conflicts: Conflicts = "stop", dry_run: bool = False
    ) -> Thread | NextMove:
        """Take the last leaf move back; files that moved with it come back too.

        With ``dry_run``, return the move that would be taken back. Raises NothingToUndoError if there is none.
        """
        return await self._take_back(id_of(thread_id), "undo", conflicts, dry_run=dry_run)

    @overload
    async def redo(
        self, thread_id: ThreadLike, *, conflicts: Conflicts = "stop", dry_run: Literal[False] = False
    ) -> Thread: ...
    @overload
    async def redo(
        self, thread_id: ThreadLike, *, conflicts: Conflicts = "stop", dry_run: Literal[True]
    ) -> NextMove: ...
    async def redo(
        self, thread_id: ThreadLike, *, conflicts: Conflicts = "stop", dry_run: bool = False
    ) -> Thread | NextMove:
        """Take the last undo back; files that moved with it move again.

        With ``dry_run``, return the undo that would be taken back. Raises NothingToRedoError if there is none.
        """
        return await self._take_back(id_of(thread_id), "redo", conflicts, dry_run=dry_run)

    async def reflog(self, thread_id: ThreadLike) -> list[Move]:
        """Return every move of the leaf, oldest first."""
        return await self.run(leaf.reflog(id_of(thread_id)))

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
    AsyncArtifactVerbs,
    AsyncImportVerbs,
):
    """All conversations of one store.

    The blocking form may be used from many threads, the form for asyncio from several event loops. Cancelling a write does
    not undo it: it may still be committed, so append with an ``id`` of your own if you may have to repeat it.
    """

    async def open_thread(
        self,
        id_or_key: ThreadLike | SessionKey | None = None,
        *,
        create: bool = False,
        **fields: Unpack[ThreadFields],
    ) -> AsyncThreadHandle:
        """Return a handle of a thread, which has these verbs without their first argument.

        A key stands for the thread with that key that was changed last, archived ones only if there is no other. With ``create``, a missing thread is
        created with ``fields``, once, however many processes open it; without an id or key it is always a new one.
        Raises ThreadNotFoundError if there is none.
        """
        from sessiontree.journal.handle_async import AsyncThreadHandle  # noqa: PLC0415  it needs this class

        wanted = id_or_key if id_or_key is None or isinstance(id_or_key, SessionKey) else id_of(id_or_key)
        thread = await self.run(threads.open_thread(self.runtime, wanted, fields, create=create))
        return AsyncThreadHandle(self, thread.id)
