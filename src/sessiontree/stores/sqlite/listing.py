"""Listing threads in SQL, with the meaning that ``sessiontree.stores.listing`` gives it."""

from __future__ import annotations

import sqlite3
from typing import Any

from sessiontree.model import Page, ThreadQuery
from sessiontree.stores.listing import WORD_COLUMNS, cut, position_of
from sessiontree.stores.sqlite.rows import STATE_SELECT, state_of
from sessiontree.stores.sqlite.tail import TIPS

__all__ = ["list_threads"]


_UPDATED_NS = "coalesce(tip.created_ns, t.updated_ns)"


def list_threads(connection: sqlite3.Connection, query: ThreadQuery) -> Page:
    conditions, values = _conditions(query)
    time, shown = ("m.created_ns", "m.created_ns") if query.order == "created" else (_UPDATED_NS, "updated_ns")
    start = position_of(query)
    if start is not None:
        conditions.append(f"({time} < ? OR ({time} = ? AND t.id > ?))")
        values += [start.time_ns, start.time_ns, start.thread_id]
    where = "WHERE " + " AND ".join(conditions) if conditions else ""
    # The keys are chosen first, over short rows; only the rows of the page are read in full.
    chosen = f"SELECT t.key FROM thread t {_joins(where + time)} {where} ORDER BY {time} DESC, t.id LIMIT ?"
    rows = connection.execute(
        f"{STATE_SELECT} WHERE t.key IN ({chosen}) ORDER BY {shown} DESC, t.id", (*values, query.limit + 1)
    )
    return cut([state_of(row).public() for row in rows], query)


def _joins(terms: str) -> str:
    """Only what the terms speak of: each table more is felt where there are many threads."""
    meta = " JOIN thread_meta m ON m.key = t.key" if "m." in terms else ""
    tips = f" LEFT JOIN ({TIPS}) tip ON tip.owner = t.key AND tip.key > t.newest" if "tip." in terms else ""
    return meta + tips


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
        (f"{_UPDATED_NS} >= ?", query.updated_after_ns),
        (f"{_UPDATED_NS} < ?", query.updated_before_ns),
    )
    for condition, value in ranges:
        if value is not None:
            conditions.append(condition)
            values.append(value)
