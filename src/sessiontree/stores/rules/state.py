"""What the rules read (``View``) and what they decide (``Decision``, a tuple of facts to write)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from copy import deepcopy
from typing import NamedTuple, Protocol

import msgspec

from sessiontree.model import Lease, Move, Thread
from sessiontree.model.blobs import Blob, Pack
from sessiontree.model.builders import ERASED
from sessiontree.model.codec import encode_payload
from sessiontree.model.documents import StoredDocument
from sessiontree.stores.commands import ChangeResult, Draft

__all__ = [
    "ERASED_BODY",
    "BlobRoots",
    "Decision",
    "DropBlobs",
    "DropDocument",
    "DropExpiredDocuments",
    "DropThread",
    "Fact",
    "LoggedMove",
    "Node",
    "PutDocument",
    "PutEntry",
    "PutErased",
    "PutHead",
    "PutLease",
    "PutMove",
    "PutPack",
    "PutPending",
    "PutThread",
    "ThreadState",
    "Tops",
    "View",
]


ERASED_BODY = encode_payload(ERASED)


class Node(msgspec.Struct, frozen=True, gc=False):
    """An entry's position in its tree. ``depth``, ``messages`` and ``tokens`` are sums over the path from the root.

    ``key`` numbers the entries of a store in commit order, ``owner`` is the key of the thread it was appended through.
    """

    key: int
    id: str
    owner: int
    parent: int | None
    depth: int
    messages: int
    tokens: int


class ThreadState(msgspec.Struct, frozen=True, gc=False):
    """A thread inside a store. The fields that every append changes are outside ``meta``.

    ``base`` is the fork point. ``fence`` is the highest lease token given out. ``newest`` is the key of the last entry
    appended through the thread, 0 before the first.
    """

    key: int
    tree: int
    meta: Thread
    leaf: Node | None
    base: Node | None
    updated_ns: int
    fence: int = 0
    moves: int = 0
    newest: int = 0

    def public(self) -> Thread:
        """The thread as callers get it, with copies of the dictionaries that they may change."""
        leaf = self.leaf
        meta = self.meta
        if meta.custom or meta.origin:
            meta = msgspec.structs.replace(meta, custom=deepcopy(meta.custom), origin=deepcopy(meta.origin))
        if leaf is None:
            return msgspec.structs.replace(meta, leaf=None, entries=0, messages=0, tokens=0, updated_ns=self.updated_ns)
        return msgspec.structs.replace(
            meta,
            leaf=leaf.id,
            entries=leaf.depth,
            messages=leaf.messages,
            tokens=leaf.tokens,
            updated_ns=self.updated_ns,
        )


class BlobRoots(NamedTuple):
    """The blobs that entries refer to: manifests, which need further blobs, and artifacts."""

    manifests: frozenset[str] = frozenset()
    artifacts: frozenset[str] = frozenset()


class Tops(NamedTuple):
    """The numbers of the moves that an undo and a redo would take back next; 0 if there is none.

    Of an undo, ``redo_below`` is what a redo would take back once this undo was redone.
    """

    undo: int
    redo: int
    redo_below: int = 0


class LoggedMove(NamedTuple):
    """A move in the reflog with the tops after it, which moves of older releases and imported ones do not have."""

    move: Move | None
    tops: Tops | None


class View(Protocol):
    """What the rules may read, within one transaction."""

    def thread(self, thread_id: str) -> ThreadState | None:
        """A thread, or None."""
        ...

    def find(self, tree: int, entry_id: str) -> Node | None:
        """An entry of a tree, whichever thread it was appended through."""
        ...

    def has_new(self, tree: int, entry_id: str) -> bool:
        """Whether an id that was just generated is taken: a random source may repeat itself."""
        ...

    def draft(self, node: Node) -> Draft:
        """The content of an entry."""
        ...

    def parent(self, node: Node) -> Node | None:
        """The parent of an entry."""
        ...

    def is_ancestor(self, node: Node, of: Node) -> bool:
        """Whether ``node`` is on the path from the root to ``of``."""
        ...

    def moves(self, state: ThreadState) -> Sequence[Move]:
        """The reflog of a thread."""
        ...

    def logged(self, state: ThreadState, number: int) -> LoggedMove:
        """A move of a thread by its number, with the tops after it."""
        ...

    def family(self, state: ThreadState) -> Sequence[ThreadState]:
        """The other threads of the tree."""
        ...

    def lease(self, state: ThreadState) -> Lease | None:
        """The lease of a thread, expired or not."""
        ...

    def unseen_without(self, state: ThreadState) -> Sequence[int]:
        """Keys of the entries that no thread but this one sees."""
        ...

    def seen_only_by(self, state: ThreadState, entry_ids: Collection[str]) -> Sequence[Node]:
        """Those of the entries that were appended through a thread and that no other thread sees."""
        ...

    def seen_by(self, state: ThreadState, entry_ids: Collection[str]) -> Sequence[Node]:
        """Those of the entries that a thread sees."""
        ...

    def owned(self, state: ThreadState) -> int:
        """How many entries were appended through a thread."""
        ...

    def tree_of(self, thread_id: str) -> int | None:
        """The tree named after a thread; it outlives the thread while forks of it exist."""
        ...

    def next_entry_key(self) -> int:
        """A key for a new entry, higher than all before."""
        ...

    def next_thread_key(self) -> int:
        """A key for a new thread."""
        ...

    def document(self, scope: str, key: str) -> StoredDocument | None:
        """A document, expired or not."""
        ...

    def missing_blobs(self, hashes: Collection[str]) -> frozenset[str]:
        """The hashes that are not in the store."""
        ...

    def blobs(self, hashes: Sequence[str]) -> list[Blob]:
        """Blobs, in the order of ``hashes``."""
        ...

    def blob_hashes(self) -> Collection[str]:
        """The hashes of all blobs."""
        ...

    def blob_roots(self, entries: Collection[int]) -> tuple[BlobRoots, BlobRoots]:
        """What these entries refer to, and what else is needed: by other entries, or as an artifact that is pending."""
        ...


class PutThread(msgspec.Struct, frozen=True, gc=False):
    """A new thread, or new metadata."""

    state: ThreadState


class PutHead(msgspec.Struct, frozen=True, gc=False):
    """A new leaf, new counters or a new fence; the metadata is unchanged."""

    state: ThreadState


class PutEntry(msgspec.Struct, frozen=True, gc=False):
    """A new entry; ``previous`` is the key of the entry appended through the same thread before it.

    One that ``is_aside`` does not become the leaf.
    """

    state: ThreadState
    node: Node
    parent_id: str | None
    previous: int
    draft: Draft
    is_aside: bool = False


class PutErased(msgspec.Struct, frozen=True, gc=False):
    """Entries whose contents become ``ERASED_BODY``; ``titles`` are those that threads may have got from them."""

    state: ThreadState
    nodes: tuple[Node, ...]
    titles: frozenset[str] = frozenset()


class PutMove(msgspec.Struct, frozen=True, gc=False):
    """A new move in the reflog, and what can be undone and redone after it."""

    state: ThreadState
    move: Move
    tops: Tops | None = None


class PutLease(msgspec.Struct, frozen=True, gc=False):
    """A new lease, or None where it ended."""

    state: ThreadState
    lease: Lease | None


class DropThread(msgspec.Struct, frozen=True, gc=False):
    """A deleted thread, and the keys of the entries deleted with it."""

    state: ThreadState
    entries: tuple[int, ...]


class PutPack(msgspec.Struct, frozen=True, gc=False):
    """New blobs."""

    pack: Pack


class PutPending(msgspec.Struct, frozen=True, gc=False):
    """Artifacts that are kept until the first entry that refers to them is appended."""

    hashes: frozenset[str]


class PutDocument(msgspec.Struct, frozen=True, gc=False):
    """A new or changed document."""

    document: StoredDocument


class DropDocument(msgspec.Struct, frozen=True, gc=False):
    """A deleted document."""

    scope: str
    key: str


class DropExpiredDocuments(msgspec.Struct, frozen=True, gc=False):
    """All documents that have expired at a time are deleted."""

    now_ns: int


class DropBlobs(msgspec.Struct, frozen=True, gc=False):
    """Blobs that no entry needs any more."""

    hashes: frozenset[str]


Fact = (
    PutThread
    | PutHead
    | PutEntry
    | PutErased
    | PutMove
    | PutLease
    | DropThread
    | PutPack
    | PutPending
    | DropBlobs
    | PutDocument
    | DropDocument
    | DropExpiredDocuments
)


class Decision(msgspec.Struct, frozen=True, gc=False):
    """The result of a command and the facts to write for it; a command that changes nothing has no facts."""

    result: ChangeResult
    facts: tuple[Fact, ...] = ()
