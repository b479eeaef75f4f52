"""Trees in memory: what the rules read in the memory store and in a JSONL file that was loaded."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from copy import copy
from itertools import islice
from typing import Protocol, Self

from msgspec import UnsetType

from sessiontree.errors import BlobNotFoundError, EntryNotFoundError
from sessiontree.model import Checkpoint, Entry, Lease, Move
from sessiontree.model.blobs import Blob, Blobs, unpacked
from sessiontree.model.documents import StoredDocument
from sessiontree.model.entry import entry_type
from sessiontree.stores.commands import Draft
from sessiontree.stores.queries import RARE_TYPES, ReadEntries, ReadPath
from sessiontree.stores.rules.append import visible
from sessiontree.stores.rules.reflog import tops_after
from sessiontree.stores.rules.state import (
    BlobRoots,
    DropBlobs,
    DropDocument,
    DropExpiredDocuments,
    DropThread,
    Fact,
    LoggedMove,
    Node,
    PutDocument,
    PutEntry,
    PutErased,
    PutHead,
    PutLease,
    PutMove,
    PutPack,
    PutPending,
    PutThread,
    ThreadState,
    Tops,
)

__all__ = ["BlobStore", "MemoryBlobs", "TreeState"]


class TreeState:
    """Threads, nodes, moves and leases in dictionaries: a ``View`` that ``apply`` changes.

    ``draft_of`` returns the content of a node. Whatever grows with the entries consists of strings, numbers and nodes
    only, so that the garbage collector does not walk over it: at a million entries that takes 0.2 seconds.
    """

    def __init__(self, draft_of: Callable[[Node], Draft]) -> None:
        self.draft = draft_of
        self.states: dict[str, ThreadState] = {}
        self.nodes: dict[int, Node] = {}
        self.by_id: dict[int, dict[str, Node]] = {}
        """Nodes by tree and id."""
        self.owned_keys: dict[int, array[int]] = {}
        """Keys of entries by owner, in ascending order."""
        self.reflogs: dict[int, list[Move]] = {}
        self.leases: dict[int, Lease] = {}
        self.owner_ids: dict[int, str] = {}
        self.trees: dict[str, int] = {}
        self.checkpoints: dict[int, str] = {}
        """Manifests by the key of their checkpoint entry."""
        self.artifacts: dict[int, tuple[str, ...]] = {}
        """Artifacts by the key of the entry that refers to them."""
        self.rare: dict[tuple[int, str], list[int]] = {}
        """Keys of entries by owner and type, for the types that are found by an index."""
        self.documents: dict[tuple[str, str], StoredDocument] = {}
        self.tops: dict[int, list[Tops | None]] = {}
        self._children: _Children | None = None
        self.blob_store: BlobStore = MemoryBlobs()
        self.roots_elsewhere: Callable[[], BlobRoots] = BlobRoots
        """What the entries in other files of the store refer to."""
        self._last_entry_key = 0
        self._last_thread_key = 0

    def copy(self) -> Self:
        """A copy that does not change with this one."""
        twin = copy(self)
        for name, value in vars(self).items():
            if isinstance(value, dict):
                setattr(twin, name, dict(value))
        twin.by_id = {tree: dict(nodes) for tree, nodes in self.by_id.items()}
        twin.owned_keys = {key: keys[:] for key, keys in self.owned_keys.items()}
        twin.reflogs = {key: [*moves] for key, moves in self.reflogs.items()}
        twin.tops = {key: [*tops] for key, tops in self.tops.items()}
        twin.rare = {place: [*keys] for place, keys in self.rare.items()}
        twin._children = None  # noqa: SLF001  of the same class
        return twin

    def thread(self, thread_id: str) -> ThreadState | None:
        return self.states.get(thread_id)

    def find(self, tree: int, entry_id: str) -> Node | None:
        return self._nodes_of(tree).get(entry_id)

    def has_new(self, tree: int, entry_id: str) -> bool:
        return entry_id in self._nodes_of(tree)

    def parent(self, node: Node) -> Node | None:
        return None if node.parent is None else self.nodes[node.parent]

    def is_ancestor(self, node: Node, of: Node) -> bool:
        return any(above.key == node.key for above in self.upwards(of))

    def moves(self, state: ThreadState) -> Sequence[Move]:
        return self.reflogs.get(state.key, [])

    def logged(self, state: ThreadState, number: int) -> LoggedMove:
        return LoggedMove(self.reflogs[state.key][number - 1], self.tops[state.key][number - 1])

    def family(self, state: ThreadState) -> Sequence[ThreadState]:
        return [other for other in self.states.values() if other.tree == state.tree and other.key != state.key]

    def lease(self, state: ThreadState) -> Lease | None:
        return self.leases.get(state.key)

    def owned(self, state: ThreadState) -> int:
        return len(self.owned_keys.get(state.key, ()))

    def tree_of(self, thread_id: str) -> int | None:
        return self.trees.get(thread_id)

    def unseen_without(self, state: ThreadState) -> Sequence[int]:
        """Keys of the entries that no thread but this one sees."""
        owners = {other.key for other in self.family(state)}
        inherited = self._inherited(state)
        nodes = self._nodes_of(state.tree).values()
        return [node.key for node in nodes if node.owner not in owners and node.key not in inherited]

    def seen_only_by(self, state: ThreadState, entry_ids: Collection[str]) -> Sequence[Node]:
        """Those of the entries that were appended through a thread and that no other thread sees."""
        inherited = self._inherited(state)
        found = (self.find(state.tree, entry_id) for entry_id in dict.fromkeys(entry_ids))
        return [node for node in found if node and node.owner == state.key and node.key not in inherited]

    def seen_by(self, state: ThreadState, entry_ids: Collection[str]) -> Sequence[Node]:
        """Those of the entries that a thread sees."""
        return list(self.found(entry_ids, state))

    def document(self, scope: str, key: str) -> StoredDocument | None:
        return self.documents.get((scope, key))

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
                self.add_node(state.tree, node, entry_type(draft.payload))
                if isinstance(draft.payload, Checkpoint):
                    self.checkpoints[node.key] = draft.payload.manifest
                if draft.artifacts:
                    self.artifacts[node.key] = draft.artifacts
            case PutHead(state=state):
                self.states[state.meta.id] = state
            case PutThread(state=state):
                self._put_thread(state)
            case PutMove(state=state, move=move, tops=tops):
                known = tops or tops_after(self, state, move)
                self.reflogs.setdefault(state.key, []).append(move)
                self.tops.setdefault(state.key, []).append(known)
            case PutErased(nodes=nodes):
                keys = {node.key for node in nodes}
                self._forget_rare(keys)
                for key in keys:
                    self.artifacts.pop(key, None)
                    self.checkpoints.pop(key, None)
            case PutLease(state=state, lease=None):
                self.leases.pop(state.key, None)
            case PutLease(state=state, lease=lease) if lease is not None:
                self.leases[state.key] = lease
            case DropThread(state=state, entries=entries):
                self._drop(state, entries)
            case PutDocument(document=document):
                self.documents[document.scope, document.key] = document
            case DropDocument(scope=scope, key=key):
                del self.documents[scope, key]
            case DropExpiredDocuments(now_ns=now):
                kept = {place: held for place, held in self.documents.items() if not held.is_expired(now)}
                self.documents = kept

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

    def path_back(self, state: ThreadState, query: ReadPath) -> Iterator[Node]:
        """The nodes that a query may select, the leaf first."""
        nodes = self.upwards(self.tip(state, query.leaf))
        return islice(nodes, query.limit) if query.types is None else nodes

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

    def candidates(self, state: ThreadState, query: ReadEntries) -> Iterable[Node]:
        """The nodes that a query may select, in the order of its answer."""
        if query.rare_types:
            start = None if query.after is None else self.visible_node(state, query.after).key
            return self._rare_nodes(state, query.rare_types, start, newest_first=query.newest_first)
        if not query.newest_first:
            return self.visible_nodes(state, query.after)
        nodes_back = self._backwards(state)
        if query.after is None:
            return nodes_back
        last = self.visible_node(state, query.after).key
        return (node for node in nodes_back if node.key < last)

    def _backwards(self, state: ThreadState) -> Iterator[Node]:
        for key in reversed(self.owned_keys.get(state.key, ())):
            yield self.nodes[key]
        yield from self.upwards(state.base)

    def _rare_nodes(
        self, state: ThreadState, types: Collection[str], start: int | None, *, newest_first: bool
    ) -> Iterator[Node]:
        """Yield the nodes of rare types that a thread sees after ``start``, in the order of their keys or the reverse."""
        lists = [self.rare.get((state.key, name), []) for name in types]
        if state.base is not None:
            lists.append(self._rare_inherited(state.base, types))
        # One list, as for labels and queued messages, is in order already.
        keys = lists[0] if len(lists) == 1 else sorted(key for found in lists for key in found)
        if newest_first:
            last = len(keys) if start is None else bisect_left(keys, start)
            return (self.nodes[keys[at]] for at in range(last - 1, -1, -1))
        first = 0 if start is None else bisect_right(keys, start)
        return (self.nodes[keys[at]] for at in range(first, len(keys)))

    def _rare_inherited(self, base: Node, types: Collection[str]) -> list[int]:
        inherited = {node.key for node in self.upwards(base)}
        return [key for (_, name), keys in self.rare.items() if name in types for key in keys if key in inherited]

    def found(self, entry_ids: Iterable[str], state: ThreadState | None) -> Iterator[Node]:
        """The nodes with these ids that a thread sees, or those of all trees."""
        if state is not None:
            seen = (visible(self, state, entry_id) for entry_id in entry_ids)
            yield from (node for node in seen if node is not None)
            return
        trees = sorted(set(self.trees.values()))
        for entry_id in entry_ids:
            everywhere = (self.find(tree, entry_id) for tree in trees)
            yield from (node for node in everywhere if node is not None)

    def children(self, state: ThreadState, entry_id: str | None) -> list[Node]:
        """The children of an entry that a thread sees; None gives the roots."""
        parent = None if entry_id is None else self.visible_node(state, entry_id).key
        nodes = [self.nodes[key] for key in self._known_children().keys_of(state.tree, parent)]
        return [node for node in nodes if self._is_seen(state, node)]

    def _is_seen(self, state: ThreadState, node: Node) -> bool:
        if node.owner == state.key:
            return True
        return state.base is not None and (node.key == state.base.key or self.is_ancestor(node, state.base))

    def _known_children(self) -> _Children:
        """The children of every entry, collected when they are first needed."""
        if self._children is None:
            self._children = _Children()
            for tree, nodes in self.by_id.items():
                for node in sorted(nodes.values(), key=lambda node: node.key):
                    self._children.add(tree, node)
        return self._children

    def tree_by_key(self) -> dict[int, int]:
        """The tree of each entry, by the key of the entry."""
        return {node.key: tree for tree, nodes in self.by_id.items() for node in nodes.values()}

    def _nodes_of(self, tree: int) -> dict[str, Node]:
        return self.by_id.get(tree, {})

    def add_node(self, tree: int, node: Node, type: str) -> None:
        """Add an entry of a type."""
        self.nodes[node.key] = node
        self.by_id.setdefault(tree, {})[node.id] = node
        self.owned_keys.setdefault(node.owner, array("q")).append(node.key)
        self._last_entry_key = max(self._last_entry_key, node.key)
        if type in RARE_TYPES:
            self.rare.setdefault((node.owner, type), []).append(node.key)
        if self._children is not None:
            self._children.add(tree, node)

    def _forget_rare(self, keys: AbstractSet[int]) -> None:
        for place, held in list(self.rare.items()):
            if not keys.isdisjoint(held):
                self.rare[place] = [key for key in held if key not in keys]

    def appended_after(self, state: ThreadState, cursor: int | None) -> tuple[list[Node], int]:
        """The nodes appended through a thread after a cursor, and the cursor to continue from; None gives no nodes."""
        keys = self.owned_keys.get(state.key, array("q"))
        last = keys[-1] if keys else 0
        if cursor is None:
            return [], last
        return [self.nodes[key] for key in keys[bisect_right(keys, cursor) :]], max(cursor, last)

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

    def _inherited(self, state: ThreadState) -> set[int]:
        """Keys of the entries that other threads of the tree have from their fork points."""
        inherited: set[int] = set()
        for other in self.family(state):
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

    def _drop(self, state: ThreadState, entries: Sequence[int]) -> None:
        del self.states[state.meta.id]
        self.reflogs.pop(state.key, None)
        self.tops.pop(state.key, None)
        self.leases.pop(state.key, None)
        for key in entries:
            node = self.nodes.pop(key)
            self.checkpoints.pop(key, None)
            self.artifacts.pop(key, None)
            del self.by_id[state.tree][node.id]
        if not self._nodes_of(state.tree):
            self.by_id.pop(state.tree, None)
        gone = set(entries)
        self._forget_rare(gone)
        self._children = None
        for owner, keys in list(self.owned_keys.items()):
            self.owned_keys[owner] = array("q", [key for key in keys if key not in gone])
        if not any(other.tree == state.tree for other in self.states.values()):
            self.trees = {name: tree for name, tree in self.trees.items() if tree != state.tree}


class _Children:
    """The keys of the children of each entry: the last one, and for each of them the one before it."""

    def __init__(self) -> None:
        self._last: dict[int, dict[int | None, int]] = {}
        self._before: dict[int, int] = {}

    def add(self, tree: int, node: Node) -> None:
        """Add a node, after its siblings."""
        last = self._last.setdefault(tree, {})
        if node.parent in last:
            self._before[node.key] = last[node.parent]
        last[node.parent] = node.key

    def keys_of(self, tree: int, parent: int | None) -> list[int]:
        """The keys of the children of an entry, or those of the roots of a tree, in ascending order."""
        found: list[int] = []
        key = self._last.get(tree, {}).get(parent)
        while key is not None:
            found.append(key)
            key = self._before.get(key)
        return found[::-1]


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

    def copy(self) -> MemoryBlobs:
        """A copy that does not change with this one."""
        twin = MemoryBlobs()
        twin._blobs, twin._pending = dict(self._blobs), set(self._pending)
        return twin

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
