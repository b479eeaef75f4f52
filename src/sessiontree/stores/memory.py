"""The memory store: the reference that the others are compared with. Nothing survives the process."""

from __future__ import annotations

import threading
from collections.abc import Collection, Sequence

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from sessiontree.blobs import Blob
from sessiontree.check import blob_findings, findings_in
from sessiontree.codec import decode_payload
from sessiontree.commands import Command, Draft
from sessiontree.listing import page_of
from sessiontree.model import Entry, Lease, Move, Page, Thread, ThreadQuery
from sessiontree.progress import Progress
from sessiontree.queries import Finding, News, Search, StoreStats
from sessiontree.rules import decide
from sessiontree.rules.appending import existing
from sessiontree.rules.state import DropBlobs, DropThread, Node, PutEntry, PutPack
from sessiontree.search import SearchPage
from sessiontree.store import Outcome
from sessiontree.stores.memory_blobs import MemoryBlobs
from sessiontree.stores.scanning import matching_ids, scan
from sessiontree.stores.tree_state import TreeState

__all__ = ["MemoryBackend"]


class MemoryBackend:
    place = "memory:"
    is_blocking = False

    def __init__(self) -> None:
        self._drafts: dict[int, Draft] = {}
        self._state = TreeState(self._draft)
        self._blobs = MemoryBlobs()
        self._state.stock = self._blobs
        self._lock = threading.RLock()
        self._version = 0

    def write(self, commands: Sequence[Command]) -> list[Outcome]:
        with self._lock:
            self._version += 1
            return [self._carry_out(command) for command in commands]

    def mark(self, thread_id: str) -> object:
        return self._version

    def close(self) -> None:
        """Nothing to release: the data goes with the object."""

    def thread(self, thread_id: str) -> Thread:
        with self._lock:
            return existing(self._state, thread_id).public()

    def threads(self, query: ThreadQuery) -> Page:
        with self._lock:
            return page_of([state.public() for state in self._state.states.values()], query)

    def entry(self, thread_id: str, entry_id: str) -> Entry:
        with self._lock:
            return self._state.entry(self._state.visible_node(thread_id, entry_id))

    def entries(self, thread_id: str, after: str | None, limit: int | None) -> list[Entry]:
        with self._lock:
            nodes = self._state.visible_nodes(existing(self._state, thread_id))
            if after is not None:
                start = self._state.visible_node(thread_id, after).key
                nodes = [node for node in nodes if node.key > start]
            return [self._state.entry(node) for node in nodes[:limit]]

    def path(self, thread_id: str, leaf: str | UnsetType | None, limit: int | None) -> list[Entry]:
        with self._lock:
            return self._state.path(self._tip(thread_id, leaf), limit)

    def children(self, thread_id: str, entry_id: str | None) -> list[Entry]:
        with self._lock:
            parent = None if entry_id is None else self._state.visible_node(thread_id, entry_id).key
            nodes = self._state.visible_nodes(existing(self._state, thread_id))
            return [self._state.entry(node) for node in nodes if node.parent == parent]

    def moves(self, thread_id: str) -> Sequence[Move]:
        with self._lock:
            return list(self._state.moves(existing(self._state, thread_id)))

    def lease(self, thread_id: str) -> Lease | None:
        with self._lock:
            return self._state.lease(existing(self._state, thread_id))

    def news(self, thread_id: str, cursor: int | None) -> News:
        with self._lock:
            keys = self._state.owned_keys.get(existing(self._state, thread_id).key, [])
            last = keys[-1] if keys else 0
            if cursor is None:
                return News(entries=(), cursor=last)
            fresh = [self._state.nodes[key] for key in keys if key > cursor]
            return News(entries=tuple(map(self._state.entry, fresh)), cursor=max(cursor, last))

    def missing_blobs(self, hashes: Collection[str]) -> frozenset[str]:
        with self._lock:
            return self._blobs.missing_blobs(hashes)

    def blobs(self, hashes: Sequence[str]) -> list[Blob]:
        with self._lock:
            return self._blobs.blobs(hashes)

    def thread_ids(self, part: str, limit: int) -> list[str]:
        with self._lock:
            return matching_ids(self._state.states, part)[:limit]

    def entry_ids(self, thread_id: str, part: str, limit: int) -> list[str]:
        with self._lock:
            nodes = self._state.visible_nodes(existing(self._state, thread_id))
            return matching_ids([node.id for node in nodes], part)[:limit]

    def search(self, search: Search) -> SearchPage:
        with self._lock:
            return scan(self._state, search)

    def stats(self) -> StoreStats:
        with self._lock:
            states = self._state.states.values()
            return StoreStats(
                threads=len(states),
                archived=sum(state.meta.is_archived for state in states),
                entries=len(self._state.nodes),
                moves=sum(map(len, self._state.reflogs.values())),
                leases=len(self._state.leases),
                bytes=sum(len(draft.body) for draft in self._drafts.values()) + self._blobs.size,
            )

    def inspect(self, progress: Progress | None = None) -> list[Finding]:
        with self._lock:
            found = blob_findings(self._state.checkpoints.values(), self._blobs, self._blobs.blob_hashes(), self.place)
            return [*findings_in(self._state, self.place, progress), *found]

    def _carry_out(self, command: Command) -> Outcome:
        try:
            decision = decide(command, self._state)
        except Exception as refusal:  # noqa: BLE001  nothing is written yet, so the neighbours are not concerned
            return refusal
        for fact in decision.facts:
            match fact:
                case PutEntry(node=node, draft=draft):
                    self._drafts[node.key] = draft
                case DropThread(entries=entries):
                    for key in entries:
                        del self._drafts[key]
                case PutPack() | DropBlobs():
                    self._blobs.apply(fact)
            self._state.apply(fact)
        return decision.result

    def _tip(self, thread_id: str, leaf: str | UnsetType | None) -> Node | None:
        if leaf is UNSET:
            return existing(self._state, thread_id).leaf
        if leaf is None:
            existing(self._state, thread_id)
            return None
        return self._state.visible_node(thread_id, leaf)

    def _draft(self, node: Node) -> Draft:
        """A fresh copy: what a caller does to an entry must not reach the store."""
        draft = self._drafts[node.key]
        return replace(draft, payload=decode_payload(draft.body))
