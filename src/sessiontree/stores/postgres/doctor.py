"""Integrity checks of a namespace, in one snapshot: the invariants of every store, and every blob against its hash."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from uuid import UUID

from sessiontree.errors import BlobNotFoundError
from sessiontree.model import Lease, Move
from sessiontree.model._base import Progress
from sessiontree.model.blobs import Blob, batches
from sessiontree.model.codec import decode_stored_payload
from sessiontree.stores.check import blob_findings, findings_in
from sessiontree.stores.commands import Draft
from sessiontree.stores.postgres.blobs import blobs_of, hashes_of, in_order, read_blobs, texts_of
from sessiontree.stores.postgres.distribution import misplaced
from sessiontree.stores.postgres.rows import HEAD_FROM, STATE_COLUMNS, head_of, move_of
from sessiontree.stores.postgres.steps import ROLLBACK, Row, Statement, Steps, to_bytes, to_text
from sessiontree.stores.queries import Finding
from sessiontree.stores.rules.state import BlobRoots, Node, ThreadState

__all__ = ["LENGTHS", "StoreContent", "inspect", "read_content"]


LENGTHS = "SELECT hash, length FROM sessiontree.blob WHERE namespace = %(namespace)s ORDER BY hash"
_MANIFESTS = """
SELECT DISTINCT c.manifest FROM sessiontree.checkpoint c
JOIN sessiontree.entry e ON e.tree = c.tree AND e.owner = c.owner AND e.seq = c.seq AND e.namespace = c.namespace
WHERE c.namespace = %(namespace)s"""
_ARTIFACTS = "SELECT DISTINCT hash FROM sessiontree.artifact WHERE namespace = %(namespace)s"
_BEGIN = Statement("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
_HEADS = f"SELECT {STATE_COLUMNS} FROM {HEAD_FROM} WHERE h.namespace = %(namespace)s"
_ENTRIES = """
SELECT tree, id, owner, parent, depth, messages, tokens, created_ns, turn_id, body, seq FROM sessiontree.entry
WHERE namespace = %(namespace)s ORDER BY depth, tree, owner, seq"""
_MOVES = """
SELECT tree, thread, number, from_entry, to_entry, reason, at_ns FROM sessiontree.move
WHERE namespace = %(namespace)s ORDER BY tree, thread, number"""
# The homes are read first: a distributed server cannot join what is on different nodes.
_WITHOUT_LOOKUP = """
WITH o AS MATERIALIZED (SELECT id, tree FROM sessiontree.home WHERE namespace = %(namespace)s)
SELECT h.id FROM sessiontree.head h LEFT JOIN o ON o.id = h.id AND o.tree = h.tree
WHERE h.namespace = %(namespace)s AND o.id IS NULL"""
_MISCOUNTED = """
SELECT h.id FROM sessiontree.head h
WHERE h.namespace = %(namespace)s AND (h.seq - h.key, h.bytes) <> (
    SELECT count(*), coalesce(sum(octet_length(e.body)), 0) FROM sessiontree.entry e
    WHERE e.tree = h.tree AND e.owner = h.key AND e.namespace = h.namespace)"""


def inspect(namespace: str, place: str, progress: Progress | None = None) -> Steps[list[Finding]]:
    """List every broken invariant. Reads the whole namespace into memory."""
    values = {"namespace": namespace}
    content = yield from read_content(namespace)
    unreachable = yield Statement(_WITHOUT_LOOKUP, values)
    miscounted = yield Statement(_MISCOUNTED, values)
    blob_problems = yield from _check_blobs(namespace, place)
    yield ROLLBACK
    placement_problems = [
        Finding(
            kind="placement", place=place, problem=f"{name} is not distributed; run: sessiontree postgres distribute"
        )
        for name in (yield from misplaced())
    ]
    lookup_problems = [
        Finding(kind="home", place=place, problem="the thread cannot be found by its id", thread_id=to_text(name))
        for (name,) in unreachable
    ]
    count_problems = [
        Finding(
            kind="counter", place=place, problem="its entries are not those that were counted", thread_id=to_text(name)
        )
        for (name,) in miscounted
    ]
    return [
        *placement_problems,
        *lookup_problems,
        *count_problems,
        *findings_in(content, place, progress),
        *blob_problems,
    ]


def read_content(namespace: str) -> Steps[StoreContent]:
    """Begin a transaction that sees one moment, and read all threads and entries."""
    values = {"namespace": namespace}
    yield _BEGIN
    heads = yield Statement(_HEADS, values)
    entries = yield Statement(_ENTRIES, values)
    moves = yield Statement(_MOVES, values)
    return StoreContent(heads, entries, moves)


class StoreContent:
    """The ``Content`` of a namespace. Entries are numbered by depth, so parents come first."""

    def __init__(self, heads: list[Row], entries: list[Row], moves: list[Row]) -> None:
        self.nodes: dict[int, Node] = {}
        self.trees: dict[int, int] = {}
        """The tree of each entry."""
        self.numbers: dict[int, int] = {}
        """The number of each entry among those of its thread."""
        self._drafts: dict[int, Draft] = {}
        self._numbers = {(row[0], row[1]): number for number, row in enumerate(entries, start=1)}
        for row in entries:
            self._add_entry(row)
        self.states: dict[str, ThreadState] = {}
        self.leases: dict[int, Lease] = {}
        for row in heads:
            self._add_head(row)
        self.reflogs: dict[int, list[Move]] = {}
        names = {state.key: name for name, state in self.states.items()}
        for _, key, *move in moves:
            self.reflogs.setdefault(key, []).append(move_of(names.get(key, ""), tuple(move)))

    def draft(self, node: Node) -> Draft:
        return self._drafts[node.key]

    def _add_entry(self, row: Row) -> None:
        tree, entry_id, owner, parent, depth, messages, tokens, created_ns, turn_id, body, seq = row
        number = self._numbers[tree, entry_id]
        above = None if parent is None else self._numbers.get((tree, parent), -1)
        node = Node(number, to_text(entry_id), owner, above, depth, messages, tokens)
        before = self.nodes.get(above) if above is not None else None
        self.nodes[number] = node
        self.trees[number] = tree.int
        self.numbers[number] = seq
        self._drafts[number] = Draft(
            id=node.id,
            payload=decode_stored_payload(body),
            body=body,
            created_ns=created_ns,
            turn_id=to_text(turn_id),
            messages=messages - (before.messages if before else 0),
            tokens=tokens - (before.tokens if before else 0),
        )

    def _add_head(self, row: Row) -> None:
        head = head_of(row)
        state = head.state
        if head.lease is not None:
            self.leases[state.key] = head.lease
        leaf = self._node(head.tree, state.leaf)
        self.states[state.meta.id] = ThreadState(
            state.key,
            state.tree,
            state.meta,
            leaf,
            self._node(head.tree, state.base),
            state.updated_ns,
            state.fence,
            state.moves,
        )

    def _node(self, tree: UUID, node: Node | None) -> Node | None:
        """Return the stored node for a node of a thread's head, or that one if they differ, so that it is reported."""
        if node is None:
            return None
        numbered = self.nodes.get(self._numbers.get((tree, to_bytes(node.id)), -1))
        if numbered is None or (numbered.depth, numbered.messages, numbered.tokens) != (
            node.depth,
            node.messages,
            node.tokens,
        ):
            return node
        return numbered


def _check_blobs(namespace: str, place: str) -> Steps[list[Finding]]:
    """List damaged blobs and missing ones that an entry needs, reading a few megabytes at a time."""
    lengths = yield Statement(LENGTHS, {"namespace": namespace})
    manifests = texts_of((yield Statement(_MANIFESTS, {"namespace": namespace})))
    roots = BlobRoots(manifests, hashes_of((yield Statement(_ARTIFACTS, {"namespace": namespace}))))
    blobs = _FetchedBlobs(row[0].hex() for row in lengths)
    found: list[Finding] = []
    for rows in batches(lengths, lambda row: int(row[1])):
        batch = blobs_of((yield read_blobs(namespace, [digest.hex() for digest, _ in rows])))
        found += blob_findings(BlobRoots(), _FetchedBlobs(batch, batch), batch, place)
        blobs.add({name: blob for name, blob in batch.items() if name in manifests})
    while True:
        try:
            return found + blob_findings(roots, blobs, (), place)
        except _NotFetched as missing:
            blobs.add(blobs_of((yield read_blobs(namespace, [missing.name]))))


class _NotFetched(Exception):  # noqa: N818  not an error: a request for a blob
    """The check needs a blob that was not fetched."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


class _FetchedBlobs:
    """``Blobs`` of which all hashes and some bodies are known."""

    def __init__(self, names: Iterable[str], bodies: dict[str, Blob] | None = None) -> None:
        self._names = frozenset(names)
        self._bodies = dict(bodies or {})

    def add(self, bodies: dict[str, Blob]) -> None:
        self._bodies |= bodies

    def missing_blobs(self, hashes: Collection[str]) -> frozenset[str]:
        return frozenset(hashes) - self._names

    def blobs(self, hashes: Sequence[str]) -> list[Blob]:
        for name in hashes:
            if name not in self._names:
                raise BlobNotFoundError(name)
            if name not in self._bodies:
                raise _NotFetched(name)
        return in_order(self._bodies, hashes)
