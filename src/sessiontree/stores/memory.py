"""The memory store: the reference that the other stores are compared with. Nothing survives the process.

Its search scans every entry; the indexes of the other stores must find the same.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Sequence

from msgspec.structs import replace

from sessiontree.errors import ThreadNotFoundError
from sessiontree.model import Entry, Lease, Move, NextMove, Page, Thread, ThreadQuery
from sessiontree.model._base import Progress
from sessiontree.model.blobs import Blob
from sessiontree.model.builders import ERASED
from sessiontree.model.codec import EntryBody, decode_payload
from sessiontree.model.documents import StoredDocument
from sessiontree.model.entry import Label
from sessiontree.model.thread import Direction
from sessiontree.search import Hit, SearchPage, SearchQuery
from sessiontree.search.matching import Searchable, document_of, ranked, satisfies, searchable
from sessiontree.search.query import Cursor, cursor_of, encode_cursor
from sessiontree.search.snippets import snippet_of
from sessiontree.stores._tree_state import MemoryBlobs, TreeState
from sessiontree.stores.backup.snapshot import Snapshot, SnapshotRequest
from sessiontree.stores.check import blob_findings, findings_in
from sessiontree.stores.commands import Change, ChangeResult, Command, Committed, CommitTogether, Draft
from sessiontree.stores.document_queries import ListDocuments, ListScopes, ReadDocument
from sessiontree.stores.listing import matching_ids, page_of
from sessiontree.stores.protocol import Outcome
from sessiontree.stores.queries import Finding, NewEntries, ReadEntries, ReadPath, Search, StoreStats
from sessiontree.stores.rules.append import existing, visible
from sessiontree.stores.rules.decide import decide
from sessiontree.stores.rules.leaf import next_move
from sessiontree.stores.rules.state import (
    ERASED_BODY,
    DropBlobs,
    DropThread,
    Node,
    PutEntry,
    PutErased,
    PutPack,
    PutPending,
    ThreadState,
)

__all__ = ["MemoryBackend"]


class MemoryBackend:
    """A ``Backend`` in dictionaries."""

    place = "memory:"
    is_blocking = False

    def __init__(self) -> None:
        self._drafts: dict[int, Draft] = {}
        self._state = TreeState(self._draft)
        self._blobs = MemoryBlobs()
        self._state.blob_store = self._blobs
        self._lock = threading.RLock()
        self._version = 0

    def write(self, commands: Sequence[Command]) -> list[Outcome]:
        with self._lock:
            self._version += 1
            return [self._execute(command) for command in commands]

    def erase_copies(self) -> bool:
        return True

    def mark(self, thread_id: str) -> object:
        return self._version

    def close(self) -> None:
        """Do nothing: the data is dropped with the object."""

    def thread(self, thread_id: str) -> Thread:
        with self._lock:
            return existing(self._state, thread_id).public()

    def threads(self, query: ThreadQuery) -> Page:
        with self._lock:
            return page_of([state.public() for state in self._state.states.values()], query)

    def entry(self, thread_id: str, entry_id: str) -> Entry:
        with self._lock:
            return self._state.entry(self._state.visible_node(existing(self._state, thread_id), entry_id))

    def entries(self, query: ReadEntries) -> list[Entry]:
        with self._lock:
            nodes = self._state.candidates(existing(self._state, query.thread_id), query)
            return query.select(map(self._state.entry, nodes))

    def entries_by_id(self, entry_ids: tuple[str, ...], thread_id: str | None) -> list[Entry]:
        with self._lock:
            state = None if thread_id is None else existing(self._state, thread_id)
            return [self._state.entry(node) for node in self._state.found(entry_ids, state)]

    def last_entries(self, thread_ids: tuple[str, ...]) -> dict[str, Entry]:
        with self._lock:
            states = (self._state.thread(thread_id) for thread_id in thread_ids)
            return {state.meta.id: self._state.entry(state.leaf) for state in states if state and state.leaf}

    def path(self, query: ReadPath) -> list[Entry]:
        with self._lock:
            nodes = self._state.path_back(existing(self._state, query.thread_id), query)
            return query.select(map(self._state.entry, nodes))

    def path_bodies(self, query: ReadPath) -> list[EntryBody]:
        with self._lock:
            nodes = self._state.path_back(existing(self._state, query.thread_id), query)
            return query.select(EntryBody(id=node.id, body=self._state.draft(node).body) for node in nodes)

    def children(self, thread_id: str, entry_id: str | None) -> list[Entry]:
        with self._lock:
            nodes = self._state.children(existing(self._state, thread_id), entry_id)
            return [self._state.entry(node) for node in nodes]

    def moves(self, thread_id: str) -> Sequence[Move]:
        with self._lock:
            return list(self._state.moves(existing(self._state, thread_id)))

    def next_move(self, thread_id: str, direction: Direction) -> NextMove:
        with self._lock:
            return next_move(self._state, existing(self._state, thread_id), direction)

    def lease(self, thread_id: str) -> Lease | None:
        with self._lock:
            return self._state.lease(existing(self._state, thread_id))

    def clock(self, now_ns: int) -> int:
        return now_ns

    def new_entries(self, thread_id: str, cursor: int | None) -> NewEntries:
        with self._lock:
            nodes, end = self._state.appended_after(existing(self._state, thread_id), cursor)
            return NewEntries(entries=tuple(map(self._state.entry, nodes)), cursor=end)

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

    def document(self, query: ReadDocument) -> StoredDocument | None:
        with self._lock:
            found = self._state.document(query.scope, query.key)
            return None if found is None or found.is_expired(query.now_ns) else found

    def scopes(self, query: ListScopes) -> list[str]:
        with self._lock:
            return query.select(self._state.documents.values())

    def documents(self, query: ListDocuments) -> list[StoredDocument]:
        with self._lock:
            return query.select(held for (scope, _), held in self._state.documents.items() if scope == query.scope)

    def search(self, search: Search) -> SearchPage:
        with self._lock:
            return _scan(self._state, search)

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

    def thread_sizes(self) -> dict[str, int]:
        with self._lock:
            return {
                state.meta.id: sum(len(self._drafts[key].body) for key in self._state.owned_keys.get(state.key, ()))
                for state in self._state.states.values()
            }

    def reclaim(self) -> int:
        """Return 0: memory is given back by the interpreter."""
        return 0

    def inspect(self, progress: Progress | None = None) -> list[Finding]:
        with self._lock:
            found = blob_findings(self._state.all_roots(), self._blobs, self._blobs.blob_hashes(), self.place)
            return [*findings_in(self._state, self.place, progress), *found]

    def snapshot(self, request: SnapshotRequest) -> Snapshot:
        """Write everything as a JSONL store."""
        from sessiontree.stores.jsonl.dump import Dump, Owners  # noqa: PLC0415  only backups need it

        dump = Dump(request)
        with self._lock:
            numbers = {key: key for key in self._state.nodes}
            owners = Owners(trees=self._state.tree_by_key(), numbers=numbers, names=self._state.owner_ids)
            dump.add_content(self._state, owners)
            dump.add_blobs(self._blobs.blobs(list(self._blobs.blob_hashes())))
            dump.add_pending(self._blobs.pending_artifacts())
            dump.add_documents(self._state.documents.values())
        return dump.snapshot(self.place)

    def repair(self) -> list[Finding]:
        """Return nothing: memory has no damage that could be repaired."""
        return []

    def _execute(self, command: Command) -> Outcome:
        if isinstance(command, CommitTogether):
            return self._execute_together(command)
        try:
            return self._run(command)
        except Exception as refusal:  # noqa: BLE001  nothing is written yet; the other commands of the batch go on
            return refusal

    def _execute_together(self, command: CommitTogether) -> Outcome:
        # A copy of everything: simple, and quick enough for a store that is in memory.
        before = dict(self._drafts), self._state.copy(), self._blobs.copy()
        try:
            return Committed(results=tuple([self._run(change) for change in command.changes]))
        except Exception as refusal:  # noqa: BLE001  what was written is taken back; the other commands go on
            self._drafts, self._state, self._blobs = before
            self._state.blob_store = self._blobs
            return refusal

    def _run(self, command: Change) -> ChangeResult:
        """Decide a command, and write its facts."""
        decision = decide(command, self._state)
        for fact in decision.facts:
            match fact:
                case PutEntry(node=node, draft=draft):
                    self._drafts[node.key] = draft
                    if draft.artifacts:
                        self._blobs.apply(fact)
                case PutErased(nodes=nodes):
                    for node in nodes:
                        erased = replace(self._drafts[node.key], payload=ERASED, body=ERASED_BODY)
                        self._drafts[node.key] = erased
                case DropThread(entries=entries):
                    for key in entries:
                        del self._drafts[key]
                case PutPack() | PutPending() | DropBlobs():
                    self._blobs.apply(fact)
            self._state.apply(fact)
        return decision.result

    def _draft(self, node: Node) -> Draft:
        """A new copy of the content, because callers may change the entries they get."""
        draft = self._drafts[node.key]
        return replace(draft, payload=decode_payload(draft.body))


def _scan(state: TreeState, search: Search) -> SearchPage:
    query = search.query
    start = cursor_of(search.cursor) or Cursor(max(state.nodes, default=0), 0)
    allowed = _scope(state, query)
    nodes: list[Node] = []
    contents: list[Searchable] = []
    for key, node in state.nodes.items():
        if key > start.upto or (allowed is not None and key not in allowed):
            continue
        draft = state.draft(node)
        content = searchable(draft.payload)
        if content is not None and satisfies(content, draft.created_ns, query):
            nodes.append(node)
            contents.append(content)
    scores = ranked([document_of(content) for content in contents], query)
    found = [(nodes[at], contents[at], score) for at, score in scores]
    found.sort(key=lambda match: (-match[2] if search.order == "best" else 0.0, -match[0].key))
    end = start.offset + search.limit
    hits = [_hit(state, query, *match) for match in found[start.offset : end]]
    following = encode_cursor(Cursor(start.upto, end)) if len(found) > end else None
    return SearchPage(hits=tuple(hits), cursor=following)


def _scope(state: TreeState, query: SearchQuery) -> set[int] | None:
    """Keys of entries that pass the filters on threads, branches and labels; None without such a filter."""
    sets: list[set[int]] = []
    if query.threads:
        seen = [state.visible_nodes(existing(state, name)) for name in query.threads]
        sets.append({node.key for nodes in seen for node in nodes})
    if query.branches:
        tips = [existing(state, name).leaf for name in query.branches]
        sets.append({node.key for tip in tips for node in state.upwards(tip)})
    if query.labels:
        sets.append(_labelled(state, query.labels))
    return set.intersection(*sets) if sets else None


def _labelled(state: TreeState, names: tuple[str, ...]) -> set[int]:
    label_of: dict[tuple[int, str], str] = {}
    trees = state.tree_by_key()
    for key in sorted(state.nodes):
        payload = state.draft(state.nodes[key]).payload
        if isinstance(payload, Label):
            label_of[trees[key], payload.target] = payload.label
    found = (state.find(*place) for place, name in label_of.items() if name in names)
    return {node.key for node in found if node is not None}


def _hit(state: TreeState, query: SearchQuery, node: Node, content: Searchable, score: float) -> Hit:
    thread = _thread_showing(state, node)
    return Hit(
        thread_id=thread.meta.id,
        title=thread.meta.title,
        entry=state.entry(node),
        score=score,
        snippet=snippet_of(content.text, query),
    )


def _thread_showing(state: TreeState, node: Node) -> ThreadState:
    """The thread that an entry was appended through, or a fork that still sees it."""
    owner = state.states.get(state.owner_ids[node.owner])
    if owner is not None and owner.key == node.owner:
        return owner
    for other in state.states.values():
        if other.tree and state.find(other.tree, node.id) is node and visible(state, other, node.id):
            return other
    raise ThreadNotFoundError(state.owner_ids[node.owner])
