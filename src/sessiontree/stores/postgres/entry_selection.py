"""Which entries of a thread ``ReadEntries`` selects, in its order."""

from __future__ import annotations

from psycopg.types.numeric import Int8

from sessiontree.model.codec import stored_type
from sessiontree.stores.postgres.rows import ENTRY_COLUMNS
from sessiontree.stores.postgres.schema import IS_RARE
from sessiontree.stores.postgres.steps import Row, Steps, to_text
from sessiontree.stores.postgres.tree_rows import (
    FIRST_BATCH,
    LARGEST_BATCH,
    NO_LIMIT,
    OF_THREAD,
    THREAD_FIRST,
    TreeRows,
    range_of,
    seq_of,
    split,
)
from sessiontree.stores.queries import ReadEntries

__all__ = ["select_entries"]


_NEWEST = f"""
WITH me AS (
    SELECT t.key, t.base, least(h.seq, %(upto)s) AS upto FROM sessiontree.head h
    JOIN sessiontree.thread t ON t.tree = %(tree)s AND t.id = h.id AND t.namespace = %(namespace)s
    WHERE {OF_THREAD}
)
SELECT base, key, NULL::bytea, NULL::bigint, NULL::bytea, NULL::bytea, NULL::bigint FROM me
UNION ALL
SELECT {ENTRY_COLUMNS} FROM sessiontree.entry e
WHERE e.tree = %(tree)s AND e.namespace = %(namespace)s AND e.owner = (SELECT key FROM me)
    AND e.seq <= (SELECT upto FROM me) AND e.seq > (SELECT upto FROM me) - %(limit)s"""
_RARE = f"""{THREAD_FIRST}
SELECT {ENTRY_COLUMNS} FROM sessiontree.entry e
    WHERE e.tree = %(tree)s AND e.namespace = %(namespace)s AND {IS_RARE}
    AND (e.owner = (SELECT key FROM me) OR (SELECT base FROM me) IS NOT NULL)"""
_RARE_OWN = f"""{THREAD_FIRST}
(SELECT {ENTRY_COLUMNS} FROM sessiontree.entry e
    WHERE e.tree = %(tree)s AND e.namespace = %(namespace)s AND {IS_RARE}
    AND e.owner = (SELECT key FROM me) AND e.seq > %(above)s AND e.seq < %(below)s
    AND substring(e.body FROM 10 FOR 5) = ANY(%(marks)s) ORDER BY e.seq {{order}} LIMIT %(limit)s)"""


def select_entries(tree_rows: TreeRows, query: ReadEntries) -> Steps[tuple[int, list[Row]]]:
    """The key of the thread, and the rows of the entries that the query selects."""
    start: Row | None = None
    if query.after is not None:
        _, start = yield from tree_rows.visible(query.thread_id, query.after)
    own = (yield from _rare_own(tree_rows, query, start)) if query.rare_types else None
    if own is not None:
        return own
    if query.newest_first and not query.rare_types:
        return (yield from _newest_first(tree_rows, query, start))
    key, rows = yield from _oldest_first(tree_rows, query, start)
    if start is not None:
        rows = _beyond(start, key, rows, newest_first=query.newest_first)
    if query.newest_first:
        rows.reverse()
    return key, [row for row in rows if query.wants(stored_type(row[5]), to_text(row[4]))][: query.limit]


def _rare_own(tree_rows: TreeRows, query: ReadEntries, start: Row | None) -> Steps[tuple[int, list[Row]] | None]:
    """A thread's key and the entries of rare types that a query selects; None for a fork, which has others as well."""
    values = {
        "above": Int8(start[6] if start is not None and not query.newest_first else 0),
        "below": Int8(start[6] if start is not None and query.newest_first else NO_LIMIT),
        "marks": list(query.rare_marks),
        "limit": None if query.rare_limit is None else Int8(query.rare_limit),
    }
    order = "DESC" if query.newest_first else "ASC"
    _, rows = yield from tree_rows.of_thread(query.thread_id, _RARE_OWN.format(order=order), values)
    (base, key, *_), own = split(rows)
    if base is not None:
        return None
    own.sort(key=seq_of, reverse=query.newest_first)
    return key, [row for row in own if query.wants(stored_type(row[5]), to_text(row[4]))][: query.limit]


def _oldest_first(tree_rows: TreeRows, query: ReadEntries, start: Row | None) -> Steps[tuple[int, list[Row]]]:
    """A thread's key, and the entries that it sees and that a query may select, oldest first."""
    if query.rare_types:
        tree, rows = yield from tree_rows.of_thread(query.thread_id, _RARE, {})
        (base, key, *_), entries = split(rows)
        own = sorted((row for row in entries if row[1] == key), key=seq_of)
        if base is None or (start is None and len(own) == len(entries)):
            return key, own
        inherited = yield from tree_rows.inherited(tree, base)
        return key, [*inherited, *own]
    most = None if query.is_filtered or start is not None else query.limit
    tree, key, base, own = yield from tree_rows.own(query.thread_id, 0, most)
    if base is None:
        return key, own
    return key, [*(yield from tree_rows.inherited(tree, base)), *own]


def _newest_first(tree_rows: TreeRows, query: ReadEntries, start: Row | None) -> Steps[tuple[int, list[Row]]]:
    """A thread's key, and the entries that a query selects, read in growing batches from the newest one."""

    def wants(row: Row) -> bool:
        return query.wants(stored_type(row[5]), to_text(row[4]))

    chosen: list[Row] = []
    size = FIRST_BATCH if query.is_filtered else query.limit
    upto = NO_LIMIT
    while True:
        values = {"upto": Int8(upto), "limit": range_of(size)}
        tree, rows = yield from tree_rows.of_thread(query.thread_id, _NEWEST, values)
        (base, key, *_), own = split(rows)
        own.sort(key=seq_of, reverse=True)
        if start is not None and start[1] == key and upto == NO_LIMIT:
            upto = start[6] - 1
            continue
        if start is None or start[1] == key:
            chosen += filter(wants, own)
        if not own or size is None or len(own) < size or len(chosen) >= (query.limit or NO_LIMIT):
            break
        upto, size = own[-1][6] - 1, min(2 * size, LARGEST_BATCH)
    if query.limit is None or len(chosen) < query.limit:
        tip = base if start is None or start[1] == key else start[2]
        most = None if query.limit is None else query.limit - len(chosen)
        first = yield from tree_rows.walk(tree, tip, FIRST_BATCH)
        chosen += yield from tree_rows.walk_for(tree, first, FIRST_BATCH, most, wants)
    return key, chosen[: query.limit]


def _beyond(start: Row, key: int, rows: list[Row], *, newest_first: bool) -> list[Row]:
    """Those of a thread's rows, oldest first, that come before or after one that it sees."""
    if start[1] == key:
        ranks = [row[6] if row[1] == key else 0 for row in rows]
        place = start[6]
    else:
        ranks = list(range(len(rows)))
        place = next(number for number, row in enumerate(rows) if row[0] == start[0])
    return [row for row, rank in zip(rows, ranks, strict=True) if (rank < place if newest_first else rank > place)]
