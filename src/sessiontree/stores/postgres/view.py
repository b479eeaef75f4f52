"""What the rules read inside a transaction, fetched when they first need it.

The rules are plain functions that cannot wait for a server. ``SnapshotView`` answers them from what was fetched; for
anything else it raises ``NotFetched`` with the statement to send. ``run_rule`` sends it and calls the rule again from the
start, which is safe because rules are pure: once for each missing answer, usually not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple, TypeVar
from uuid import UUID

from sessiontree.model import Lease, Move
from sessiontree.model.blobs import Blob
from sessiontree.model.documents import StoredDocument
from sessiontree.model.ids import IdSource
from sessiontree.stores.commands import Change, Draft
from sessiontree.stores.postgres.blobs import (
    all_hashes,
    artifacts_of,
    artifacts_outside,
    blobs_of,
    find_blobs,
    hashes_of,
    in_order,
    lock_exclusive,
    lock_shared,
    manifests_of,
    manifests_outside,
    read_blobs,
    texts_of,
)
from sessiontree.stores.postgres.known import KnownThread
from sessiontree.stores.postgres.rows import (
    ENTRY_COLUMNS,
    HEAD_FROM,
    NODE_COLUMNS,
    STATE_COLUMNS,
    ThreadHead,
    draft_of,
    head_of,
    logged_of,
    move_of,
    node_of,
)
from sessiontree.stores.postgres.steps import Row, Statement, Steps, to_bytes
from sessiontree.stores.rules.decide import decide
from sessiontree.stores.rules.state import BlobRoots, Decision, LoggedMove, Node, ThreadState

__all__ = ["IS_ANCESTOR", "MOVES", "Reservation", "SnapshotView", "decide_in_steps", "run_rule"]


T = TypeVar("T")


_NODE = (
    f"SELECT {NODE_COLUMNS}, {ENTRY_COLUMNS} FROM sessiontree.entry e"
    " WHERE e.tree = %(tree)s AND e.id = ANY(%(ids)s) AND e.namespace = %(namespace)s"
)
_PARENT = (
    f"SELECT {NODE_COLUMNS} FROM sessiontree.entry c"
    " JOIN sessiontree.entry e ON e.tree = c.tree AND e.id = c.parent AND e.namespace = c.namespace"
    " WHERE c.tree = %(tree)s AND c.id = %(id)s AND c.namespace = %(namespace)s"
)
IS_ANCESTOR = """
WITH RECURSIVE up (id, parent, depth) AS (
    SELECT e.id, e.parent, e.depth FROM sessiontree.entry e
    WHERE e.tree = %(tree)s AND e.id = %(tip)s AND e.namespace = %(namespace)s
    UNION ALL
    SELECT e.id, e.parent, e.depth FROM up
    JOIN sessiontree.entry e ON e.tree = %(tree)s AND e.id = up.parent AND e.namespace = %(namespace)s
    WHERE up.depth > %(depth)s
) SELECT 1 FROM up WHERE id = %(id)s"""
MOVES = """
SELECT number, from_entry, to_entry, reason, at_ns FROM sessiontree.move
WHERE tree = %(tree)s AND thread = %(key)s AND namespace = %(namespace)s ORDER BY number"""
_LOGGED = """
SELECT number, from_entry, to_entry, reason, at_ns, undo, redo, redo_below FROM sessiontree.move
WHERE tree = %(tree)s AND thread = %(key)s AND namespace = %(namespace)s AND number <= %(number)s
    AND number > %(number)s - 20"""
_FAMILY = f"""
SELECT {STATE_COLUMNS} FROM {HEAD_FROM}
WHERE h.tree = %(tree)s AND h.namespace = %(namespace)s AND h.key <> %(key)s"""
_OWNED = """
SELECT count(*) FROM sessiontree.entry WHERE tree = %(tree)s AND owner = %(key)s AND namespace = %(namespace)s"""
_INHERITED = """
WITH RECURSIVE inherited (id) AS (
    SELECT t.base FROM sessiontree.thread t
    WHERE t.tree = %(tree)s AND t.key <> %(key)s AND t.base IS NOT NULL AND t.namespace = %(namespace)s
    UNION
    SELECT e.parent FROM inherited i
    JOIN sessiontree.entry e ON e.tree = %(tree)s AND e.id = i.id AND e.namespace = %(namespace)s
    WHERE e.parent IS NOT NULL
)"""
_UNSEEN = f"""{_INHERITED} SELECT e.owner, e.seq FROM sessiontree.entry e
    WHERE e.tree = %(tree)s AND e.namespace = %(namespace)s AND e.owner NOT IN (
        SELECT h.key FROM sessiontree.head h
        WHERE h.tree = %(tree)s AND h.key <> %(key)s AND h.namespace = %(namespace)s)
    AND e.id NOT IN (SELECT id FROM inherited)"""
_SEEN_ONLY_BY = f"""{_INHERITED} SELECT {NODE_COLUMNS}, e.seq FROM sessiontree.entry e
    WHERE e.tree = %(tree)s AND e.owner = %(key)s AND e.id = ANY(%(ids)s) AND e.namespace = %(namespace)s
    AND e.id NOT IN (SELECT id FROM inherited)"""
_SEEN_BY = f"""
WITH RECURSIVE up (id) AS (
    SELECT %(base)s::bytea
    UNION ALL
    SELECT e.parent FROM up
    JOIN sessiontree.entry e ON e.tree = %(tree)s AND e.id = up.id AND e.namespace = %(namespace)s
    WHERE e.parent IS NOT NULL
) SELECT {NODE_COLUMNS}, e.seq FROM sessiontree.entry e
    WHERE e.tree = %(tree)s AND e.id = ANY(%(ids)s) AND e.namespace = %(namespace)s
    AND (e.owner = %(key)s OR e.id IN (SELECT id FROM up))"""

_MAX_BODIES = 500


class NotFetched(Exception):  # noqa: N818  not an error: a request for a statement
    """The rules need an answer that was not fetched: ``read`` makes it of the rows of ``statement``."""

    def __init__(self, key: tuple[str, Any], statement: Statement, read: Callable[[list[Row]], Any]) -> None:
        super().__init__(key)
        self.key = key
        self.statement = statement
        self.read = read


class Reservation(NamedTuple):
    """What a new thread gets: its key, and the tree named after it, if that exists."""

    key: int
    named_tree: UUID | None


def decide_in_steps(command: Change, view: SnapshotView) -> Steps[Decision]:
    """Decide a command by the rules."""
    return (yield from run_rule(view, lambda: decide(command, view)))


def run_rule(view: SnapshotView, rule: Callable[[], T]) -> Steps[T]:
    """Call a rule; fetch what its view is missing and call it again."""
    while True:
        view.restart()
        try:
            return rule()
        except NotFetched as missing:
            view.add_answer(missing, (yield missing.statement))


class SnapshotView:
    """A ``View`` of answers fetched so far. Threads are set before the rules run, because they must be locked."""

    def __init__(self, ids: IdSource, namespace: str) -> None:
        self.ids = ids
        self._namespace = namespace
        self._answers: dict[tuple[str, Any], Any] = {}
        self._heads: dict[str, ThreadHead | None] = {}
        self._trees: dict[int, UUID] = {}
        self._reservation: Reservation | None = None
        self._document: StoredDocument | None = None
        self._seq = 0
        self._known: KnownThread | None = None
        self.deleted_entries: dict[int, tuple[int, int]] = {}
        """Owner and number of each entry that a delete removes; the rules know them by these keys."""

    def set_thread(self, thread_id: str, head: ThreadHead | None) -> None:
        """Set a thread that was locked and read, or that it does not exist."""
        self._heads[thread_id] = head
        if head is not None:
            self._trees[head.state.tree] = head.tree

    def set_reservation(self, reservation: Reservation) -> None:
        """Set what a new thread gets."""
        self._reservation = reservation
        if reservation.named_tree is not None:
            self._trees[reservation.named_tree.int] = reservation.named_tree

    def prefetch_nodes(self, tree: UUID, ids: Sequence[str]) -> Steps[None]:
        """Fetch entries that the rules will need with one statement."""
        self.add_nodes(ids, (yield self._nodes(tree, ids)))

    def add_nodes(self, ids: Sequence[str], rows: Sequence[Row]) -> None:
        """Add entries that were looked for; those without a row do not exist."""
        self._answers |= {("find", name): None for name in ids}
        for row in rows:
            self._add_node(row)

    def set_known(self, known: KnownThread) -> None:
        """Set a thread with what is known of it."""
        self.set_thread(known.head.state.meta.id, known.head)
        self._known = known

    def restart(self) -> None:
        """Number entries from the thread's last one again, a new thread's from its key, for another run of the rules."""
        head = next((head for head in self._heads.values() if head is not None), None)
        last = head.seq if head else 0
        self._seq = self._reservation.key if self._reservation else last

    def add_answer(self, missing: NotFetched, rows: list[Row]) -> None:
        """Add the answer to what the rules missed."""
        self._answers[missing.key] = missing.read(rows)

    def head(self, thread_id: str) -> ThreadHead | None:
        """The rows of a thread."""
        return self._heads[thread_id]

    def uuid_of(self, tree: int) -> UUID:
        """The id of a tree. The rules number a new tree by its first thread's key; the database needs a unique id."""
        if tree not in self._trees:
            self._trees[tree] = UUID(self.ids.new())
        return self._trees[tree]

    def thread(self, thread_id: str) -> ThreadState | None:
        head = self._heads[thread_id]
        return None if head is None else head.state

    def find(self, tree: int, entry_id: str) -> Node | None:
        if self._known and entry_id in self._known.nodes:
            return self._known.nodes[entry_id]
        statement = self._nodes(self.uuid_of(tree), [entry_id])
        found: Node | None = self._answer(("find", entry_id), statement, lambda rows: self._add_node(*rows))
        return found

    def has_new(self, tree: int, entry_id: str) -> bool:
        """Always False: the unique index refuses a repeated id when it is inserted."""
        return False

    def draft(self, node: Node) -> Draft:
        statement = self._nodes(self._tree(), [node.id])
        draft: Draft = self._answer(("draft", node.id), statement, lambda rows: draft_of(rows[0][6:]))
        return draft

    def parent(self, node: Node) -> Node | None:
        statement = Statement(_PARENT, self._place() | {"id": to_bytes(node.id)})
        above: Node | None = self._answer(
            ("parent", node.id), statement, lambda rows: node_of(rows[0]) if rows else None
        )
        return above

    def is_ancestor(self, node: Node, of: Node) -> bool:
        values = self._place() | {"tip": to_bytes(of.id), "id": to_bytes(node.id), "depth": node.depth}
        return bool(self._answer(("ancestor", (node.id, of.id)), Statement(IS_ANCESTOR, values), bool))

    def moves(self, state: ThreadState) -> Sequence[Move]:
        statement = Statement(MOVES, self._place() | {"key": state.key})
        name = state.meta.id
        found: list[Move] = self._answer(("moves", name), statement, lambda rows: [move_of(name, row) for row in rows])
        # Without a lock, later moves than those that the thread's state counts may have been read.
        return found[: state.moves]

    def logged(self, state: ThreadState, number: int) -> LoggedMove:
        if self._known and number in self._known.moves:
            return self._known.moves[number]
        statement = Statement(_LOGGED, self._place() | {"key": state.key, "number": number})
        found: LoggedMove | None = self._answer(
            ("logged", number), statement, lambda rows: self._add_moves(state.meta.id, rows).get(number)
        )
        if found is None:
            raise IndexError(number)
        return found

    def family(self, state: ThreadState) -> Sequence[ThreadState]:
        statement = Statement(_FAMILY, self._place() | {"key": state.key})
        heads: list[ThreadHead] = self._answer(
            ("family", state.meta.id), statement, lambda rows: [head_of(row) for row in rows]
        )
        for head in heads:
            self._heads.setdefault(head.state.meta.id, head)
        return [head.state for head in heads]

    def lease(self, state: ThreadState) -> Lease | None:
        head = self._heads[state.meta.id]
        return None if head is None else head.lease

    def owned(self, state: ThreadState) -> int:
        statement = Statement(_OWNED, self._place() | {"key": state.key})
        return int(self._answer(("owned", state.meta.id), statement, lambda rows: rows[0][0]))

    def unseen_without(self, state: ThreadState) -> Sequence[int]:
        statement = Statement(_UNSEEN, self._place() | {"key": state.key})
        rows = self._answer(("unseen", state.meta.id), statement, list)
        self.deleted_entries = dict(enumerate(rows))
        return range(len(rows))

    def seen_only_by(self, state: ThreadState, entry_ids: Collection[str]) -> Sequence[Node]:
        return self._erasable(state, entry_ids, _SEEN_ONLY_BY)

    def seen_by(self, state: ThreadState, entry_ids: Collection[str]) -> Sequence[Node]:
        return self._erasable(state, entry_ids, _SEEN_BY)

    def _erasable(self, state: ThreadState, entry_ids: Collection[str], sql: str) -> Sequence[Node]:
        ids = [to_bytes(entry_id) for entry_id in entry_ids]
        base = to_bytes(state.base.id) if state.base else None
        statement = Statement(sql, self._place() | {"key": state.key, "ids": ids, "base": base})
        found: list[tuple[Node, int]] = self._answer(
            ("only", state.meta.id), statement, lambda rows: [(node_of(row[:-1]), row[-1]) for row in rows]
        )
        self.deleted_entries = {node.key: (node.owner, seq) for node, seq in found}
        return [node for node, _ in found]

    def tree_of(self, thread_id: str) -> int | None:
        assert self._reservation is not None, "only the creation of a thread reads a tree by name"
        return None if self._reservation.named_tree is None else self._reservation.named_tree.int

    def set_document(self, document: StoredDocument | None) -> None:
        """Set the document that a command is about, which was locked and read."""
        self._document = document

    def document(self, scope: str, key: str) -> StoredDocument | None:
        return self._document

    def missing_blobs(self, hashes: Collection[str]) -> frozenset[str]:
        wanted = frozenset(hashes)
        if not self._answer(("lock", "shared"), lock_shared(self._namespace), bool):
            return wanted
        found: frozenset[str] = self._answer(("blobs", wanted), find_blobs(self._namespace, wanted), hashes_of)
        return wanted - found

    def blobs(self, hashes: Sequence[str]) -> list[Blob]:
        return in_order(self._blob_bodies(frozenset(hashes)), hashes)

    def blob_hashes(self) -> Collection[str]:
        found: frozenset[str] = self._answer(("blobs", None), all_hashes(self._namespace), hashes_of)
        return found

    def blob_roots(self, entries: Collection[int]) -> tuple[BlobRoots, BlobRoots]:
        """References for garbage collection, under an exclusive lock; entries that refer to nothing need none."""
        tree, places = self._tree(), [self.deleted_entries[number] for number in entries]
        if not places:
            return BlobRoots(), BlobRoots()
        theirs = BlobRoots(
            self._answer(("manifests", "theirs"), manifests_of(self._namespace, tree, places), texts_of),
            self._answer(("artifacts", "theirs"), artifacts_of(self._namespace, tree, places), hashes_of),
        )
        if theirs == BlobRoots() or not self._answer(("lock", "exclusive"), lock_exclusive(self._namespace), bool):
            return BlobRoots(), BlobRoots()
        manifests = self._answer(("manifests", "others"), manifests_outside(self._namespace, tree, places), texts_of)
        artifacts = self._answer(("artifacts", "others"), artifacts_outside(self._namespace, tree, places), hashes_of)
        self._blob_bodies(manifests)
        return theirs, BlobRoots(manifests, artifacts)

    def next_entry_key(self) -> int:
        self._seq += 1
        return self._seq

    def next_thread_key(self) -> int:
        assert self._reservation is not None, "only the creation of a thread needs a thread key"
        return self._reservation.key

    def _tree(self) -> UUID:
        return next(head.tree for head in self._heads.values() if head is not None)

    def _place(self) -> dict[str, Any]:
        return {"tree": self._tree(), "namespace": self._namespace}

    def _nodes(self, tree: UUID, ids: Sequence[str]) -> Statement:
        names = [to_bytes(name) for name in ids]
        return Statement(_NODE, {"tree": tree, "namespace": self._namespace, "ids": names})

    def _answer(self, key: tuple[str, Any], statement: Statement, read: Callable[[list[Row]], Any]) -> Any:
        if key not in self._answers:
            raise NotFetched(key, statement, read)
        return self._answers[key]

    def _blob_bodies(self, names: frozenset[str]) -> dict[str, Blob]:
        """Blobs by hash, without missing ones, fetched in batches."""
        unread = sorted(name for name in names if ("body", name) not in self._answers)[:_MAX_BODIES]
        if unread:
            raise NotFetched(
                ("bodies", None), read_blobs(self._namespace, unread), lambda rows: self._add_bodies(unread, rows)
            )
        return {name: blob for name in names if (blob := self._answers["body", name]) is not None}

    def _add_bodies(self, names: Sequence[str], rows: list[Row]) -> None:
        found = blobs_of(rows)
        self._answers |= {("body", name): found.get(name) for name in names}

    def _add_moves(self, thread_id: str, rows: list[Row]) -> dict[int, LoggedMove]:
        found = {row[0]: logged_of(thread_id, row) for row in rows}
        self._answers |= {("logged", number): move for number, move in found.items()}
        return found

    def _add_node(self, row: Row | None = None) -> Node | None:
        if row is None:
            return None
        node = node_of(row[:6])
        self._answers["find", node.id] = node
        self._answers["draft", node.id] = draft_of(row[6:])
        return node
