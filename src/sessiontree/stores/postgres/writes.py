"""The facts of a decision as statements."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any
from uuid import UUID

from psycopg.types.numeric import Int8

from sessiontree.model import Lease
from sessiontree.model.blobs import unpacked
from sessiontree.model.codec import encode_record
from sessiontree.stores.postgres.blobs import drop_blobs, put_artifacts, put_blobs, put_checkpoints, put_pending
from sessiontree.stores.postgres.documents import change_documents
from sessiontree.stores.postgres.steps import Row, Statement, Steps, insert_rows, to_bytes
from sessiontree.stores.postgres.view import SnapshotView
from sessiontree.stores.rules.append import needs_title
from sessiontree.stores.rules.state import (
    ERASED_BODY,
    Decision,
    DropBlobs,
    DropDocument,
    DropExpiredDocuments,
    DropThread,
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
)

__all__ = ["statements_of", "thread_values"]


_THREAD_COLUMNS = (
    "is_archived", "title_folded", "workspace", "vendor", "model", "agent", "channel", "peer", "key_thread", "state",
    "status", "parent_thread", "forked_from_thread", "tags", "body",
)  # fmt: skip
_NEW_THREAD = (
    f"INSERT INTO sessiontree.thread (tree, key, namespace, id, base, created_ns, tree_id, {', '.join(_THREAD_COLUMNS)})"
    " VALUES (%(tree)s, %(key)s, %(namespace)s, %(id)s, %(base)s, %(created_ns)s, %(tree_id)s, "
    + ", ".join(f"%({name})s" for name in _THREAD_COLUMNS)
    + ")"
)
_CHANGED_THREAD = (
    "UPDATE sessiontree.thread SET "
    + ", ".join(f"{name} = %({name})s" for name in _THREAD_COLUMNS)
    + " WHERE tree = %(tree)s AND id = %(id)s AND namespace = %(namespace)s"
)
_NEW_HEAD = """
INSERT INTO sessiontree.head (tree, id, key, namespace, seq, leaf, depth, messages, tokens, updated_ns,
    updated_minute, touched_minute, moves, fence, last_stamp, version, indexed_seq, needs_title)
VALUES (%(tree)s, %(id)s, %(key)s, %(namespace)s, %(key)s, %(leaf)s, %(depth)s, %(messages)s, %(tokens)s,
    %(updated_ns)s, %(updated_ns)s / 60000000000, extract(epoch FROM now())::bigint / 60, %(moves)s, %(fence)s,
    %(stamp)s, %(key)s, %(key)s, %(needs_title)s)"""
_CHANGED_HEAD = """
UPDATE sessiontree.head SET version = version + 1, previous_leaf = leaf, leaf = %(leaf)s, depth = %(depth)s, messages = %(messages)s,
    tokens = %(tokens)s, updated_ns = %(updated_ns)s, updated_minute = %(updated_ns)s / 60000000000, moves = %(moves)s,
    fence = %(fence)s, last_stamp = %(stamp)s, needs_title = %(needs_title)s
WHERE tree = %(tree)s AND id = %(id)s AND namespace = %(namespace)s"""
_CHANGED_BOTH = f"WITH changed AS ({_CHANGED_THREAD}) {_CHANGED_HEAD}"
_PLACE_THREAD = """
UPDATE sessiontree.home SET tree = %(tree)s, named_tree = CASE WHEN %(is_root)s THEN %(tree)s ELSE named_tree END
WHERE id = %(id)s AND namespace = %(namespace)s"""
# Only an import creates a tree whose first thread is missing; in all other cases the name is set already.
_NAME_TREE = """
UPDATE sessiontree.home SET named_tree = %(tree)s
WHERE id = %(tree_id)s AND namespace = %(namespace)s AND named_tree IS NULL"""
_GROWN = """
UPDATE sessiontree.head SET seq = seq + %(count)s, bytes = bytes + %(bytes)s,
    touched_minute = extract(epoch FROM now())::bigint / 60
WHERE tree = %(tree)s AND id = %(thread)s AND namespace = %(namespace)s RETURNING key, watched_until"""
_NOTIFY = "SELECT CASE WHEN %(until)s > now() THEN pg_notify(%(channel)s, %(topic)s) END"
_ENTRY_ROW = (
    "tree", "owner", "seq", "namespace", "id", "parent", "depth", "messages", "tokens", "created_ns", "turn_id", "body",
)  # fmt: skip
_MOVE = """
INSERT INTO sessiontree.move (tree, thread, number, namespace, from_entry, to_entry, reason, at_ns, undo, redo,
    redo_below)
VALUES (%(tree)s, %(key)s, %(number)s, %(namespace)s, %(from_entry)s, %(to_entry)s, %(reason)s, %(at_ns)s, %(undo)s,
    %(redo)s, %(redo_below)s)"""
_LEASE = """
UPDATE sessiontree.head SET version = version + 1, lease_token = %(token)s, lease_turn = %(turn)s, lease_owner = %(owner)s,
    lease_created_ns = %(created_ns)s, lease_expires_ns = %(expires_ns)s, last_stamp = %(stamp)s
WHERE tree = %(tree)s AND id = %(id)s AND namespace = %(namespace)s"""
_ERASED = "e.tree = %(tree)s AND e.id = ANY(%(ids)s) AND e.namespace = %(namespace)s"
# Words that are gone from an entry are gone from its block; the next search indexes the others again.
_UNINDEX = "UPDATE sessiontree.search_block b SET is_stale = true, words = NULL, roles = '', tools = '', models = '', files = ''"
_ERASE = f"""
WITH shrunk AS (
    UPDATE sessiontree.head h SET bytes = h.bytes - gone.bytes
    FROM (SELECT e.owner, sum(octet_length(e.body) - octet_length(%(body)s::bytea)) AS bytes FROM sessiontree.entry e
        WHERE {_ERASED} GROUP BY e.owner) gone
    WHERE h.tree = %(tree)s AND h.key = gone.owner AND h.namespace = %(namespace)s
), unindexed AS (
    {_UNINDEX} FROM sessiontree.entry e WHERE {_ERASED}
        AND b.tree = %(tree)s AND b.owner = e.owner AND e.seq BETWEEN b.first_seq AND b.last_seq
        AND b.namespace = %(namespace)s
), unmarked AS (
    DELETE FROM sessiontree.artifact a USING sessiontree.entry e WHERE {_ERASED}
        AND a.tree = %(tree)s AND a.owner = e.owner AND a.seq = e.seq AND a.namespace = %(namespace)s
), unsaved AS (
    DELETE FROM sessiontree.checkpoint c USING sessiontree.entry e WHERE {_ERASED}
        AND c.tree = %(tree)s AND c.owner = e.owner AND c.seq = e.seq AND c.namespace = %(namespace)s
) UPDATE sessiontree.entry e SET body = %(body)s WHERE {_ERASED}"""
_DROPPED = """
    USING unnest(%(owners)s::bigint[], %(seqs)s::bigint[]) AS x (owner, seq)
    WHERE r.tree = %(tree)s AND r.owner = x.owner AND r.seq = x.seq AND r.namespace = %(namespace)s"""
_DROP_ENTRIES = f"""
WITH unindexed AS (
    {_UNINDEX} FROM unnest(%(owners)s::bigint[], %(seqs)s::bigint[]) AS x (owner, seq)
        WHERE b.tree = %(tree)s AND b.owner = x.owner AND x.seq BETWEEN b.first_seq AND b.last_seq
            AND b.namespace = %(namespace)s
    ),
    unmarked AS (DELETE FROM sessiontree.checkpoint r {_DROPPED}),
    hidden AS (DELETE FROM sessiontree.artifact r {_DROPPED})
DELETE FROM sessiontree.entry r {_DROPPED}"""
_OF_THREAD = "tree = %(tree)s AND id = %(id)s AND namespace = %(namespace)s"
_DROP_ROWS = (
    """DELETE FROM sessiontree.search_block b WHERE b.tree = %(tree)s AND b.namespace = %(namespace)s
    AND NOT EXISTS (SELECT 1 FROM sessiontree.entry e WHERE e.tree = %(tree)s AND e.owner = b.owner
        AND e.seq BETWEEN b.first_seq AND b.last_seq AND e.namespace = %(namespace)s)""",
    "DELETE FROM sessiontree.move WHERE tree = %(tree)s AND thread = %(key)s AND namespace = %(namespace)s",
    f"DELETE FROM sessiontree.thread WHERE {_OF_THREAD}",
    f"DELETE FROM sessiontree.head WHERE {_OF_THREAD}",
    "INSERT INTO sessiontree.deleted_thread (tree, key, namespace, id) VALUES (%(tree)s, %(key)s, %(namespace)s, %(id)s)",
    """DELETE FROM sessiontree.deleted_thread d WHERE d.tree = %(tree)s AND d.namespace = %(namespace)s
    AND NOT EXISTS (SELECT 1 FROM sessiontree.entry e
        WHERE e.tree = %(tree)s AND e.owner = d.key AND e.namespace = %(namespace)s)""",
    "UPDATE sessiontree.home SET tree = NULL WHERE id = %(id)s AND namespace = %(namespace)s",
)
_HAS_THREADS = "SELECT 1 FROM sessiontree.head WHERE tree = %(tree)s AND namespace = %(namespace)s LIMIT 1"
_UNNAME_TREE = """
UPDATE sessiontree.home SET named_tree = NULL WHERE id = %(tree_id)s AND namespace = %(namespace)s
    AND named_tree = %(tree)s"""
_DROP_NAME = """
DELETE FROM sessiontree.home WHERE id = %(id)s AND namespace = %(namespace)s AND tree IS NULL AND named_tree IS NULL"""


def statements_of(decision: Decision, view: SnapshotView, namespace: str, stamp: int, channel: str) -> Steps[None]:
    """Write the facts of a decision: new threads first, then entries, then everything that refers to them."""
    for fact in decision.facts:
        if isinstance(fact, PutThread) and view.head(fact.state.meta.id) is None:
            yield from _new_thread(fact.state, view, namespace, stamp)
    entries = [fact for fact in decision.facts if isinstance(fact, PutEntry)]
    if entries:
        yield from _put_entries(entries, view, namespace, channel)
        tree = view.uuid_of(entries[0].state.tree)
        yield from put_checkpoints(entries, tree, namespace)
        yield from put_artifacts(entries, tree, namespace)
    for fact in decision.facts:
        match fact:
            case PutThread(state=state) if view.head(state.meta.id) is not None:
                values = thread_values(state) | _head_values(state, view, namespace, stamp)
                yield Statement(_CHANGED_BOTH, values)
            case PutHead(state=state):
                yield Statement(_CHANGED_HEAD, _head_values(state, view, namespace, stamp))
            case PutMove(state=state, move=move, tops=tops):
                yield Statement(
                    _MOVE,
                    {
                        "tree": view.uuid_of(state.tree),
                        "key": state.key,
                        "number": move.number,
                        "namespace": namespace,
                        "from_entry": _optional(move.from_entry),
                        "to_entry": _optional(move.to_entry),
                        "reason": move.reason,
                        "at_ns": move.at_ns,
                        "undo": tops.undo if tops else None,
                        "redo": tops.redo if tops else None,
                        "redo_below": tops.redo_below if tops else None,
                    },
                )
            case PutErased(state=state, nodes=nodes):
                ids = [to_bytes(node.id) for node in nodes]
                values = {"tree": view.uuid_of(state.tree), "namespace": namespace, "ids": ids, "body": ERASED_BODY}
                yield Statement(_ERASE, values)
            case PutLease(state=state, lease=lease):
                yield Statement(_LEASE, _lease_values(state, lease, stamp) | _place(state, view, namespace))
            case DropThread(state=state):
                yield from _delete_thread(state, view, namespace)
            case PutPack(pack=pack):
                yield from put_blobs(unpacked(pack), namespace, view.ids)
            case PutPending(hashes=hashes):
                yield from put_pending(hashes, namespace)
            case DropBlobs(hashes=hashes):
                yield from drop_blobs(hashes, namespace, view.ids)
            case PutDocument() | DropDocument() | DropExpiredDocuments():
                yield change_documents(fact, namespace)


def _new_thread(state: ThreadState, view: SnapshotView, namespace: str, stamp: int) -> Iterator[Statement]:
    tree, name = view.uuid_of(state.tree), to_bytes(state.meta.id)
    head = _head_values(state, view, namespace, stamp)
    yield Statement(_NEW_THREAD, thread_values(state) | head)
    yield Statement(_NEW_HEAD, head)
    is_root = state.meta.tree == state.meta.id
    yield Statement(_PLACE_THREAD, {"tree": tree, "id": name, "namespace": namespace, "is_root": is_root})
    if not is_root:
        yield Statement(_NAME_TREE, {"tree": tree, "tree_id": to_bytes(state.meta.tree), "namespace": namespace})


def _put_entries(facts: Sequence[PutEntry], view: SnapshotView, namespace: str, channel: str) -> Steps[None]:
    state = facts[0].state
    tree = view.uuid_of(state.tree)
    values = {
        "tree": tree,
        "thread": to_bytes(state.meta.id),
        "namespace": namespace,
        "count": len(facts),
        "bytes": sum(len(fact.draft.body) for fact in facts),
    }
    ((key, watched_until),) = yield Statement(_GROWN, values)
    rows = [_entry_row(fact, tree, namespace) for fact in facts]
    yield from insert_rows("entry", _ENTRY_ROW, rows)
    if watched_until is not None:
        # By itself: what a distributed server runs on the node of the thread notifies nobody.
        values = {"until": watched_until, "channel": channel, "topic": f"{tree}:{key}"}
        yield Statement(_NOTIFY, values)


def _entry_row(fact: PutEntry, tree: UUID, namespace: str) -> Row:
    node, draft = fact.node, fact.draft
    return (
        tree,
        fact.state.key,
        Int8(node.key),
        namespace,
        to_bytes(node.id),
        _optional(fact.parent_id),
        Int8(node.depth),
        Int8(node.messages),
        Int8(node.tokens),
        Int8(draft.created_ns),
        to_bytes(draft.turn_id),
        draft.body,
    )


def _delete_thread(state: ThreadState, view: SnapshotView, namespace: str) -> Steps[None]:
    tree: UUID = view.uuid_of(state.tree)
    name, tree_name = to_bytes(state.meta.id), to_bytes(state.meta.tree)
    values = {"tree": tree, "key": state.key, "namespace": namespace, "id": name, "tree_id": tree_name}
    gone = view.deleted_entries.values()
    owners, seqs = [owner for owner, _ in gone], [seq for _, seq in gone]
    if view.deleted_entries:
        yield Statement(_DROP_ENTRIES, {"tree": tree, "owners": owners, "seqs": seqs, "namespace": namespace})
    for sql in _DROP_ROWS:
        yield Statement(sql, values)
    # One statement for each table and name: a distributed server has them on different nodes.
    if not (yield Statement(_HAS_THREADS, values)):
        yield Statement(_UNNAME_TREE, values)
    for unused in sorted({name, tree_name}):
        yield Statement(_DROP_NAME, {"id": unused, "namespace": namespace})


def thread_values(state: ThreadState) -> dict[str, Any]:
    """The columns of a thread's row that are made of the thread itself."""
    meta = state.meta
    words = {
        "tree_id": meta.tree,
        "title_folded": meta.title.casefold(),
        "workspace": meta.workspace,
        "vendor": meta.vendor,
        "model": meta.model,
        "agent": meta.key.agent,
        "channel": meta.key.channel,
        "peer": meta.key.peer,
        "key_thread": meta.key.thread,
        "state": meta.state,
        "status": meta.status,
        "parent_thread": meta.parent_thread,
        "forked_from_thread": meta.forked_from_thread,
        "id": meta.id,
    }
    return {
        "key": state.key,
        "base": _optional(state.base.id if state.base else None),
        "created_ns": meta.created_ns,
        "is_archived": meta.is_archived,
        "tags": [to_bytes(tag) for tag in dict.fromkeys(meta.tags)],
        "body": encode_record(meta, f"thread {meta.id!r}"),
        **{name: to_bytes(word) for name, word in words.items()},
    }


def _head_values(state: ThreadState, view: SnapshotView, namespace: str, stamp: int) -> dict[str, Any]:
    leaf = state.leaf
    return {
        "tree": view.uuid_of(state.tree),
        "id": to_bytes(state.meta.id),
        "key": state.key,
        "namespace": namespace,
        "leaf": to_bytes(leaf.id) if leaf else None,
        "depth": leaf.depth if leaf else 0,
        "messages": leaf.messages if leaf else 0,
        "tokens": leaf.tokens if leaf else 0,
        "updated_ns": state.updated_ns,
        "moves": state.moves,
        "fence": state.fence,
        "stamp": stamp,
        "needs_title": needs_title(state.meta),
    }


def _lease_values(state: ThreadState, lease: Lease | None, stamp: int) -> dict[str, Any]:
    return {
        "id": to_bytes(state.meta.id),
        "stamp": stamp,
        "token": lease.token if lease else None,
        "turn": to_bytes(lease.turn_id) if lease else None,
        "owner": to_bytes(lease.owner) if lease else None,
        "created_ns": lease.created_ns if lease else None,
        "expires_ns": lease.expires_ns if lease else None,
    }


def _place(state: ThreadState, view: SnapshotView, namespace: str) -> dict[str, Any]:
    return {"tree": view.uuid_of(state.tree), "namespace": namespace}


def _optional(text: str | None) -> bytes | None:
    return None if text is None else to_bytes(text)
