"""What the rules look at inside a transaction: answers are read when they are first asked for.

The rules are pure, so a decision can be taken again: where an answer is missing, ``Missing`` says which statement
brings it, and the rules are asked anew.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple, TypeVar
from uuid import UUID

from sessiontree.model import Lease, Move
from sessiontree.model.blobs import Blob
from sessiontree.model.ids import IdSource
from sessiontree.stores.commands import Command, Draft
from sessiontree.stores.postgres.blobs import (
    blob_names,
    blobs_of,
    collect_alone,
    find_blobs,
    hold_shared,
    in_order,
    manifests_besides,
    manifests_of,
    names_of,
    read_blobs,
    texts_of,
)
from sessiontree.stores.postgres.rows import ENTRY_COLUMNS, NODE_COLUMNS, ThreadHead, draft_of, move_of, node_of
from sessiontree.stores.postgres.steps import Row, Statement, Steps, to_bytes
from sessiontree.stores.rules import decide
from sessiontree.stores.rules.state import Decision, Manifests, Node, ThreadState

__all__ = ["IS_ANCESTOR", "MOVES", "Birth", "SnapshotView", "answered", "decided"]


T = TypeVar("T")


_NODE = (
    f"SELECT {NODE_COLUMNS}, {ENTRY_COLUMNS} FROM sessiontree.entry e WHERE e.tree = %(tree)s AND e.id = ANY(%(ids)s)"
)
_PARENT = (
    f"SELECT {NODE_COLUMNS} FROM sessiontree.entry c JOIN sessiontree.entry e ON e.tree = c.tree AND e.id = c.parent"
    " WHERE c.tree = %(tree)s AND c.id = %(id)s"
)
IS_ANCESTOR = """
WITH RECURSIVE up (id, parent, depth) AS (
    SELECT e.id, e.parent, e.depth FROM sessiontree.entry e WHERE e.tree = %(tree)s AND e.id = %(tip)s
    UNION ALL
    SELECT e.id, e.parent, e.depth FROM up JOIN sessiontree.entry e ON e.tree = %(tree)s AND e.id = up.parent
    WHERE up.depth > %(depth)s
) SELECT 1 FROM up WHERE id = %(id)s"""
MOVES = """
SELECT number, from_entry, to_entry, reason, at_ns FROM sessiontree.move
WHERE tree = %(tree)s AND thread = %(key)s ORDER BY number"""
_OWNED = "SELECT count(*) FROM sessiontree.entry WHERE tree = %(tree)s AND owner = %(key)s"
_UNSEEN = """
WITH RECURSIVE inherited (id) AS (
    SELECT t.base FROM sessiontree.thread t WHERE t.tree = %(tree)s AND t.key <> %(key)s AND t.base IS NOT NULL
    UNION
    SELECT e.parent FROM inherited i JOIN sessiontree.entry e ON e.tree = %(tree)s AND e.id = i.id
    WHERE e.parent IS NOT NULL
) SELECT e.owner, e.seq FROM sessiontree.entry e WHERE e.tree = %(tree)s
    AND e.owner NOT IN (SELECT h.key FROM sessiontree.head h WHERE h.tree = %(tree)s AND h.key <> %(key)s)
    AND e.id NOT IN (SELECT id FROM inherited)"""

_MANIFESTS_AT_ONCE = 500


class Missing(Exception):  # noqa: N818  no fault: a question
    def __init__(self, question: tuple[str, Any], statement: Statement, read: Callable[[list[Row]], Any]) -> None:
        super().__init__(question)
        self.question = question
        self.statement = statement
        self.read = read


class Birth(NamedTuple):
    """What a thread that is about to be made may take: its key, and the tree that bears its name."""

    key: int
    named_tree: UUID | None


def decided(command: Command, view: SnapshotView) -> Steps[Decision]:
    """The decision of the rules on a command."""
    return (yield from answered(view, lambda: decide(command, view)))


def answered(view: SnapshotView, rule: Callable[[], T]) -> Steps[T]:
    """Call a rule; read what its view is missing; call it again."""
    while True:
        view.start()
        try:
            return rule()
        except Missing as missing:
            view.learn(missing, (yield missing.statement))


class SnapshotView:
    """Threads are given before the rules are asked, because they must be locked; the rest is read on demand."""

    def __init__(self, ids: IdSource, namespace: str) -> None:
        self.ids = ids
        self._namespace = namespace
        self._known: dict[tuple[str, Any], Any] = {}
        self._heads: dict[str, ThreadHead | None] = {}
        self._trees: dict[int, UUID] = {}
        self._birth: Birth | None = None
        self._seq = 0
        self.doomed: list[tuple[int, int]] = []

    def know_thread(self, thread_id: str, head: ThreadHead | None) -> None:
        self._heads[thread_id] = head
        if head is not None:
            self._trees[head.state.tree] = head.tree

    def know_birth(self, birth: Birth) -> None:
        self._birth = birth
        if birth.named_tree is not None:
            self._trees[birth.named_tree.int] = birth.named_tree

    def know_nodes(self, tree: UUID, ids: Sequence[str]) -> Steps[None]:
        """Read several entries at once that the rules will ask for."""
        rows = yield Statement(_NODE, {"tree": tree, "ids": [to_bytes(name) for name in ids]})
        self._known |= {("find", name): None for name in ids}
        for row in rows:
            self._keep_node(row)

    def start(self) -> None:
        held = next((head for head in self._heads.values() if head is not None), None)
        born = self._birth.key if self._birth else 0
        self._seq = held.seq if held else born

    def learn(self, missing: Missing, rows: list[Row]) -> None:
        self._known[missing.question] = missing.read(rows)

    def head(self, thread_id: str) -> ThreadHead | None:
        return self._heads[thread_id]

    def uuid_of(self, tree: int) -> UUID:
        """The rules call a new tree by its first thread's key, which is not unique enough for many machines."""
        if tree not in self._trees:
            self._trees[tree] = UUID(self.ids.new())
        return self._trees[tree]

    def thread(self, thread_id: str) -> ThreadState | None:
        head = self._heads[thread_id]
        return None if head is None else head.state

    def find(self, tree: int, entry_id: str) -> Node | None:
        statement = Statement(_NODE, {"tree": self.uuid_of(tree), "ids": [to_bytes(entry_id)]})
        found: Node | None = self._ask(("find", entry_id), statement, lambda rows: self._keep_node(*rows))
        return found

    def has_new(self, tree: int, entry_id: str) -> bool:
        """The unique key finds out, and the careful way comes next."""
        return False

    def draft(self, node: Node) -> Draft:
        draft: Draft = self._known["draft", node.id]
        return draft

    def parent(self, node: Node) -> Node | None:
        statement = Statement(_PARENT, {"tree": self._tree(), "id": to_bytes(node.id)})
        above: Node | None = self._ask(("parent", node.id), statement, lambda rows: node_of(rows[0]) if rows else None)
        return above

    def is_ancestor(self, node: Node, of: Node) -> bool:
        values = {"tree": self._tree(), "tip": to_bytes(of.id), "id": to_bytes(node.id), "depth": node.depth}
        return bool(self._ask(("ancestor", (node.id, of.id)), Statement(IS_ANCESTOR, values), bool))

    def moves(self, state: ThreadState) -> Sequence[Move]:
        statement = Statement(MOVES, {"tree": self._tree(), "key": state.key})
        name = state.meta.id
        found: list[Move] = self._ask(("moves", name), statement, lambda rows: [move_of(name, row) for row in rows])
        # Without a lock, later moves than those that the thread's state counts may have been read.
        return found[: state.moves]

    def lease(self, state: ThreadState) -> Lease | None:
        head = self._heads[state.meta.id]
        return None if head is None else head.lease

    def owned(self, state: ThreadState) -> int:
        statement = Statement(_OWNED, {"tree": self._tree(), "key": state.key})
        return int(self._ask(("owned", state.meta.id), statement, lambda rows: rows[0][0]))

    def unseen_without(self, state: ThreadState) -> Sequence[int]:
        statement = Statement(_UNSEEN, {"tree": self._tree(), "key": state.key})
        self.doomed = self._ask(("unseen", state.meta.id), statement, list)
        return range(len(self.doomed))

    def tree_of(self, thread_id: str) -> int | None:
        assert self._birth is not None, "a tree is asked for only where a thread is made"
        return None if self._birth.named_tree is None else self._birth.named_tree.int

    def missing_blobs(self, hashes: Collection[str]) -> frozenset[str]:
        wanted = frozenset(hashes)
        if not self._ask(("stock", "shared"), hold_shared(self._namespace), bool):
            return wanted
        found: frozenset[str] = self._ask(("blobs", wanted), find_blobs(self._namespace, wanted), names_of)
        return wanted - found

    def blobs(self, hashes: Sequence[str]) -> list[Blob]:
        return in_order(self._bodies(frozenset(hashes)), hashes)

    def blob_hashes(self) -> Collection[str]:
        found: frozenset[str] = self._ask(("blobs", None), blob_names(self._namespace), names_of)
        return found

    def manifests(self, entries: Collection[int]) -> Manifests:
        """Whoever has to collect something does it alone; all others do not even look."""
        places = [self.doomed[number] for number in entries]
        if not places:
            return Manifests(frozenset(), frozenset())
        theirs: frozenset[str] = self._ask(("manifests", "theirs"), manifests_of(self._tree(), places), texts_of)
        if not theirs or not self._ask(("stock", "alone"), collect_alone(self._namespace), bool):
            return Manifests(frozenset(), frozenset())
        besides = manifests_besides(self._namespace, self._tree(), places)
        others: frozenset[str] = self._ask(("manifests", "others"), besides, texts_of)
        self._bodies(others)
        return Manifests(theirs, others)

    def next_entry_key(self) -> int:
        self._seq += 1
        return self._seq

    def next_thread_key(self) -> int:
        assert self._birth is not None, "a thread key is asked for only where a thread is made"
        return self._birth.key

    def _tree(self) -> UUID:
        return next(head.tree for head in self._heads.values() if head is not None)

    def _ask(self, question: tuple[str, Any], statement: Statement, read: Callable[[list[Row]], Any]) -> Any:
        if question not in self._known:
            raise Missing(question, statement, read)
        return self._known[question]

    def _bodies(self, names: frozenset[str]) -> dict[str, Blob]:
        """Blobs by name, without those that are not there; read together where they are asked for together."""
        unread = sorted(name for name in names if ("body", name) not in self._known)[:_MANIFESTS_AT_ONCE]
        if unread:
            raise Missing(
                ("bodies", None), read_blobs(self._namespace, unread), lambda rows: self._keep_bodies(unread, rows)
            )
        return {name: blob for name in names if (blob := self._known["body", name]) is not None}

    def _keep_bodies(self, names: Sequence[str], rows: list[Row]) -> None:
        found = blobs_of(rows)
        self._known |= {("body", name): found.get(name) for name in names}

    def _keep_node(self, row: Row | None = None) -> Node | None:
        if row is None:
            return None
        node = node_of(row[:6])
        self._known["find", node.id] = node
        self._known["draft", node.id] = draft_of(row[6:])
        return node
