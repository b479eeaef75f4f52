"""Queries: every read that a store answers, each typed by its answer. Those of documents are in ``document_queries``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from msgspec import UNSET, UnsetType

from sessiontree.model import Entry, Lease, Move, NextMove, Page, Thread, ThreadQuery
from sessiontree.model._base import Progress, Record
from sessiontree.model.blobs import Blob, Blobs
from sessiontree.model.codec import EntryBody, StoreRequest
from sessiontree.model.documents import StoredDocument
from sessiontree.model.thread import Direction
from sessiontree.search import SearchOrder, SearchPage, SearchQuery
from sessiontree.stores.backup.snapshot import Snapshot, SnapshotRequest

if TYPE_CHECKING:
    from sessiontree.stores.document_queries import ListDocuments, ListScopes, ReadDocument

__all__ = [
    "RARE_MARKS",
    "RARE_TYPES",
    "FindEntries",
    "FindMissingBlobs",
    "FindThreads",
    "Finding",
    "Inspect",
    "ListThreads",
    "NewEntries",
    "Query",
    "ReadBlobs",
    "ReadChildren",
    "ReadClock",
    "ReadEntries",
    "ReadEntriesById",
    "ReadEntry",
    "ReadLastEntries",
    "ReadLease",
    "ReadMoves",
    "ReadNewEntries",
    "ReadNextMove",
    "ReadPath",
    "ReadPathBodies",
    "ReadStats",
    "ReadThread",
    "ReadThreadSizes",
    "Reads",
    "Search",
    "StoreStats",
    "TakeSnapshot",
]


T = TypeVar("T", covariant=True)
E = TypeVar("E", Entry, EntryBody)

RARE_TYPES = frozenset(
    {
        "thread_info",
        "system_message",
        "model_change",
        "active_tools_change",
        "compaction",
        "branch_summary",
        "run_failure",
        "label",
        "checkpoint",
        "memory",
        "queued",
    }
)
"""Types of entries that a store finds by an index. The others are frequent, so a walk from the newest one finds them."""

RARE_MARKS = tuple(sorted(name[:5].encode() for name in RARE_TYPES))
"""The bytes 10 to 14 of the body of an entry of a rare type, and of no frequent one: SQL indexes select by them."""


class Finding(Record, frozen=True, kw_only=True):
    """A broken invariant: where, what, and whether ``doctor --repair`` can fix it."""

    kind: str
    place: str
    problem: str
    offset: int = 0
    thread_id: str = ""
    entry_id: str = ""
    is_repairable: bool = False


class StoreStats(Record, frozen=True, kw_only=True):
    """Counts over a whole store."""

    threads: int = 0
    archived: int = 0
    entries: int = 0
    moves: int = 0
    leases: int = 0
    bytes: int = 0


class NewEntries(Record, frozen=True, kw_only=True):
    """Entries appended through a thread after a cursor, and the cursor to continue from."""

    entries: tuple[Entry, ...]
    cursor: int


class Reads(Blobs, Protocol):
    """The read methods of a store, one for each query.

    An unknown thread raises ThreadNotFoundError; an entry that the thread does not see raises EntryNotFoundError.
    """

    def thread(self, thread_id: str) -> Thread:
        """The thread."""
        ...

    def threads(self, query: ThreadQuery) -> Page:
        """A page of threads."""
        ...

    def entry(self, thread_id: str, entry_id: str) -> Entry:
        """An entry that the thread sees."""
        ...

    def entries(self, query: ReadEntries) -> list[Entry]:
        """The entries that the thread sees and that the query selects."""
        ...

    def entries_by_id(self, entry_ids: tuple[str, ...], thread_id: str | None) -> list[Entry]:
        """The entries with these ids that the thread sees, or without a thread those of all trees; missing ones are left out."""
        ...

    def last_entries(self, thread_ids: tuple[str, ...]) -> dict[str, Entry]:
        """The leaf of each thread that exists and is not empty."""
        ...

    def path(self, query: ReadPath) -> list[Entry]:
        """The entries from the root to the leaf that the query names."""
        ...

    def path_bodies(self, query: ReadPath) -> list[EntryBody]:
        """The same entries, as they are stored."""
        ...

    def children(self, thread_id: str, entry_id: str | None) -> list[Entry]:
        """The children of an entry, in commit order; None gives the roots."""
        ...

    def moves(self, thread_id: str) -> Sequence[Move]:
        """The reflog, oldest first."""
        ...

    def next_move(self, thread_id: str, direction: Direction) -> NextMove:
        """The move that an undo or redo would make."""
        ...

    def lease(self, thread_id: str) -> Lease | None:
        """The lease, expired or not."""
        ...

    def clock(self, now_ns: int) -> int:
        """The time by which leases and claims expire: the store's if many machines share it, else ``now_ns``."""
        ...

    def new_entries(self, thread_id: str, cursor: int | None) -> NewEntries:
        """Entries appended after ``cursor``; None gives no entries, only the current cursor."""
        ...

    def thread_ids(self, part: str, limit: int) -> list[str]:
        """Sorted thread ids that start or end with ``part``; only ``part`` if it is itself an id."""
        ...

    def entry_ids(self, thread_id: str, part: str, limit: int) -> list[str]:
        """The same for the entries that the thread sees."""
        ...

    def document(self, query: ReadDocument) -> StoredDocument | None:
        """A document."""
        ...

    def scopes(self, query: ListScopes) -> list[str]:
        """Scopes of documents."""
        ...

    def documents(self, query: ListDocuments) -> list[StoredDocument]:
        """Documents of a scope."""
        ...

    def search(self, search: Search) -> SearchPage:
        """A page of entries that match."""
        ...

    def stats(self) -> StoreStats:
        """Counts over the whole store."""
        ...

    def thread_sizes(self) -> dict[str, int]:
        """How many bytes the entries take that were appended through each thread."""
        ...

    def inspect(self, progress: Progress | None = None) -> list[Finding]:
        """Every broken invariant."""
        ...

    def snapshot(self, request: SnapshotRequest) -> Snapshot:
        """The files of the store at one moment. Raises BackupError if the store has none."""
        ...


class Query(StoreRequest, Generic[T], frozen=True, kw_only=True):
    """A read; ``run`` calls the method of ``Reads`` that answers it.

    The PostgreSQL store passes an object whose methods return generators of statements, so ``run`` must do nothing else.
    """

    def run(self, reads: Reads) -> T:
        """Call the method that answers this query."""
        raise NotImplementedError


class ReadThread(Query[Thread], frozen=True, kw_only=True):
    """One thread."""

    thread_id: str

    def run(self, reads: Reads) -> Thread:
        return reads.thread(self.thread_id)


class ListThreads(Query[Page], frozen=True, kw_only=True):
    """A page of threads; ``stores.listing`` defines filters, order and cursors."""

    query: ThreadQuery

    def run(self, reads: Reads) -> Page:
        return reads.threads(self.query)


class ReadEntry(Query[Entry], frozen=True, kw_only=True):
    """One entry that a thread sees."""

    thread_id: str
    entry_id: str

    def run(self, reads: Reads) -> Entry:
        return reads.entry(self.thread_id, self.entry_id)


class ReadEntries(Query[list[Entry]], frozen=True, kw_only=True):
    """Entries that a thread sees, on every branch, in commit order or with ``newest_first`` in the reverse order.

    ``after`` starts behind an entry, in the order of the answer. ``types`` keeps entries of these types, ``turn_id`` those
    of a turn; ``limit`` keeps the first ones of what is left.
    """

    thread_id: str
    after: str | None = None
    limit: int | None = None
    newest_first: bool = False
    types: frozenset[str] | None = None
    turn_id: str | None = None

    def run(self, reads: Reads) -> list[Entry]:
        return reads.entries(self)

    def wants(self, type: str, turn_id: str) -> bool:
        """Whether an entry of this type and turn is selected."""
        return (self.types is None or type in self.types) and self.turn_id in (None, turn_id)

    def select(self, entries: Iterable[Entry]) -> list[Entry]:
        """The entries that are selected, of those that follow ``after`` in the order of the answer."""
        return list(islice((entry for entry in entries if self.wants(entry.type, entry.turn_id)), self.limit))

    @property
    def is_filtered(self) -> bool:
        """Whether entries are left out because of their type or turn."""
        return self.types is not None or self.turn_id is not None

    @property
    def rare_types(self) -> frozenset[str]:
        """The types, if only entries of rare types are selected; else nothing."""
        return self.types if self.types is not None and self.types <= RARE_TYPES else frozenset()

    @property
    def rare_marks(self) -> tuple[bytes, ...]:
        """The bytes 10 to 14 of the bodies of entries of the rare types."""
        return tuple(sorted(name[:5].encode() for name in self.rare_types))

    @property
    def rare_limit(self) -> int | None:
        """How many entries of the rare types are enough."""
        return self.limit if self.turn_id is None else None


class ReadEntriesById(Query[list[Entry]], frozen=True, kw_only=True):
    """The entries with these ids that a thread sees, in the order of the ids; without a thread, those of all trees."""

    entry_ids: tuple[str, ...]
    thread_id: str | None = None

    def run(self, reads: Reads) -> list[Entry]:
        return reads.entries_by_id(self.entry_ids, self.thread_id)


class ReadLastEntries(Query[dict[str, Entry]], frozen=True, kw_only=True):
    """The leaf of each of these threads, by thread id."""

    thread_ids: tuple[str, ...]

    def run(self, reads: Reads) -> dict[str, Entry]:
        return reads.last_entries(self.thread_ids)


class ReadPath(Query[list[Entry]], frozen=True, kw_only=True):
    """The entries from the root to ``leaf`` (UNSET: the thread's leaf).

    ``types`` keeps entries of these types, and ``limit`` the newest of what is left.
    """

    thread_id: str
    leaf: str | UnsetType | None = UNSET
    limit: int | None = None
    types: frozenset[str] | None = None

    def run(self, reads: Reads) -> list[Entry]:
        return reads.path(self)

    def select(self, entries: Iterable[E]) -> list[E]:
        """The entries that are selected, root first, of those of a path, leaf first."""
        found = islice((entry for entry in entries if self.types is None or entry.type in self.types), self.limit)
        return list(found)[::-1]


class ReadPathBodies(Query[list[EntryBody]], frozen=True, kw_only=True):
    """The entries of a path as they are stored."""

    path: ReadPath

    def run(self, reads: Reads) -> list[EntryBody]:
        return reads.path_bodies(self.path)


class ReadChildren(Query[list[Entry]], frozen=True, kw_only=True):
    """The children of an entry, in commit order; None gives the roots."""

    thread_id: str
    entry_id: str | None

    def run(self, reads: Reads) -> list[Entry]:
        return reads.children(self.thread_id, self.entry_id)


class ReadMoves(Query[Sequence[Move]], frozen=True, kw_only=True):
    """The reflog of a thread, oldest first."""

    thread_id: str

    def run(self, reads: Reads) -> Sequence[Move]:
        return reads.moves(self.thread_id)


class ReadNextMove(Query[NextMove], frozen=True, kw_only=True):
    """The move that an undo or a redo would take back: ``rules.leaf.next_move`` in one consistent read."""

    thread_id: str
    direction: Direction

    def run(self, reads: Reads) -> NextMove:
        return reads.next_move(self.thread_id, self.direction)


class ReadLease(Query[Lease | None], frozen=True, kw_only=True):
    """The lease of a thread, expired or not."""

    thread_id: str

    def run(self, reads: Reads) -> Lease | None:
        return reads.lease(self.thread_id)


class ReadClock(Query[int], frozen=True, kw_only=True):
    """The time by which leases and claims expire. ``now_ns`` is the caller's."""

    now_ns: int

    def run(self, reads: Reads) -> int:
        return reads.clock(self.now_ns)


class ReadNewEntries(Query[NewEntries], frozen=True, kw_only=True):
    """Entries appended after ``cursor``; None gives no entries, only the current cursor."""

    thread_id: str
    cursor: int | None = None

    def run(self, reads: Reads) -> NewEntries:
        return reads.new_entries(self.thread_id, self.cursor)


class FindMissingBlobs(Query[frozenset[str]], frozen=True, kw_only=True):
    """The hashes that are not in the store."""

    hashes: tuple[str, ...]

    def run(self, reads: Reads) -> frozenset[str]:
        return reads.missing_blobs(self.hashes)


class ReadBlobs(Query[list[Blob]], frozen=True, kw_only=True):
    """Blobs, in the order of ``hashes``."""

    hashes: tuple[str, ...]

    def run(self, reads: Reads) -> list[Blob]:
        return reads.blobs(self.hashes)


class FindThreads(Query[list[str]], frozen=True, kw_only=True):
    """Sorted thread ids that start or end with ``part``; only ``part`` if it is itself an id."""

    part: str
    limit: int

    def run(self, reads: Reads) -> list[str]:
        return reads.thread_ids(self.part, self.limit)


class FindEntries(Query[list[str]], frozen=True, kw_only=True):
    """Sorted ids of entries that a thread sees and that start or end with ``part``; only ``part`` if it is an id."""

    thread_id: str
    part: str
    limit: int

    def run(self, reads: Reads) -> list[str]:
        return reads.entry_ids(self.thread_id, self.part, self.limit)


class Search(Query[SearchPage], frozen=True, kw_only=True):
    """Entries that match, including everything committed before. Thread ids in the query are complete.

    ``progress(done, total)`` is called with entry counts while an index catches up.
    """

    query: SearchQuery
    order: SearchOrder = "best"
    limit: int = 20
    cursor: str | None = None
    progress: Progress | None = None

    def run(self, reads: Reads) -> SearchPage:
        return reads.search(self)


class ReadStats(Query[StoreStats], frozen=True, kw_only=True):
    """Counts over the whole store."""

    def run(self, reads: Reads) -> StoreStats:
        return reads.stats()


class ReadThreadSizes(Query[dict[str, int]], frozen=True, kw_only=True):
    """How many bytes the entries take that were appended through each thread; nothing for threads without."""

    def run(self, reads: Reads) -> dict[str, int]:
        return reads.thread_sizes()


class Inspect(Query[list[Finding]], frozen=True, kw_only=True):
    """Every broken invariant in the store. ``progress(done, total)`` is called with entry or byte counts."""

    progress: Progress | None = None

    def run(self, reads: Reads) -> list[Finding]:
        return reads.inspect(self.progress)


class TakeSnapshot(Query[Snapshot], frozen=True, kw_only=True):
    """The files of the store at one moment, for a backup."""

    request: SnapshotRequest

    def run(self, reads: Reads) -> Snapshot:
        return reads.snapshot(self.request)


AnyQuery = Query[Any]
