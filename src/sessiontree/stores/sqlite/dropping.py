"""Delete: which entries go with a thread, and how the ones that stay keep their chain.

The entries of a thread are found along ``entry.previous``. Where a thread goes and a fork still shows some of its
entries, the thread becomes a row of ``departed`` and its chain is closed over the gaps.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Sequence

from sessiontree.rules.state import ThreadState

__all__ = ["drop_thread", "own_keys", "unseen_without"]


def own_keys(connection: sqlite3.Connection, owner: int, newest: int) -> list[int]:
    """Keys of the entries that were appended through a thread, newest first; in a damaged file also below a hole."""
    rows = connection.execute(
        "WITH RECURSIVE chain (key, previous) AS ("
        " SELECT key, previous FROM entry WHERE key = ?1 AND owner = ?2"
        " UNION ALL SELECT e.key, e.previous FROM entry e JOIN chain c ON e.key = c.previous"
        " WHERE e.key < c.key AND e.owner = ?2"
        ") SELECT key, previous FROM chain ORDER BY key DESC",
        (newest, owner),
    ).fetchall()
    is_cut_short = bool(rows[-1][1]) if rows else newest > 0
    if is_cut_short:
        rows = connection.execute("SELECT key FROM entry WHERE owner = ? ORDER BY key DESC", (owner,)).fetchall()
    return [row[0] for row in rows]


def unseen_without(connection: sqlite3.Connection, state: ThreadState) -> list[int]:
    """Keys of the entries that nobody sees once the thread is gone."""
    inherited = {
        key
        for (key,) in connection.execute(
            "WITH RECURSIVE inherited (key) AS ("
            " SELECT base FROM thread WHERE tree = ?1 AND key <> ?2 AND base IS NOT NULL"
            " UNION SELECT e.parent FROM entry e JOIN inherited i ON e.key = i.key WHERE e.parent IS NOT NULL"
            ") SELECT key FROM inherited",
            (state.tree, state.key),
        )
    }
    return [
        key
        for owner, newest, _ in _without_owner(connection, state)
        for key in own_keys(connection, owner, newest)
        if key not in inherited
    ]


def drop_thread(connection: sqlite3.Connection, state: ThreadState, entries: Sequence[int]) -> None:
    gone = frozenset(entries)
    for owner, newest, thread_id in _without_owner(connection, state):
        kept = _close_gaps(connection, own_keys(connection, owner, newest), gone)
        connection.execute("DELETE FROM departed WHERE key = ?", (owner,))
        if kept:
            connection.execute("INSERT INTO departed VALUES (?, ?, ?, ?)", (owner, state.tree, kept[0], thread_id))
    places = [(key,) for key in entries]
    connection.executemany("DELETE FROM entry_id WHERE (id, tree) = (SELECT id, tree FROM entry WHERE key = ?)", places)
    connection.executemany("DELETE FROM entry WHERE key = ?", places)
    connection.executemany("DELETE FROM checkpoint WHERE entry = ?", places)
    for table, column in (
        ("thread", "key"), ("thread_meta", "key"), ("thread_tag", "key"), ("move", "thread"), ("lease", "thread"),
    ):  # fmt: skip
        connection.execute(f"DELETE FROM {table} WHERE {column} = ?", (state.key,))


def _without_owner(connection: sqlite3.Connection, state: ThreadState) -> list[tuple[int, int, str]]:
    """The thread that goes and the ones that went before it: key, newest entry, id."""
    departed = connection.execute("SELECT key, newest, id FROM departed WHERE tree = ?", (state.tree,))
    return [(state.key, state.newest, state.meta.id), *departed]


def _close_gaps(connection: sqlite3.Connection, keys: Sequence[int], gone: Collection[int]) -> list[int]:
    kept = [key for key in keys if key not in gone]
    if len(kept) < len(keys):
        links = zip((*kept[1:], 0), kept, strict=True) if kept else ()
        connection.executemany("UPDATE entry SET previous = ?1 WHERE key = ?2 AND previous <> ?1", links)
    return kept
