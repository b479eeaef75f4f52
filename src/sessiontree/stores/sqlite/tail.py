"""The tail: entries that are in their table, and not yet in what is made from it.

An append writes one page, the one with its row. The table of ids and the heads of threads follow for many entries at
once, up to the key in ``floor.settled``. Until then an id is looked for in the table of ids and then in the tail; and
where the row of a thread is older than the thread's newest entry in the tail, that entry is the leaf.
"""

from __future__ import annotations

import sqlite3

from sessiontree.stores.rules.state import ThreadState

__all__ = [
    "FIRST_ID_FROM",
    "KEY_OF_ID",
    "LATE_HEADS",
    "LONGEST",
    "NEWEST_IN_TAIL",
    "NOT_IN_TABLE_OF_IDS",
    "NOT_WHERE_ITS_ID_LEADS",
    "REPEATED_IDS",
    "TIPS",
    "is_told_by_tail",
    "settle",
    "settle_anew",
]


LONGEST = 128
"""A longer one makes groups of appends cheaper, and every look at a thread dearer."""

_SETTLED = "(SELECT settled FROM floor)"

KEY_OF_ID = (
    "coalesce((SELECT key FROM entry_id WHERE id = ?1 AND tree = ?2),"
    f" (SELECT key FROM entry WHERE key > {_SETTLED} AND tree = ?2 AND id = ?1))"
)

FIRST_ID_FROM = (
    "(SELECT min(id) FROM (SELECT min(id) AS id FROM entry_id WHERE id >= ?1"
    f" UNION ALL SELECT min(id) FROM entry WHERE key > {_SETTLED} AND id >= ?1))"
)
"""The first id, in the order of ids, that is not before a given one."""

NEWEST_IN_TAIL = (
    f"(SELECT key FROM entry WHERE key > max({_SETTLED}, t.newest) AND owner = t.key ORDER BY key DESC LIMIT 1)"
)
"""For one thread ``t``: what its row does not know of."""

TIPS = f"SELECT owner, max(key) AS key, created_ns FROM entry WHERE key > {_SETTLED} GROUP BY owner"
"""For all threads: the newest entry of each in the tail, whether its row knows of it or not."""

NOT_IN_TABLE_OF_IDS = (
    "SELECT e.id FROM entry e LEFT JOIN entry_id i ON i.id = e.id AND i.tree = e.tree LEFT JOIN entry o ON o.key = i.key"
    f" WHERE e.key <= {_SETTLED} AND i.key IS NOT e.key AND (o.id IS NOT e.id OR o.tree IS NOT e.tree)"
)
NOT_WHERE_ITS_ID_LEADS = (
    "SELECT i.id FROM entry_id i LEFT JOIN entry e ON e.key = i.key WHERE e.id IS NOT i.id OR e.tree IS NOT i.tree"
)
REPEATED_IDS = "SELECT min(id) FROM entry GROUP BY tree, id HAVING count(*) > 1"
LATE_HEADS = (
    "SELECT t.id FROM (SELECT owner, max(key) AS key FROM entry GROUP BY owner) e JOIN thread t ON t.key = e.owner"
    f" WHERE e.key > t.newest AND e.key <= {_SETTLED}"
)


def is_told_by_tail(before: ThreadState | None, after: ThreadState) -> bool:
    """Whether the newest entry says all that changed in a thread, so that its row need not be written now."""
    return (
        before is not None
        and after.leaf is not None
        and after.leaf.key == after.newest > before.newest
        and after.updated_ns > before.updated_ns
        and after.moves == before.moves
        and after.fence == before.fence
    )


def settle(connection: sqlite3.Connection, last: int) -> None:
    """Bring ids and heads up to the entry ``last``, the newest of all.

    An id can be there twice in a damaged file only; that must not keep anybody from writing, and ``check`` tells.
    """
    connection.execute(f"INSERT OR IGNORE INTO entry_id SELECT id, tree, key FROM entry WHERE key > {_SETTLED}")
    tips = connection.execute(TIPS).fetchall()
    connection.executemany(
        "UPDATE thread SET leaf = ?2, newest = ?2, updated_ns = ?3 WHERE key = ?1 AND newest < ?2", tips
    )
    connection.execute("UPDATE floor SET settled = ?", (last,))


def settle_anew(connection: sqlite3.Connection) -> None:
    """Ids and heads from the entries alone; of two entries with one id the older one is found."""
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("DELETE FROM entry_id")
    connection.execute("UPDATE floor SET settled = 0")
    settle(connection, connection.execute("SELECT coalesce(max(key), 0) FROM entry").fetchone()[0])
    connection.execute("COMMIT")
