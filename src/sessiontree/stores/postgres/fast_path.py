"""The fast path: a plain append, and every step of a lease, in one statement and one round trip.

The statement of an append checks leaf, lease and ids, moves the head and inserts the entries. A statement that changes
nothing does not say why; the locked transaction (``commits.py``) then runs the rules, which raise the reason.
"""

from __future__ import annotations

import functools
from itertools import accumulate
from typing import Any
from uuid import UUID

import psycopg
from msgspec import UNSET
from psycopg.types.numeric import Int8

from sessiontree.model import Checkpoint, Entry, Lease, UserMessage
from sessiontree.stores.commands import AcquireLease, Append, Draft, ReleaseLease, RenewLease
from sessiontree.stores.postgres.listen import NOTIFY
from sessiontree.stores.postgres.steps import Statement, Steps, to_bytes, to_text

__all__ = ["acquire", "append_at_leaf", "is_plain", "release", "renew"]


_HEAD = """
WITH grown AS (
    UPDATE sessiontree.head SET leaf = %(last)s, previous = leaf, seq = seq + %(count)s, depth = depth + %(count)s,
        messages = messages + %(messages)s, tokens = tokens + %(tokens)s,
        updated_ns = greatest(updated_ns, %(updated)s),
        updated_minute = greatest(updated_ns, %(updated)s) / 60000000000,
        touched_minute = extract(epoch FROM now())::bigint / 60
    WHERE tree = %(tree)s AND id = %(thread)s{conditions}
    RETURNING key, seq, previous, depth, messages, tokens, watched_until
), put AS (
    INSERT INTO sessiontree.entry (tree, owner, seq, namespace, id, parent, depth, messages, tokens, created_ns,
        turn_id, body)
    {rows}
)"""
_TAIL = f"""
SELECT previous, {NOTIFY} FROM grown"""
_ONE_ROW = """
    SELECT %(tree)s, key, seq, %(namespace)s, %(last)s, previous, depth, messages, tokens, %(updated)s, %(turn)s,
        %(body)s FROM grown"""
_MANY_ROWS = """
    SELECT %(tree)s, g.key, g.seq - %(count)s + d.number, %(namespace)s, d.id, coalesce(d.parent, g.previous),
        g.depth - %(count)s + d.number, g.messages - %(messages)s + d.messages, g.tokens - %(tokens)s + d.tokens,
        d.created_ns, d.turn_id, d.body
    FROM grown g, unnest(%(ids)s::bytea[], %(parents)s::bytea[], %(sums)s::bigint[], %(token_sums)s::bigint[],
        %(times)s::bigint[], %(turns)s::bytea[], %(bodies)s::bytea[])
        WITH ORDINALITY AS d (id, parent, messages, tokens, created_ns, turn_id, body, number)"""
_ACQUIRE = """
UPDATE sessiontree.head SET fence = greatest(fence + 1, %(now)s), lease_token = greatest(fence + 1, %(now)s),
    lease_turn = %(turn)s, lease_owner = %(owner)s, lease_created_ns = %(now)s, lease_expires_ns = %(expires)s
WHERE tree = %(tree)s AND id = %(thread)s AND (lease_token IS NULL
    OR lease_expires_ns <= %(now)s)
RETURNING lease_token"""
_RENEW = """
UPDATE sessiontree.head SET lease_expires_ns = %(expires)s
WHERE tree = %(tree)s AND id = %(thread)s AND lease_token = %(token)s
RETURNING lease_turn, lease_owner, lease_created_ns"""
_RELEASE = """
UPDATE sessiontree.head SET lease_token = NULL, lease_turn = NULL, lease_owner = NULL, lease_created_ns = NULL,
    lease_expires_ns = NULL
WHERE tree = %(tree)s AND id = %(thread)s AND lease_token = %(token)s
RETURNING key"""
# Int8 for every number: a prepared statement is bound to the types of its values.
_ONE = Int8(1)


def is_plain(command: Append) -> bool:
    """Whether the fast path can run an append: entries under the leaf that need no blobs."""
    # Metadata, and whether a thread is archived, is in another row, which only the locked transaction locks.
    if command.expect_live or command.update is not None or command.parent is not UNSET:
        return False
    if command.create is not None or command.on_duplicate == "skip" or not command.moves_leaf:
        return False
    return bool(command.drafts) and not any(
        _needs_blobs(draft) or draft.parent is not UNSET for draft in command.drafts
    )


def append_at_leaf(command: Append, tree: UUID, namespace: str) -> Steps[tuple[Entry, ...] | None]:
    """Append under the leaf; return the new entries, or None if nothing was written."""
    drafts = command.drafts
    sql = _statement(
        is_single=len(drafts) == 1,
        has_leaf=command.expect_leaf is not UNSET,
        has_token=command.token is not None,
        may_be_stored=not all(draft.has_new_id for draft in drafts),
        may_be_title=any(isinstance(draft.payload, UserMessage) for draft in drafts),
    )
    values = _values_of_one(drafts[0]) if len(drafts) == 1 else _values_of_many(drafts)
    values["tree"] = tree
    values["thread"] = to_bytes(command.thread_id)
    values["namespace"] = namespace
    values["expected"] = to_bytes(command.expect_leaf) if isinstance(command.expect_leaf, str) else None
    values["token"] = None if command.token is None else Int8(command.token)
    try:
        rows = yield Statement(sql, values)
    except psycopg.errors.UniqueViolation:
        return None
    if not rows:
        return None
    previous = rows[0][0]
    return _entries(command, None if previous is None else to_text(previous))


def acquire(command: AcquireLease, tree: UUID) -> Steps[Lease | None]:
    """Take the lease if it is free or expired; None if it is not."""
    values = {
        "tree": tree,
        "thread": to_bytes(command.thread_id),
        "now": Int8(command.now_ns),
        "expires": Int8(command.expires_ns),
        "turn": to_bytes(command.turn_id),
        "owner": to_bytes(command.owner),
    }
    rows = yield Statement(_ACQUIRE, values)
    if not rows:
        return None
    return Lease(
        thread_id=command.thread_id,
        turn_id=command.turn_id,
        owner=command.owner,
        token=rows[0][0],
        created_ns=command.now_ns,
        expires_ns=command.expires_ns,
    )


def renew(command: RenewLease, tree: UUID) -> Steps[Lease | None]:
    """Move the expiry of the current lease; None if the token is not its token."""
    values = {
        "tree": tree,
        "thread": to_bytes(command.thread_id),
        "expires": Int8(command.expires_ns),
        "token": Int8(command.token),
    }
    rows = yield Statement(_RENEW, values)
    if not rows:
        return None
    turn_id, owner, created_ns = rows[0]
    return Lease(
        thread_id=command.thread_id,
        turn_id=to_text(turn_id),
        owner=to_text(owner),
        token=command.token,
        created_ns=created_ns,
        expires_ns=command.expires_ns,
    )


def release(command: ReleaseLease, tree: UUID) -> Steps[bool]:
    """End the current lease; False if the token is not its token."""
    values = {"tree": tree, "thread": to_bytes(command.thread_id), "token": Int8(command.token)}
    rows = yield Statement(_RELEASE, values)
    return bool(rows)


def _needs_blobs(draft: Draft) -> bool:
    return bool(draft.blobs or draft.artifacts) or (
        isinstance(draft.payload, Checkpoint) and bool(draft.payload.manifest)
    )


@functools.cache
def _statement(*, is_single: bool, has_leaf: bool, has_token: bool, may_be_stored: bool, may_be_title: bool) -> str:
    conditions = ""
    if has_leaf:
        conditions += " AND leaf IS NOT DISTINCT FROM %(expected)s"
    if has_token:
        conditions += " AND lease_token = %(token)s"
    if may_be_stored:
        taken = "= %(last)s" if is_single else "= ANY(%(ids)s)"
        conditions += f" AND NOT EXISTS (SELECT 1 FROM sessiontree.entry WHERE tree = %(tree)s AND id {taken})"
    if may_be_title:
        # The title is in another row, which only the locked transaction writes.
        conditions += " AND NOT needs_title"
    rows = _ONE_ROW if is_single else _MANY_ROWS
    return _HEAD.format(conditions=conditions, rows=rows.strip()) + _TAIL


def _values_of_one(draft: Draft) -> dict[str, Any]:
    return {
        "last": to_bytes(draft.id),
        "count": _ONE,
        "messages": Int8(draft.messages),
        "tokens": Int8(draft.tokens),
        "updated": Int8(draft.created_ns),
        "turn": to_bytes(draft.turn_id),
        "body": draft.body,
    }


def _values_of_many(drafts: tuple[Draft, ...]) -> dict[str, Any]:
    ids = [to_bytes(draft.id) for draft in drafts]
    messages = list(accumulate(draft.messages for draft in drafts))
    tokens = list(accumulate(draft.tokens for draft in drafts))
    return {
        "last": ids[-1],
        "count": Int8(len(drafts)),
        "messages": Int8(messages[-1]),
        "tokens": Int8(tokens[-1]),
        "updated": Int8(drafts[-1].created_ns),
        "ids": ids,
        "parents": [None, *ids[:-1]],
        "sums": messages,
        "token_sums": tokens,
        "times": [draft.created_ns for draft in drafts],
        "turns": [to_bytes(draft.turn_id) for draft in drafts],
        "bodies": [draft.body for draft in drafts],
    }


def _entries(command: Append, parent: str | None) -> tuple[Entry, ...]:
    entries: list[Entry] = []
    for draft in command.drafts:
        entries.append(
            Entry(
                id=draft.id,
                thread_id=command.thread_id,
                parent=parent,
                created_ns=draft.created_ns,
                turn_id=draft.turn_id,
                payload=draft.payload,
            )
        )
        parent = draft.id
    return tuple(entries)
