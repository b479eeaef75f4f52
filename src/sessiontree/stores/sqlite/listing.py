"""List threads in SQL; ``sessiontree.stores.listing`` defines what the filters and orders mean."""

from __future__ import annotations

import sqlite3
from typing import Any

from sessiontree.model import Page, ThreadQuery
from sessiontree.stores.listing import WORD_COLUMNS, cut, position_of, rows_wanted
from sessiontree.stores.sqlite.rows import THREAD_SELECT, thread_of

__all__ = ["list_threads"]

_NO_LIMIT = -1
_HAS_MESSAGES = "EXISTS (SELECT 1 FROM entry e WHERE e.key = o.leaf AND e.messages > 0)"
_LOOKUPS = {None: "", False: f"WHERE {_HAS_MESSAGES}", True: f"WHERE NOT {_HAS_MESSAGES}"}


def list_threads(connection: sqlite3.Connection, query: ThreadQuery) -> Page:
    """Return one page of the threads that a query selects."""
    conditions, values = _conditions(query)
    time = "m.created_ns" if query.order == "created" else "t.updated_ns"
    start = position_of(query)
    if start is not None:
        conditions.append(f"({time} < ? OR ({time} = ? AND t.id > ?))")
        values += [start.time_ns, start.time_ns, start.thread_id]
    where = "WHERE " + " AND ".join(conditions) if conditions else ""
    # The join is expensive with many threads, so it is left out where no term needs it.
    meta = "JOIN thread_meta m ON m.key = t.key" if "m." in where + time else ""
    # The keys are chosen first, from short rows; only the rows of the page are read in full. Whether a thread is empty
    # is looked up in its leaf, so that comes last, in order, until the page is full. The inner LIMIT keeps SQLite from
    # merging the two, and a small one from sorting all threads.
    ordered = f"SELECT t.key, t.leaf FROM thread t {meta} {where} ORDER BY {time} DESC, t.id LIMIT ?"
    chosen = f"SELECT o.key FROM ({ordered}) o {_LOOKUPS[query.is_empty]} LIMIT ?"
    page = f"{THREAD_SELECT} WHERE t.key IN ({chosen}) ORDER BY {time} DESC, t.id"
    wanted = rows_wanted(query) or _NO_LIMIT
    looked_at = wanted if query.is_empty is None else 2 * wanted
    rows = connection.execute(page, (*values, looked_at, wanted)).fetchall()
    if query.is_empty is not None and len(rows) < wanted:
        rows = connection.execute(page, (*values, _NO_LIMIT, wanted)).fetchall()
    return cut([thread_of(row) for row in rows], query)


def _conditions(query: ThreadQuery) -> tuple[list[str], list[Any]]:
    conditions: list[str] = []
    values: list[Any] = []
    if query.is_archived is not None:
        conditions.append("t.is_archived = ?")
        values.append(query.is_archived)
    for name, column in WORD_COLUMNS.items():
        wanted = getattr(query, name)
        if wanted is not None:
            conditions.append(f"m.{column} = ?")
            values.append(wanted)
    if query.title_contains is not None:
        conditions.append("instr(m.title_folded, ?) > 0")
        values.append(query.title_contains.casefold())
    for tag in query.tags:
        conditions.append("EXISTS (SELECT 1 FROM thread_tag g WHERE g.tag = ? AND g.key = t.key)")
        values.append(tag)
    _add_times(query, conditions, values)
    return conditions, values


def _add_times(query: ThreadQuery, conditions: list[str], values: list[Any]) -> None:
    ranges = (
        ("m.created_ns >= ?", query.created_after_ns),
        ("m.created_ns < ?", query.created_before_ns),
        ("t.updated_ns >= ?", query.updated_after_ns),
        ("t.updated_ns < ?", query.updated_before_ns),
    )
    for condition, value in ranges:
        if value is not None:
            conditions.append(condition)
            values.append(value)
