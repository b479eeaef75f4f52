"""List threads in SQL; ``sessiontree.stores.listing`` defines what the filters and orders mean."""

from __future__ import annotations

import sqlite3
from typing import Any

from sessiontree.model import Page, ThreadQuery
from sessiontree.stores.listing import WORD_COLUMNS, cut, position_of, rows_wanted
from sessiontree.stores.sqlite.rows import THREAD_SELECT, thread_of

__all__ = ["list_threads"]

_NO_LIMIT = -1
_HAS_MESSAGES = "EXISTS (SELECT 1 FROM entry e WHERE e.key = t.leaf AND e.messages > 0)"


def list_threads(connection: sqlite3.Connection, query: ThreadQuery) -> Page:
    """Return one page of the threads that a query selects."""
    conditions, values = _conditions(query)
    time = "m.created_ns" if query.order == "created" else "t.updated_ns"
    start = position_of(query)
    if start is not None:
        conditions.append(f"{time} <= ? AND ({time} < ? OR t.id > ?)")
        values += [start.time_ns, start.time_ns, start.thread_id]
    where = "WHERE " + " AND ".join(conditions) if conditions else ""
    order = f"ORDER BY {time} DESC, t.id"
    if "m." in where + time:
        # Many threads may have to be sorted, so the keys are chosen first, and only the rows of the page are read in full.
        tables = "thread_meta m CROSS JOIN thread t" if query.order == "created" else "thread t JOIN thread_meta m"
        keys = f"SELECT t.key FROM {tables} ON m.key = t.key {where} {order} LIMIT ?"
        page = f"{THREAD_SELECT} WHERE t.key IN ({keys}) {order}"
    else:
        # An index has this order, so threads are read until the page is full.
        page = f"{THREAD_SELECT} {where} {order} LIMIT ?"
    rows = connection.execute(page, (*values, rows_wanted(query) or _NO_LIMIT)).fetchall()
    return cut([thread_of(row) for row in rows], query)


def _conditions(query: ThreadQuery) -> tuple[list[str], list[Any]]:
    conditions: list[str] = []
    values: list[Any] = []
    if query.is_archived is not None:
        conditions.append("t.is_archived = ?")
        values.append(query.is_archived)
    if query.is_empty is not None:
        conditions.append(f"NOT {_HAS_MESSAGES}" if query.is_empty else _HAS_MESSAGES)
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
