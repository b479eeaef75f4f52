"""Doctor for the PostgreSQL store: the common invariants over everything in a namespace, in one snapshot."""

from __future__ import annotations

from uuid import UUID

from sessiontree.check import findings_in
from sessiontree.commands import Draft
from sessiontree.model import Lease, Move
from sessiontree.progress import Progress
from sessiontree.queries import Finding
from sessiontree.rules.state import Node, ThreadState
from sessiontree.stores.postgres.blob_inspection import blob_faults
from sessiontree.stores.postgres.rows import HEAD_FROM, STATE_COLUMNS, head_of, move_of, payload_of_row
from sessiontree.stores.postgres.steps import ROLLBACK, Row, Statement, Steps, to_text

__all__ = ["inspect"]

_BEGIN = Statement("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
_HEADS = f"SELECT {STATE_COLUMNS} FROM {HEAD_FROM} WHERE h.namespace = %(namespace)s"
_ENTRIES = """
SELECT tree, id, owner, parent, depth, messages, tokens, created_ns, turn_id, body FROM sessiontree.entry
WHERE namespace = %(namespace)s ORDER BY depth, tree, owner, seq"""
_MOVES = """
SELECT tree, thread, number, from_entry, to_entry, reason, at_ns FROM sessiontree.move
WHERE namespace = %(namespace)s ORDER BY tree, thread, number"""
_LOST_HOMES = """
SELECT h.id FROM sessiontree.head h
LEFT JOIN sessiontree.home o ON o.id = h.id AND o.namespace = h.namespace AND o.tree = h.tree
WHERE h.namespace = %(namespace)s AND o.id IS NULL"""


def inspect(namespace: str, place: str, progress: Progress | None = None) -> Steps[list[Finding]]:
    values = {"namespace": namespace}
    yield _BEGIN
    heads = yield Statement(_HEADS, values)
    entries = yield Statement(_ENTRIES, values)
    moves = yield Statement(_MOVES, values)
    lost = yield Statement(_LOST_HOMES, values)
    spoiled = yield from blob_faults(namespace, place)
    yield ROLLBACK
    homeless = [
        Finding(kind="home", place=place, problem="the thread cannot be found by its id", thread_id=to_text(name))
        for (name,) in lost
    ]
    return [*homeless, *findings_in(_WholeStore(heads, entries, moves), place, progress), *spoiled]


class _WholeStore:
    """Everything, as the checker wants to walk it. Entries are numbered by depth, so parents come first."""

    def __init__(self, heads: list[Row], entries: list[Row], moves: list[Row]) -> None:
        self.nodes: dict[int, Node] = {}
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
        tree, entry_id, owner, parent, depth, messages, tokens, created_ns, turn_id, body = row
        number = self._numbers[tree, entry_id]
        above = None if parent is None else self._numbers.get((tree, parent), -1)
        node = Node(number, to_text(entry_id), owner, above, depth, messages, tokens)
        before = self.nodes.get(above) if above is not None else None
        self.nodes[number] = node
        self._drafts[number] = Draft(
            id=node.id,
            payload=payload_of_row(body),
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
            state.key, state.tree, state.meta, leaf, self._node(head.tree, state.base), 0, state.fence, state.moves
        )

    def _node(self, tree: UUID, node: Node | None) -> Node | None:
        """The numbered twin of a node; one that is not there, or whose counters differ, is kept to be reported."""
        if node is None:
            return None
        twin = self.nodes.get(self._numbers.get((tree, node.id.encode("utf-8", "surrogatepass")), -1))
        if twin is None or (twin.depth, twin.messages, twin.tokens) != (node.depth, node.messages, node.tokens):
            return node
        return twin
