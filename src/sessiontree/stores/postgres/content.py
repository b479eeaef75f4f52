"""The content of a namespace at one moment, some trees at a time, for checks and backups: it may not fit into memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from operator import itemgetter
from typing import NamedTuple
from uuid import UUID

from sessiontree.model import Lease, Move
from sessiontree.model.codec import decode_stored_payload
from sessiontree.stores.commands import Draft
from sessiontree.stores.postgres.rows import HEAD_FROM, STATE_COLUMNS, head_of, move_of
from sessiontree.stores.postgres.steps import Row, Statement, Steps, to_bytes, to_text
from sessiontree.stores.rules.state import Node, ThreadState

__all__ = ["BEGIN_SNAPSHOT", "Cursor", "StoreContent", "read_content"]


BEGIN_SNAPSHOT = Statement("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
"""Begin a transaction that sees one moment."""

_HEADS = f"""
SELECT {STATE_COLUMNS}, h.seq - h.key, h.bytes FROM {HEAD_FROM} WHERE h.namespace = %(namespace)s ORDER BY h.tree"""
_ENTRIES = """
SELECT tree, id, owner, parent, depth, messages, tokens, created_ns, turn_id, body, seq FROM sessiontree.entry
WHERE namespace = %(namespace)s ORDER BY tree, owner, seq"""
_MOVES = """
SELECT tree, thread, number, from_entry, to_entry, reason, at_ns FROM sessiontree.move
WHERE namespace = %(namespace)s ORDER BY tree, thread, number"""
_DELETED = "SELECT tree, key, id FROM sessiontree.deleted_thread WHERE namespace = %(namespace)s ORDER BY tree"

_ROWS_AT_ONCE = 1_000
_ROWS_BEYOND = 10
_GROUP_BYTES = 4 << 20
_HEAD_BYTES = 1_000
_depth = itemgetter(4)


def read_content(namespace: str, use: Callable[[StoreContent], None]) -> Steps[None]:
    """Pass all threads and entries to ``use``, some whole trees at a time, inside a transaction."""
    cursors = [
        Cursor(name, sql, namespace)
        for name, sql in {"heads": _HEADS, "entries": _ENTRIES, "moves": _MOVES, "deleted": _DELETED}.items()
    ]
    for cursor in cursors:
        yield from cursor.open()
    heads, entries, moves, deleted = cursors
    last: UUID | None = _FIRST_TREE
    while last is not None:
        group, last = yield from _next_trees(heads)
        expected = sum(head[-2] for head in group)
        rows = _Rows(
            heads=group,
            entries=(yield from _up_to(last, entries, expected)),
            moves=(yield from _up_to(last, moves)),
            deleted=(yield from _up_to(last, deleted)),
        )
        use(StoreContent(rows))


class Cursor:
    """The rows of a statement, read some at a time; it lasts as long as its transaction."""

    def __init__(self, name: str, sql: str, namespace: str) -> None:
        self._name = name
        self._sql = sql
        self._namespace = namespace
        self._rows: deque[Row] = deque()
        self._is_over = False

    def open(self) -> Steps[None]:
        """Send the statement."""
        yield Statement(f"DECLARE {self._name} NO SCROLL CURSOR FOR {self._sql}", {"namespace": self._namespace})

    def fetch(self, most: int = _ROWS_AT_ONCE) -> Steps[list[Row]]:
        """The next rows, none at the end."""
        return (yield Statement(f"FETCH {most} FROM {self._name}"))

    def peek(self, most: int = _ROWS_AT_ONCE) -> Steps[Row | None]:
        """The next row, which stays the next one; None at the end. At most ``most`` are read."""
        if not self._rows and not self._is_over:
            self._rows.extend((yield from self.fetch(most)))
            self._is_over = not self._rows
        return self._rows[0] if self._rows else None

    def pop(self) -> Row:
        """Go to the row after the one that ``peek`` returned."""
        return self._rows.popleft()


_FIRST_TREE = UUID(int=0)


class _Rows(NamedTuple):
    """The rows of some trees."""

    heads: list[Row]
    entries: list[Row]
    moves: list[Row]
    deleted: list[Row]


def _next_trees(heads: Cursor) -> Steps[tuple[list[Row], UUID | None]]:
    """The heads of the next trees, which have some megabytes together, and the last tree; None if there are no more."""
    group: list[Row] = []
    size = 0
    while (head := (yield from heads.peek())) is not None:
        if size > _GROUP_BYTES and head[0] != group[-1][0]:
            return group, group[-1][0]
        group.append(heads.pop())
        size += head[-1] + _HEAD_BYTES
    return group, None


def _up_to(last: UUID | None, cursor: Cursor, expected: int = _ROWS_AT_ONCE) -> Steps[list[Row]]:
    """The next rows up to those of a tree; all that are left if it is None. Not many more than expected are read."""
    rows: list[Row] = []
    while True:
        most = min(max(expected - len(rows), _ROWS_BEYOND), _ROWS_AT_ONCE)
        row = yield from cursor.peek(most)
        if row is None or (last is not None and row[0] > last):
            return rows
        rows.append(cursor.pop())


class StoreContent:
    """The ``Content`` of some trees. Entries are numbered by depth, so parents come first."""

    def __init__(self, rows: _Rows) -> None:
        entries = sorted(rows.entries, key=_depth)
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
        for row in rows.heads:
            self._add_head(row)
        self.names = {key: to_text(name) for _, key, name in rows.deleted}
        """The id of each thread by its key, also of deleted ones that left entries."""
        self.names |= {state.key: name for name, state in self.states.items()}
        self.reflogs: dict[int, list[Move]] = {}
        for _, key, *move in rows.moves:
            self.reflogs.setdefault(key, []).append(move_of(self.names.get(key, ""), tuple(move)))

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
