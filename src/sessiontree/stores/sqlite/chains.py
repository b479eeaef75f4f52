"""The entries of a thread, found along ``entry.previous``, and what stays of them when the thread is deleted.

If a fork still shows some of its entries, a deleted thread becomes a row of ``deleted_thread``, and its chain is closed over
the gaps.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Sequence

from sessiontree.stores.rules.state import ThreadState

__all__ = ["drop_thread", "inherited_keys", "own_keys", "unseen_without"]


def own_keys(connection: sqlite3.Connection, owner: int, newest: int) -> list[int]:
    """Return the keys of the entries appended through a thread, newest first; in a damaged file also those below a gap."""
    rows = connection.execute(
        "WITH RECURSIVE chain (key, previous) AS ("
        " SELECT key, previous FROM entry WHERE key = ?1 AND owner = ?2"
        " UNION ALL SELECT e.key, e.previous FROM entry e JOIN chain c ON e.key = c.previous"
        " WHERE e.key < c.key AND e.owner = ?2"
        ") SELECT key, previous FROM chain ORDER BY key DESC",
        (newest, owner),
    ).fetchall()
    has_gap = bool(rows[-1][1]) if rows else newest > 0
    if has_gap:
        rows = connection.execute("SELECT key FROM entry WHERE owner = ? ORDER BY key DESC", (owner,)).fetchall()
    return [row[0] for row in rows]


def unseen_without(connection: sqlite3.Connection, state: ThreadState) -> list[int]:
    """Return the keys of the entries that no thread shows once this one is deleted."""
    inherited = inherited_keys(connection, state)
    return [
        key
        for owner, newest, _ in _deleted_owners(connection, state)
        for key in own_keys(connection, owner, newest)
        if key not in inherited
    ]


def inherited_keys(connection: sqlite3.Connection, state: ThreadState) -> frozenset[int]:
    """Return the keys of the entries that other threads of the tree have from their fork points."""
    rows = connection.execute(
        "WITH RECURSIVE inherited (key) AS ("
        " SELECT base FROM thread WHERE tree = ?1 AND key <> ?2 AND base IS NOT NULL"
        " UNION SELECT e.parent FROM entry e JOIN inherited i ON e.key = i.key WHERE e.parent IS NOT NULL"
        ") SELECT key FROM inherited",
        (state.tree, state.key),
    )
    return frozenset(key for (key,) in rows)


def drop_thread(connection: sqlite3.Connection, state: ThreadState, entries: Sequence[int]) -> None:
    """Delete a thread and the given entries; keep the chains of the entries that stay."""
    gone = frozenset(entries)
    for owner, newest, thread_id in _deleted_owners(connection, state):
        kept = _close_gaps(connection, own_keys(connection, owner, newest), gone)
        connection.execute("DELETE FROM deleted_thread WHERE key = ?", (owner,))
        if kept:
            connection.execute(
                "INSERT INTO deleted_thread VALUES (?, ?, ?, ?)", (owner, state.tree, kept[0], thread_id)
            )
    keys = [(key,) for key in entries]
    connection.executemany("DELETE FROM entry WHERE key = ?", keys)
    connection.executemany("DELETE FROM checkpoint WHERE entry = ?", keys)
    connection.executemany("DELETE FROM artifact WHERE entry = ?", keys)
    for table, column in (
        ("thread", "key"), ("thread_meta", "key"), ("thread_tag", "key"), ("move", "thread"), ("lease", "thread"),
    ):  # fmt: skip
        connection.execute(f"DELETE FROM {table} WHERE {column} = ?", (state.key,))


def _deleted_owners(connection: sqlite3.Connection, state: ThreadState) -> list[tuple[int, int, str]]:
    """Return key, newest entry and id of the thread to delete and of those deleted before it."""
    deleted = connection.execute("SELECT key, newest, id FROM deleted_thread WHERE tree = ?", (state.tree,))
    return [(state.key, state.newest, state.meta.id), *deleted]


def _close_gaps(connection: sqlite3.Connection, keys: Sequence[int], gone: Collection[int]) -> list[int]:
    kept = [key for key in keys if key not in gone]
    if len(kept) < len(keys):
        links = zip((*kept[1:], 0), kept, strict=True) if kept else ()
        connection.executemany("UPDATE entry SET previous = ?1 WHERE key = ?2 AND previous <> ?1", links)
    return kept
