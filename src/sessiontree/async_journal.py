"""The journal for asyncio: the same verbs with the same signatures; a test compares the two."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar, Unpack

from msgspec import UNSET, UnsetType

from sessiontree.async_turn import AsyncTurn
from sessiontree.commands import Deleted
from sessiontree.compaction import (
    BranchResult,
    CompactionPolicy,
    CompactionResult,
    Reason,
    Summarizer,
    Trigger,
    is_context_overflow,
)
from sessiontree.context import Context, Purpose
from sessiontree.drivers import drive_async
from sessiontree.exports.native import Scope
from sessiontree.ids import Clock, IdSource, RandomSource, system_clock
from sessiontree.model import (
    CompactionClaim,
    Entry,
    Lease,
    Message,
    Move,
    Page,
    Payload,
    Thread,
    ThreadFields,
    ThreadFilters,
    ThreadQuery,
)
from sessiontree.operations import calling, compacting, entries, exports, leaf, search, threads, titling, turns, views
from sessiontree.operations.entries import Content, NewEntry
from sessiontree.operations.exports import ExportFormat
from sessiontree.operations.requests import Operation, Sources
from sessiontree.operations.setbacks import Setbacks
from sessiontree.operations.summarising import CLAIM_SECONDS, WAIT_SECONDS, Compacting
from sessiontree.operations.turns import DEFAULT_TTL_SECONDS, Resumption
from sessiontree.queries import Finding, StoreStats
from sessiontree.search import SearchOrder, SearchPage
from sessiontree.store import AsyncStore
from sessiontree.summarizers.extractive import extractive
from sessiontree.titles import Titler
from sessiontree.tokens import TokenCounter, estimate_text
from sessiontree.watching import follow_async

if TYPE_CHECKING:
    from sessiontree.file_verbs import AsyncWorkspace
    from sessiontree.workspace.settings import Conflicts, Settings

__all__ = ["AsyncJournal"]

T = TypeVar("T")

DEFAULT_POLICY = CompactionPolicy()


class AsyncJournal:
    """All conversations of one store, for one event loop. Cancelling a write does not take it back: its id tells."""

    def __init__(
        self,
        store: AsyncStore,
        *,
        clock: Clock = system_clock,
        random: RandomSource = os.urandom,
        workspace_settings: Settings | None = None,
    ) -> None:
        self.store = store
        self._workspace_settings = workspace_settings
        self._sources = Sources(clock=clock, ids=IdSource(clock, random), setbacks=Setbacks())

    @property
    def clock(self) -> Clock:
        """Where this journal's time comes from."""
        return self._sources.clock

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    @cached_property
    def workspace(self) -> AsyncWorkspace:
        """Checkpoints of folders: snapshot, plan, restore, diff, recover."""
        from sessiontree.file_verbs import AsyncWorkspace  # noqa: PLC0415  only programs that keep files load it

        return AsyncWorkspace(self._run, self._sources, self.store.place, self._workspace_settings)

    async def create_thread(
        self,
        id: str | None = None,
        *,
        created_ns: int | None = None,
        updated_ns: int | None = None,
        contents: Iterable[Payload | Message] = (),
        **fields: Unpack[ThreadFields],
    ) -> Thread:
        """Start a conversation, with its first entries in the same commit; an id that is taken is ThreadExistsError."""
        return await self._run(
            threads.create_thread(self._sources, id, created_ns, fields, updated_ns=updated_ns, contents=contents)
        )

    async def thread(self, thread_id: str) -> Thread:
        """A thread's metadata and counters."""
        return await self._run(threads.thread(thread_id))

    async def update_thread(
        self, thread_id: str, *, expect_version: int | None = None, **fields: Unpack[ThreadFields]
    ) -> Thread:
        """Change metadata; with ``expect_version`` only if nobody else did meanwhile (StaleVersionError)."""
        return await self._run(threads.update_thread(self._sources, thread_id, expect_version, fields))

    async def delete_thread(self, thread_id: str, *, expect_version: int | None = None) -> Deleted:
        """Delete a thread for good; entries that a fork still shows stay.

        With ``expect_version`` only if nobody changed its metadata meanwhile (StaleVersionError).
        """
        return await self._run(threads.delete_thread(thread_id, expect_version))

    async def list_threads(self, query: ThreadQuery | None = None, **filters: Unpack[ThreadFilters]) -> Page:
        """A page of threads, newest first; archived ones only with ``is_archived=True``, or ``None`` for all."""
        return await self._run(threads.list_threads(query, filters))

    async def fork(
        self,
        thread_id: str,
        *,
        at: str | None = None,
        before: str | None = None,
        new_id: str | None = None,
        created_ns: int | None = None,
        **fields: Unpack[ThreadFields],
    ) -> Thread:
        """A new thread that shares everything up to ``at``, or up to the parent of ``before``, or up to the leaf."""
        operation = threads.fork(
            self._sources, thread_id, at=at, before=before, new_id=new_id, created_ns=created_ns, fields=fields
        )
        return await self._run(operation)

    async def append(
        self,
        thread_id: str,
        content: Payload | Message,
        *,
        id: str | None = None,
        parent: str | UnsetType | None = UNSET,
        expect_leaf: str | UnsetType | None = UNSET,
        lease: Lease | None = None,
        created_ns: int | None = None,
        turn_id: str = "",
        expect_live: bool = False,
    ) -> Entry:
        """Add one entry under the leaf, durably; the same ``id`` with the same content is a no-op.

        With ``expect_live`` a thread that is archived refuses it (ThreadArchivedError).
        """
        new = NewEntry(content=content, id=id, created_ns=created_ns, turn_id=turn_id)
        operation = entries.append(
            self._sources,
            thread_id,
            new,
            parent=parent,
            expect_leaf=expect_leaf,
            lease=lease,
            expect_live=expect_live,
        )
        return await drive_async(operation, self.store)

    async def append_many(
        self,
        thread_id: str,
        contents: Iterable[Content],
        *,
        parent: str | UnsetType | None = UNSET,
        expect_leaf: str | UnsetType | None = UNSET,
        lease: Lease | None = None,
    ) -> list[Entry]:
        """Add several entries in a row, all or none."""
        operation = entries.append_many(
            self._sources, thread_id, contents, parent=parent, expect_leaf=expect_leaf, lease=lease
        )
        return await self._run(operation)

    async def entry(self, thread_id: str, entry_id: str) -> Entry:
        """One entry that the thread can see."""
        return await self._run(entries.entry(thread_id, entry_id))

    async def entries(self, thread_id: str, *, after: str | None = None, limit: int | None = None) -> list[Entry]:
        """All entries that the thread can see, every branch, in the order of their commits."""
        return await self._run(entries.entries(thread_id, after, limit))

    async def path(
        self, thread_id: str, leaf: str | UnsetType | None = UNSET, *, limit: int | None = None
    ) -> list[Entry]:
        """Root to leaf; ``limit`` keeps only the newest ones."""
        return await self._run(entries.path(thread_id, leaf, limit))

    async def children(self, thread_id: str, entry_id: str | None) -> list[Entry]:
        """The entries that hang from an entry; ``None`` asks for the roots."""
        return await self._run(entries.children(thread_id, entry_id))

    async def label(self, thread_id: str, entry_id: str, name: str) -> Entry:
        """Give an entry a name; an empty name takes it away."""
        return await self._run(entries.label(self._sources, thread_id, entry_id, name))

    async def labels(self, thread_id: str) -> dict[str, str]:
        """Label to entry id."""
        return await self._run(entries.labels(thread_id))

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
        conflicts: Conflicts = "stop",
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

    async def undo(self, thread_id: str, *, conflicts: Conflicts = "stop") -> Thread:
        """Take the last leaf move back; files that moved with it come back too."""
        return await self._run(self.workspace.undoing(thread_id, conflicts))

    async def redo(self, thread_id: str, *, conflicts: Conflicts = "stop") -> Thread:
        """Take the last undo back; files that moved with it go along again."""
        return await self._run(self.workspace.redoing(thread_id, conflicts))

    async def reflog(self, thread_id: str) -> list[Move]:
        """Every leaf move, oldest first."""
        return await self._run(leaf.reflog(thread_id))

    async def acquire_lease(
        self, thread_id: str, *, owner: str, turn_id: str | None = None, ttl_seconds: float = DEFAULT_TTL_SECONDS
    ) -> Lease:
        """The right to run a turn; ActiveTurnError while somebody else's has not expired."""
        return await self._run(turns.acquire_lease(self._sources, thread_id, owner, turn_id, ttl_seconds))

    async def renew_lease(self, lease: Lease, *, ttl_seconds: float = DEFAULT_TTL_SECONDS) -> Lease:
        """Keep a lease alive; FencedError if somebody took over."""
        return await self._run(turns.renew_lease(self._sources, lease, ttl_seconds))

    async def release_lease(self, lease: Lease) -> None:
        """Give a lease back; one that is not in force any more is left alone."""
        return await self._run(turns.release_lease(lease))

    async def active_lease(self, thread_id: str) -> Lease | None:
        """The lease in force, if it has not expired."""
        return await self._run(turns.active_lease(self._sources, thread_id))

    async def clear_expired_lease(self, thread_id: str) -> Lease | None:
        """Take an expired lease away and return it."""
        return await self._run(turns.clear_expired_lease(self._sources, thread_id))

    def turn(
        self,
        thread_id: str,
        *,
        owner: str | None = None,
        turn_id: str | None = None,
        ttl_seconds: float = DEFAULT_TTL_SECONDS,
        files: str | os.PathLike[str] | None = None,
    ) -> AsyncTurn:
        """Run a turn: ``async with journal.turn(id) as turn: await turn.append(...)`` keeps the lease and writes the markers.

        With ``files`` a checkpoint of that folder is taken when the turn begins and when it ends.
        """
        return AsyncTurn(
            self.store,
            self._sources,
            thread_id,
            owner=owner,
            turn_id=turn_id,
            ttl_seconds=ttl_seconds,
            files=None if files is None else self.workspace.for_turn(files),
        )

    async def resume(self, thread_id: str, *, owner: str | None = None) -> Resumption:
        """After a crash: turns that never ended become interrupted, and the thread can go on."""
        return await self._run(turns.resume(self._sources, thread_id, owner))

    async def retry(self, thread_id: str) -> Thread:
        """Move the leaf to where the failed turn can start again."""
        return await self._run(leaf.retry(self._sources, thread_id))

    async def context(
        self,
        thread_id: str,
        *,
        leaf: str | UnsetType | None = UNSET,
        purpose: Purpose = "provider_request",
        count: TokenCounter = estimate_text,
    ) -> Context:
        """What the model sees."""
        return await self._run(views.context(thread_id, leaf, purpose, count))

    async def compact(
        self,
        thread_id: str,
        summarize: Summarizer = extractive,
        *,
        policy: CompactionPolicy = DEFAULT_POLICY,
        instructions: str = "",
        force: bool = False,
        trigger: Trigger = "manual",
        reason: Reason = "manual",
        count: TokenCounter = estimate_text,
        lease: Lease | None = None,
        claim_seconds: float = CLAIM_SECONDS,
    ) -> CompactionResult:
        """Shorten what the model sees by a summary of the older part; nothing is deleted.

        Entries that arrive while the summariser works stay. While another process is at it: CompactionClaimedError.
        A summary that saves nothing is not installed unless ``force``.
        """
        how = Compacting(
            summarize=summarize,
            policy=policy,
            instructions=instructions,
            force=force,
            trigger=trigger,
            reason=reason,
            count=count,
            lease=lease,
            claim_seconds=claim_seconds,
        )
        return await self._run(compacting.compact(self._sources, thread_id, how))

    async def compact_if_needed(
        self,
        thread_id: str,
        summarize: Summarizer = extractive,
        *,
        policy: CompactionPolicy = DEFAULT_POLICY,
        instructions: str = "",
        trigger: Trigger = "post_response",
        count: TokenCounter = estimate_text,
        lease: Lease | None = None,
        claim_seconds: float = CLAIM_SECONDS,
    ) -> CompactionResult | None:
        """Compact if the window is too full; ``None`` if it is not, if somebody else is at it, or after a failure.

        After a failure it waits half a minute before it asks the summariser again, longer after each further one.
        """
        how = Compacting(
            summarize=summarize,
            policy=policy,
            instructions=instructions,
            trigger=trigger,
            reason="threshold",
            count=count,
            lease=lease,
            claim_seconds=claim_seconds,
        )
        return await self._run(compacting.compact_if_needed(self._sources, thread_id, how))

    async def uncompact(self, thread_id: str, *, lease: Lease | None = None) -> Entry:
        """Give the context back that was there before the last compaction."""
        return await self._run(compacting.uncompact(self._sources, thread_id, lease))

    async def clear_expired_claim(self, thread_id: str) -> CompactionClaim | None:
        """Take away the claim of a compactor that crashed; ``None`` if nobody's has expired."""
        return await self._run(compacting.clear_expired_claim(self._sources, thread_id))

    async def leave_branch(
        self,
        thread_id: str,
        to_entry: str | None,
        summarize: Summarizer = extractive,
        *,
        policy: CompactionPolicy = DEFAULT_POLICY,
        instructions: str = "",
        count: TokenCounter = estimate_text,
        lease: Lease | None = None,
    ) -> BranchResult:
        """Go on from ``to_entry`` with a summary of the branch that is left; ``undo`` comes back."""
        how = Compacting(summarize=summarize, policy=policy, instructions=instructions, count=count, lease=lease)
        return await self._run(compacting.leave_branch(self._sources, thread_id, to_entry, how))

    async def call_model(
        self,
        thread_id: str,
        model: Callable[[Context], T | Awaitable[T]],
        summarize: Summarizer = extractive,
        *,
        policy: CompactionPolicy = DEFAULT_POLICY,
        is_overflow: Callable[[BaseException], bool] = is_context_overflow,
        count: TokenCounter = estimate_text,
        lease: Lease | None = None,
        wait_seconds: float = WAIT_SECONDS,
    ) -> T:
        """Give the context to a model, compacted first if it is too full, and compacted once if the model says so.

        A compaction that somebody else is at is waited for and used; after ``wait_seconds`` it is CompactionClaimedError.
        """
        how = Compacting(summarize=summarize, policy=policy, count=count, lease=lease, wait_seconds=wait_seconds)
        answer: T = await self._run(calling.call_model(self._sources, thread_id, model, how, is_overflow))
        return answer

    async def suggest_title(self, thread_id: str, titler: Titler | None = None, *, limit: int = 60) -> Thread:
        """Give a thread without a title one: by the titler, or the user's first words."""
        return await self._run(titling.suggest_title(self._sources, thread_id, titler, limit))

    def watch(
        self, thread_id: str, *, after: str | UnsetType | None = UNSET, timeout: float | None = None
    ) -> AsyncIterator[Entry]:
        """New entries of a thread as they are committed, by any process.

        Starts now (under asyncio: at the first step), or after the entry ``after``, or with ``after=None`` at the
        thread's first own entry. Ends when nothing came for ``timeout`` seconds; without one it goes on until the
        caller stops.
        """
        return follow_async(self.store, thread_id, after, timeout)

    async def search(
        self,
        text: str,
        *,
        order: SearchOrder = "best",
        limit: int = 20,
        cursor: str | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> SearchPage:
        """Entries by what they say: words, "phrases", prefix*, -without, and filters such as role:user or after:7d.

        Filters are role, tool, model, file, label, thread, branch, before and after. A search sees everything that
        was committed before it began; ``progress`` hears how far the index has caught up.
        """
        operation = search.search(self._sources, text, order=order, limit=limit, cursor=cursor, progress=progress)
        return await self._run(operation)

    async def thread_ids(self, part: str, *, limit: int = 20) -> list[str]:
        """Ids of threads that begin or end with ``part``; only ``part`` itself where it is an id."""
        return await self._run(search.thread_ids(part, limit))

    async def entry_ids(self, thread_id: str, part: str, *, limit: int = 20) -> list[str]:
        """Ids of entries that the thread sees and that begin or end with ``part``."""
        return await self._run(search.entry_ids(thread_id, part, limit))

    async def export(self, thread_id: str, *, format: ExportFormat = "markdown", scope: Scope | None = None) -> str:
        """A thread as text: ``markdown`` of its path, or ``json`` or ``jsonl`` that ``import_sessions`` reads back.

        ``scope`` is ``path``, ``thread`` (every branch, the default) or ``tree`` (with all forks).
        """
        return await self._run(exports.export(thread_id, format, scope))

    async def events(self, thread_id: str, *, after: str | None = None, limit: int | None = None) -> list[Entry]:
        """The side events of a thread in order; ``after`` the id of the last entry that was seen goes on from there."""
        return await self._run(exports.events(thread_id, after, limit))

    async def delete_older_than(
        self, updated_before_ns: int, *, is_archived: bool | None = None, is_dry_run: bool = False
    ) -> list[Thread]:
        """Delete the threads that were last changed before a time, and say which; a dry run only says."""
        return await self._run(exports.delete_older_than(updated_before_ns, is_archived, is_dry_run=is_dry_run))

    async def stats(self) -> StoreStats:
        """How much is in the store."""
        return await self._run(views.stats())

    async def check(self) -> list[Finding]:
        """Everything in the store that breaks an invariant; an empty list is good news."""
        return await self._run(views.check())

    async def close(self) -> None:
        """Finish what is under way and release the store."""
        await self.store.aclose()

    async def _run(self, operation: Operation[T]) -> T:
        return await drive_async(operation, self.store)
