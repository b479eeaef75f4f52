"""What a store can be asked: read-only requests, each with the type of its answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic, Protocol, TypeVar

from msgspec import UNSET, UnsetType

from sessiontree.model import Entry, Lease, Move, Page, Thread, ThreadQuery
from sessiontree.model._base import Progress, Record
from sessiontree.model.blobs import Blob, Blobs
from sessiontree.model.codec import StoreRequest
from sessiontree.search import SearchOrder, SearchPage, SearchQuery

__all__ = [
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
    "ReadEntries",
    "ReadEntry",
    "ReadLease",
    "ReadMoves",
    "ReadNews",
    "ReadPath",
    "ReadStats",
    "ReadThread",
    "Reads",
    "Search",
    "StoreStats",
]


T = TypeVar("T", covariant=True)


class Finding(Record, frozen=True, kw_only=True):
    """Something that is not as it should be: where, what, and whether ``doctor --repair`` can mend it."""

    kind: str
    place: str
    problem: str
    offset: int = 0
    thread_id: str = ""
    entry_id: str = ""
    is_repairable: bool = False


class StoreStats(Record, frozen=True, kw_only=True):
    threads: int = 0
    archived: int = 0
    entries: int = 0
    moves: int = 0
    leases: int = 0
    bytes: int = 0


class NewEntries(Record, frozen=True, kw_only=True):
    """Entries that were appended through a thread after ``cursor``, and the cursor to go on from."""

    entries: tuple[Entry, ...]
    cursor: int


class Reads(Blobs, Protocol):
    """The reading half of a store. An unknown thread is ThreadNotFoundError, an unseen entry EntryNotFoundError."""

    def thread(self, thread_id: str) -> Thread: ...
    def threads(self, query: ThreadQuery) -> Page: ...
    def entry(self, thread_id: str, entry_id: str) -> Entry: ...
    def entries(self, thread_id: str, after: str | None, limit: int | None) -> list[Entry]: ...
    def path(self, thread_id: str, leaf: str | UnsetType | None, limit: int | None) -> list[Entry]: ...
    def children(self, thread_id: str, entry_id: str | None) -> list[Entry]: ...
    def moves(self, thread_id: str) -> Sequence[Move]: ...
    def lease(self, thread_id: str) -> Lease | None: ...
    def news(self, thread_id: str, cursor: int | None) -> NewEntries: ...
    def thread_ids(self, part: str, limit: int) -> list[str]: ...
    def entry_ids(self, thread_id: str, part: str, limit: int) -> list[str]: ...
    def search(self, search: Search) -> SearchPage: ...
    def stats(self) -> StoreStats: ...
    def inspect(self, progress: Progress | None = None) -> list[Finding]: ...


class Query(StoreRequest, Generic[T], frozen=True, kw_only=True):
    """A request that a reader answers; the same object works on a sync and on an async reader."""

    def run(self, reads: Reads) -> T:
        raise NotImplementedError


class ReadThread(Query[Thread], frozen=True, kw_only=True):
    thread_id: str

    def run(self, reads: Reads) -> Thread:
        return reads.thread(self.thread_id)


class ListThreads(Query[Page], frozen=True, kw_only=True):
    query: ThreadQuery

    def run(self, reads: Reads) -> Page:
        return reads.threads(self.query)


class ReadEntry(Query[Entry], frozen=True, kw_only=True):
    thread_id: str
    entry_id: str

    def run(self, reads: Reads) -> Entry:
        return reads.entry(self.thread_id, self.entry_id)


class ReadEntries(Query[list[Entry]], frozen=True, kw_only=True):
    """All entries that a thread sees, every branch, in the order of their commits."""

    thread_id: str
    after: str | None = None
    limit: int | None = None

    def run(self, reads: Reads) -> list[Entry]:
        return reads.entries(self.thread_id, self.after, self.limit)


class ReadPath(Query[list[Entry]], frozen=True, kw_only=True):
    """Root to ``leaf`` (UNSET: the leaf of the thread); ``limit`` keeps the newest ones."""

    thread_id: str
    leaf: str | UnsetType | None = UNSET
    limit: int | None = None

    def run(self, reads: Reads) -> list[Entry]:
        return reads.path(self.thread_id, self.leaf, self.limit)


class ReadChildren(Query[list[Entry]], frozen=True, kw_only=True):
    """Children of an entry in the order of their commits; ``None`` asks for the roots."""

    thread_id: str
    entry_id: str | None

    def run(self, reads: Reads) -> list[Entry]:
        return reads.children(self.thread_id, self.entry_id)


class ReadMoves(Query[Sequence[Move]], frozen=True, kw_only=True):
    thread_id: str

    def run(self, reads: Reads) -> Sequence[Move]:
        return reads.moves(self.thread_id)


class ReadLease(Query[Lease | None], frozen=True, kw_only=True):
    thread_id: str

    def run(self, reads: Reads) -> Lease | None:
        return reads.lease(self.thread_id)


class ReadNews(Query[NewEntries], frozen=True, kw_only=True):
    """``cursor`` None: nothing yet, only the cursor of the present."""

    thread_id: str
    cursor: int | None = None

    def run(self, reads: Reads) -> NewEntries:
        return reads.news(self.thread_id, self.cursor)


class FindMissingBlobs(Query[frozenset[str]], frozen=True, kw_only=True):
    """Those of the hashes that the store does not have."""

    hashes: tuple[str, ...]

    def run(self, reads: Reads) -> frozenset[str]:
        return reads.missing_blobs(self.hashes)


class ReadBlobs(Query[list[Blob]], frozen=True, kw_only=True):
    hashes: tuple[str, ...]

    def run(self, reads: Reads) -> list[Blob]:
        return reads.blobs(self.hashes)


class FindThreads(Query[list[str]], frozen=True, kw_only=True):
    """Ids that begin or end with ``part``, in order; only ``part`` itself where it is an id."""

    part: str
    limit: int

    def run(self, reads: Reads) -> list[str]:
        return reads.thread_ids(self.part, self.limit)


class FindEntries(Query[list[str]], frozen=True, kw_only=True):
    """The same among the entries that a thread sees."""

    thread_id: str
    part: str
    limit: int

    def run(self, reads: Reads) -> list[str]:
        return reads.entry_ids(self.thread_id, self.part, self.limit)


class Search(Query[SearchPage], frozen=True, kw_only=True):
    """Entries that match, with everything that was committed before. Thread ids in the query are whole ones.

    ``progress`` hears how far an index has caught up: entries done, and entries there are.
    """

    query: SearchQuery
    order: SearchOrder = "best"
    limit: int = 20
    cursor: str | None = None
    progress: Progress | None = None

    def run(self, reads: Reads) -> SearchPage:
        return reads.search(self)


class ReadStats(Query[StoreStats], frozen=True, kw_only=True):
    def run(self, reads: Reads) -> StoreStats:
        return reads.stats()


class Inspect(Query[list[Finding]], frozen=True, kw_only=True):
    """Everything in the store that breaks an invariant. ``progress`` hears how much was looked at, and how much there is."""

    progress: Progress | None = None

    def run(self, reads: Reads) -> list[Finding]:
        return reads.inspect(self.progress)


AnyQuery = Query[Any]
