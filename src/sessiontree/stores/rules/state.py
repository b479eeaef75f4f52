"""What the rules look at and what they decide: plain values, no store behind them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from copy import deepcopy
from typing import NamedTuple, Protocol

import msgspec

from sessiontree.model import Lease, Move, Thread
from sessiontree.model.blobs import Blob, Pack
from sessiontree.stores.commands import Draft, Result

__all__ = [
    "Decision",
    "DropBlobs",
    "DropThread",
    "Fact",
    "Manifests",
    "Node",
    "PutEntry",
    "PutHead",
    "PutLease",
    "PutMove",
    "PutPack",
    "PutThread",
    "ThreadState",
    "View",
]


class Node(msgspec.Struct, frozen=True, gc=False):
    """Where an entry sits. ``depth``, ``messages`` and ``tokens`` add up the path from the root to it."""

    key: int
    id: str
    owner: int
    parent: int | None
    depth: int
    messages: int
    tokens: int


class ThreadState(msgspec.Struct, frozen=True, gc=False):
    """A thread inside a store. The fields that every append changes stand beside ``meta``, not in it.

    ``newest`` is the key of the last entry that was appended through it, 0 before the first one.
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
        """The thread as callers see it; they may change what is in ``custom``, it is theirs."""
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


class Manifests(NamedTuple):
    """The manifests of some checkpoint entries, and of all the others in the store."""

    theirs: frozenset[str]
    others: frozenset[str]


class View(Protocol):
    """What the rules may ask inside one transaction."""

    def thread(self, thread_id: str) -> ThreadState | None: ...
    def find(self, tree: int, entry_id: str) -> Node | None: ...
    def has_new(self, tree: int, entry_id: str) -> bool:
        """Whether an id is there that was made just now: a random source may repeat itself."""
        ...

    def draft(self, node: Node) -> Draft: ...
    def parent(self, node: Node) -> Node | None: ...
    def is_ancestor(self, node: Node, of: Node) -> bool: ...
    def moves(self, state: ThreadState) -> Sequence[Move]: ...
    def lease(self, state: ThreadState) -> Lease | None: ...
    def unseen_without(self, state: ThreadState) -> Sequence[int]: ...
    def owned(self, state: ThreadState) -> int: ...
    def tree_of(self, thread_id: str) -> int | None: ...
    def next_entry_key(self) -> int: ...
    def next_thread_key(self) -> int: ...
    def missing_blobs(self, hashes: Collection[str]) -> frozenset[str]: ...
    def blobs(self, hashes: Sequence[str]) -> list[Blob]: ...
    def blob_hashes(self) -> Collection[str]: ...
    def manifests(self, entries: Collection[int]) -> Manifests: ...


class PutThread(msgspec.Struct, frozen=True, gc=False):
    """A thread is new, or its metadata changed."""

    state: ThreadState


class PutHead(msgspec.Struct, frozen=True, gc=False):
    """Only the leaf, the counters or the fence of a thread changed."""

    state: ThreadState


class PutEntry(msgspec.Struct, frozen=True, gc=False):
    """A new entry; ``previous`` is the one that was appended through the same thread before it."""

    state: ThreadState
    node: Node
    parent_id: str | None
    previous: int
    draft: Draft


class PutMove(msgspec.Struct, frozen=True, gc=False):
    state: ThreadState
    move: Move


class PutLease(msgspec.Struct, frozen=True, gc=False):
    state: ThreadState
    lease: Lease | None


class DropThread(msgspec.Struct, frozen=True, gc=False):
    """A thread goes, and with it the entries that nobody sees any more."""

    state: ThreadState
    entries: tuple[int, ...]


class PutPack(msgspec.Struct, frozen=True, gc=False):
    """Blobs are new."""

    pack: Pack


class DropBlobs(msgspec.Struct, frozen=True, gc=False):
    """Blobs go that nothing needs any more."""

    hashes: frozenset[str]


Fact = PutThread | PutHead | PutEntry | PutMove | PutLease | DropThread | PutPack | DropBlobs


class Decision(msgspec.Struct, frozen=True, gc=False):
    """The answer to a command and what must be written for it to be true; no facts, nothing to write."""

    result: Result
    facts: tuple[Fact, ...] = ()
