"""Rows of the tables as records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any
from uuid import UUID

from sessiontree.model import Entry, Lease, Move
from sessiontree.model._base import Record
from sessiontree.model.codec import decode_stored_payload, decode_thread
from sessiontree.stores.commands import Draft
from sessiontree.stores.postgres.steps import Row, to_bytes, to_text
from sessiontree.stores.rules.state import LoggedMove, Node, ThreadState, Tops

__all__ = [
    "ENTRY_COLUMNS",
    "HEAD_FROM",
    "NODE_COLUMNS",
    "STATE_COLUMNS",
    "ThreadHead",
    "draft_of",
    "entries_of",
    "head_of",
    "json_row",
    "key_of",
    "lease_of",
    "logged_of",
    "move_of",
    "node_of",
]


NODE_COLUMNS = "e.id, e.owner, e.parent, e.depth, e.messages, e.tokens"
ENTRY_COLUMNS = "e.id, e.owner, e.parent, e.created_ns, e.turn_id, e.body, e.seq"
STATE_COLUMNS = """h.tree, h.key, h.updated_ns, h.fence, h.moves, h.seq, h.last_stamp, h.version, t.body,
    h.lease_token, h.lease_turn, h.lease_owner, h.lease_created_ns, h.lease_expires_ns,
    h.leaf, h.depth, h.messages, h.tokens,
    base.id, base.owner, base.parent, base.depth, base.messages, base.tokens"""
HEAD_FROM = """sessiontree.head h
    JOIN sessiontree.thread t ON t.tree = h.tree AND t.id = h.id AND t.namespace = h.namespace
    LEFT JOIN sessiontree.entry base ON base.tree = h.tree AND base.id = t.base AND base.namespace = h.namespace"""


class ThreadHead(Record, frozen=True, kw_only=True):
    """A thread's rows: the state that the rules read, and what only this store has.

    ``version`` counts the changes of the rows, ``stamp`` is that of the last transaction that left one.
    """

    state: ThreadState
    tree: UUID
    seq: int
    stamp: int
    version: int
    lease: Lease | None


def key_of(entry_id: str) -> int:
    """The key that the rules know an entry by: its id as a number, because entries here have no number of their own."""
    return int.from_bytes(b"\x01" + to_bytes(entry_id))


def head_of(row: Row) -> ThreadHead:
    """The thread of a row of ``STATE_COLUMNS``."""
    tree, key, updated_ns, fence, moves, seq, stamp, version, body = row[:9]
    meta = decode_thread(body)
    leaf = node_of((row[14], key, None, *row[15:18])) if row[14] is not None else None
    base = node_of(row[18:24]) if row[18] is not None else None
    state = ThreadState(key, tree.int, meta, leaf, base, updated_ns, fence, moves)
    lease = lease_of(meta.id, row[9:14])
    return ThreadHead(state=state, tree=tree, seq=seq, stamp=stamp, version=version, lease=lease)


def json_row(values: Iterable[Any]) -> Row:
    r"""A row that came as JSON, in which bytes are text that begins with a mark.

    >>> json_row(["\\x6964", 7, None, "undo"])
    (b'id', 7, None, 'undo')
    """
    return tuple(
        bytes.fromhex(value[2:]) if isinstance(value, str) and value.startswith("\\x") else value for value in values
    )


def node_of(row: Row) -> Node:
    """The node of a row of ``NODE_COLUMNS``."""
    entry_id, owner, parent, depth, messages, tokens = row
    name = to_text(entry_id)
    above = None if parent is None else key_of(to_text(parent))
    return Node(key_of(name), name, owner, above, depth, messages, tokens)


def entries_of(rows: Iterable[Row], names: Mapping[int, str]) -> list[Entry]:
    """Entries of rows of ``ENTRY_COLUMNS``; ``names`` are thread ids by owner."""
    return [
        Entry(
            id=entry_id.decode("utf-8", "surrogatepass"),
            thread_id=names.get(owner, ""),
            parent=None if parent is None else parent.decode("utf-8", "surrogatepass"),
            created_ns=created_ns,
            turn_id=turn_id.decode("utf-8", "surrogatepass") if turn_id else "",
            payload=decode_stored_payload(body),
        )
        for entry_id, owner, parent, created_ns, turn_id, body, _ in rows
    ]


def draft_of(row: Row) -> Draft:
    """The draft of a row of ``ENTRY_COLUMNS``, without message and token counts, which the rules do not compare."""
    entry_id, _, _, created_ns, turn_id, body, *_ = row
    return Draft(
        id=to_text(entry_id),
        payload=decode_stored_payload(body),
        body=body,
        created_ns=created_ns,
        turn_id=to_text(turn_id),
    )


def move_of(thread_id: str, row: Row) -> Move:
    """The move of a row."""
    number, from_entry, to_entry, reason, at_ns = row
    return Move(
        number=number,
        thread_id=thread_id,
        from_entry=None if from_entry is None else to_text(from_entry),
        to_entry=None if to_entry is None else to_text(to_entry),
        reason=reason,
        at_ns=at_ns,
    )


def logged_of(thread_id: str, row: Row) -> LoggedMove:
    """The move of a row with its tops."""
    return LoggedMove(move_of(thread_id, row[:5]), None if row[5] is None else Tops(*row[5:]))


def lease_of(thread_id: str, row: Row) -> Lease | None:
    """The lease of the columns of a row, None if they are empty."""
    token, turn_id, owner, created_ns, expires_ns = row
    if token is None:
        return None
    return Lease(
        thread_id=thread_id,
        turn_id=to_text(turn_id),
        owner=to_text(owner),
        token=token,
        created_ns=created_ns,
        expires_ns=expires_ns,
    )
