"""Trees in memory: what the rules read in the memory store and in a JSONL file that was loaded."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import islice
from typing import Protocol

from msgspec import UnsetType

from sessiontree.errors import BlobNotFoundError, EntryNotFoundError
from sessiontree.model import Checkpoint, Entry, Lease, Move
from sessiontree.model.blobs import Blob, Blobs, unpacked
from sessiontree.stores.commands import Draft
from sessiontree.stores.rules.append import visible
from sessiontree.stores.rules.state import (
    BlobRoots,
    DropBlobs,
    DropThread,
    Fact,
    Node,
    PutEntry,
    PutErased,
    PutHead,
    PutLease,
    PutMove,
    PutPack,
    PutPending,
    PutThread,
    ThreadState,
)

__all__ = ["BlobStore", "MemoryBlobs", "TreeState"]


class TreeState:
    """Threads, nodes, moves and leases in dictionaries: a ``View`` that ``apply`` changes.

    ``draft_of`` returns the content of a node.
    """

    def __init__(self, draft_of: Callable[[Node], Draft]) -> None:
        self.draft = draft_of
        self.states: dict[str, ThreadState] = {}
        self.nodes: dict[int, Node] = {}
        self.by_id: dict[tuple[int, str], Node] = {}
        self.owned_keys: dict[int, list[int]] = {}
        self.reflogs: dict[int, list[Move]] = {}
        self.leases: dict[int, Lease] = {}
        self.owner_ids: dict[int, str] = {}
        self.trees: dict[str, int] = {}
        self.checkpoints: dict[int, str] = {}
        """Manifests by the key of their checkpoint entry."""
        self.artifacts: dict[int, tuple[str, ...]] = {}
        """Artifacts by the key of the entry that refers to them."""
        self.blob_store: BlobStore = MemoryBlobs()
        self.roots_elsewhere: Callable[[], BlobRoots] = BlobRoots
        """What the entries in other files of the store refer to."""
        self._last_entry_key = 0
        self._last_thread_key = 0

    def thread(self, thread_id: str) -> ThreadState | None:
        return self.states.get(thread_id)

    def find(self, tree: int, entry_id: str) -> Node | None:
        return self.by_id.get((tree, entry_id))

    def has_new(self, tree: int, entry_id: str) -> bool:
        return (tree, entry_id) in self.by_id

    def parent(self, node: Node) -> Node | None:
        return None if node.parent is None else self.nodes[node.parent]

    def is_ancestor(self, node: Node, of: Node) -> bool:
        return any(above.key == node.key for above in self.upwards(of))

    def moves(self, state: ThreadState) -> Sequence[Move]:
        return self.reflogs.get(state.key, [])

    def lease(self, state: ThreadState) -> Lease | None:
        return self.leases.get(state.key)

    def owned(self, state: ThreadState) -> int:
        return len(self.owned_keys.get(state.key, ()))

    def tree_of(self, thread_id: str) -> int | None:
        return self.trees.get(thread_id)

    def unseen_without(self, state: ThreadState) -> Sequence[int]:
        """Keys of the entries that no thread but this one sees."""
        owners = {other.key for other in self._family(state)}
        inherited = self._inherited(state)
        tree_nodes = (node for (tree, _), node in self.by_id.items() if tree == state.tree)
        return [node.key for node in tree_nodes if node.owner not in owners and node.key not in inherited]

    def seen_only_by(self, state: ThreadState, entry_ids: Collection[str]) -> Sequence[Node]:
        """Those of the entries that were appended through a thread and that no other thread sees."""
        inherited = self._inherited(state)
        found = (self.by_id.get((state.tree, entry_id)) for entry_id in dict.fromkeys(entry_ids))
        return [node for node in found if node and node.owner == state.key and node.key not in inherited]

    def missing_blobs(self, hashes: Collection[str]) -> frozenset[str]:
        return self.blob_store.missing_blobs(hashes)

    def blobs(self, hashes: Sequence[str]) -> list[Blob]:
        return self.blob_store.blobs(hashes)

    def blob_hashes(self) -> Collection[str]:
        return self.blob_store.blob_hashes()

    def blob_roots(self, entries: Collection[int]) -> tuple[BlobRoots, BlobRoots]:
        chosen = set(entries)
        theirs = self._roots(chosen)
        if theirs == BlobRoots():
            return theirs, BlobRoots()
        others, elsewhere = self._roots(self.nodes.keys() - chosen), self.roots_elsewhere()
        pending = self.blob_store.pending_artifacts()
        return theirs, BlobRoots(
            others.manifests | elsewhere.manifests, others.artifacts | elsewhere.artifacts | pending
        )

    def all_roots(self) -> BlobRoots:
        """What all entries refer to."""
        return self._roots(self.nodes.keys())

    def next_entry_key(self) -> int:
        self._last_entry_key += 1
        return self._last_entry_key

    def next_thread_key(self) -> int:
        self._last_thread_key += 1
        return self._last_thread_key

    def apply(self, fact: Fact) -> None:
        """Change the dictionaries as a fact says; blobs are not kept here."""
        match fact:
            case PutEntry(state=state, node=node, draft=draft):
                self._put_entry(state, node)
                if isinstance(draft.payload, Checkpoint):
                    self.checkpoints[node.key] = draft.payload.manifest
                if draft.artifacts:
                    self.artifacts[node.key] = draft.artifacts
            case PutErased(nodes=nodes):
                for node in nodes:
                    self.artifacts.pop(node.key, None)
            case PutHead(state=state):
                self.states[state.meta.id] = state
            case PutThread(state=state):
                self._put_thread(state)
            case PutMove(state=state, move=move):
                self.reflogs.setdefault(state.key, []).append(move)
            case PutLease(state=state, lease=None):
                self.leases.pop(state.key, None)
            case PutLease(state=state, lease=lease) if lease is not None:
                self.leases[state.key] = lease
            case DropThread(state=state, entries=entries):
                self._drop(state, entries)

    def _roots(self, keys: Collection[int]) -> BlobRoots:
        manifests = (manifest for key, manifest in self.checkpoints.items() if key in keys)
        artifacts = (name for key, names in self.artifacts.items() if key in keys for name in names)
        return BlobRoots(frozenset(manifests), frozenset(artifacts))

    def upwards(self, node: Node | None) -> Iterator[Node]:
        """Yield a node and its ancestors, the root last."""
        while node is not None:
            yield node
            node = self.parent(node)

    def tip(self, state: ThreadState, leaf: str | UnsetType | None) -> Node | None:
        """The node that a path ends with: ``leaf``, or the thread's leaf if it is UNSET."""
        match leaf:
            case None:
                return None
            case str():
                return self.visible_node(state, leaf)
            case _:
                return state.leaf

    def path(self, tip: Node | None, limit: int | None) -> list[Node]:
        """The nodes from the root to ``tip``; ``limit`` keeps the newest."""
        nodes = list(islice(self.upwards(tip), limit))
        nodes.reverse()
        return nodes

    def visible_nodes(self, state: ThreadState, after: str | None = None) -> list[Node]:
        """The nodes that a thread sees, in commit order, after an entry if one is given."""
        start = 0 if after is None else self.visible_node(state, after).key
        keys = set(self.owned_keys.get(state.key, ()))
        keys.update(node.key for node in self.upwards(state.base))
        return [self.nodes[key] for key in sorted(keys) if key > start]

    def visible_node(self, state: ThreadState, entry_id: str) -> Node:
        """A node that a thread sees; raise EntryNotFoundError if it does not."""
        node = visible(self, state, entry_id)
        if node is None:
            raise EntryNotFoundError(state.meta.id, entry_id)
        return node

    def children(self, state: ThreadState, entry_id: str | None) -> list[Node]:
        """The children of an entry that a thread sees; None gives the roots."""
        parent = None if entry_id is None else self.visible_node(state, entry_id).key
        return [node for node in self.visible_nodes(state) if node.parent == parent]

    def appended_after(self, state: ThreadState, cursor: int | None) -> tuple[list[Node], int]:
        """The nodes appended through a thread after a cursor, and the cursor to continue from; None gives no nodes."""
        keys = self.owned_keys.get(state.key, [])
        last = keys[-1] if keys else 0
        if cursor is None:
            return [], last
        return [self.nodes[key] for key in keys if key > cursor], max(cursor, last)

    def entry(self, node: Node) -> Entry:
        """The entry at a node."""
        draft = self.draft(node)
        return Entry(
            id=node.id,
            thread_id=self.owner_ids[node.owner],
            parent=None if node.parent is None else self.nodes[node.parent].id,
            created_ns=draft.created_ns,
            turn_id=draft.turn_id,
            payload=draft.payload,
        )

    def _family(self, state: ThreadState) -> list[ThreadState]:
        return [other for other in self.states.values() if other.tree == state.tree and other.key != state.key]

    def _inherited(self, state: ThreadState) -> set[int]:
        """Keys of the entries that other threads of the tree have from their fork points."""
        inherited: set[int] = set()
        for other in self._family(state):
            for node in self.upwards(other.base):
                if node.key in inherited:
                    break
                inherited.add(node.key)
        return inherited

    def _put_thread(self, state: ThreadState) -> None:
        self.states[state.meta.id] = state
        self.owner_ids[state.key] = state.meta.id
        self.trees.setdefault(state.meta.tree, state.tree)
        self._last_thread_key = max(self._last_thread_key, state.key)

    def _put_entry(self, state: ThreadState, node: Node) -> None:
        self.nodes[node.key] = node
        self.by_id[state.tree, node.id] = node
        self.owned_keys.setdefault(node.owner, []).append(node.key)
        self._last_entry_key = max(self._last_entry_key, node.key)

    def _drop(self, state: ThreadState, entries: Sequence[int]) -> None:
        del self.states[state.meta.id]
        self.reflogs.pop(state.key, None)
        self.leases.pop(state.key, None)
        for key in entries:
            node = self.nodes.pop(key)
            self.checkpoints.pop(key, None)
            self.artifacts.pop(key, None)
            del self.by_id[state.tree, node.id]
        gone = set(entries)
        for owner, keys in list(self.owned_keys.items()):
            self.owned_keys[owner] = [key for key in keys if key not in gone]
        if not any(other.tree == state.tree for other in self.states.values()):
            self.trees = {name: tree for name, tree in self.trees.items() if tree != state.tree}


class BlobStore(Blobs, Protocol):
    """Where the blobs are; they are shared by all trees."""

    def blob_hashes(self) -> Collection[str]:
        """The hashes of all blobs."""
        ...

    def pending_artifacts(self) -> frozenset[str]:
        """The hashes of artifacts that no entry has referred to yet."""
        ...


class MemoryBlobs:
    """Blobs in a dictionary."""

    def __init__(self) -> None:
        self._blobs: dict[str, Blob] = {}
        self._pending: set[str] = set()

    def missing_blobs(self, hashes: Collection[str]) -> frozenset[str]:
        return frozenset(hashes).difference(self._blobs)

    def blobs(self, hashes: Sequence[str]) -> list[Blob]:
        try:
            return [self._blobs[name] for name in hashes]
        except KeyError as error:
            raise BlobNotFoundError(str(error.args[0])) from None

    def blob_hashes(self) -> Collection[str]:
        return self._blobs.keys()

    def pending_artifacts(self) -> frozenset[str]:
        return frozenset(self._pending)

    def apply(self, fact: Fact) -> None:
        """Add or remove the blobs of a fact."""
        match fact:
            case PutPending(hashes=hashes):
                self._pending |= hashes
            case PutEntry(draft=draft):
                self._pending.difference_update(draft.artifacts)
            case PutPack(pack=pack):
                self._blobs.update((blob.hash, blob) for blob in unpacked(pack))
            case DropBlobs(hashes=hashes):
                for name in hashes:
                    self._blobs.pop(name, None)

    @property
    def size(self) -> int:
        """How many bytes the blobs take."""
        return sum(len(blob.body) for blob in self._blobs.values())
