"""``list_threads`` as SQL; ``sessiontree.stores.listing`` defines what it means."""

from __future__ import annotations

from typing import Any

from sessiontree.model import Page, ThreadQuery
from sessiontree.stores.listing import WORD_COLUMNS, cut, position_of, rows_wanted
from sessiontree.stores.postgres.rows import HEAD_FROM, STATE_COLUMNS, ThreadHead, head_of
from sessiontree.stores.postgres.schema import TITLE_INDEX
from sessiontree.stores.postgres.steps import Statement, Steps, to_bytes

__all__ = ["list_threads"]


_TIMES = {
    "created_after_ns": "t.created_ns >=",
    "created_before_ns": "t.created_ns <",
    "updated_after_ns": "h.updated_ns >=",
    "updated_before_ns": "h.updated_ns <",
}
# The condition that the title index serves. It may match too much, so the bytes are compared too.
_LIKE_TITLE = "encode(t.title_folded, 'escape') LIKE %(title_pattern)s"
_IS_INDEXED = (
    "SELECT EXISTS (SELECT 1 FROM pg_catalog.pg_indexes WHERE schemaname = 'sessiontree' AND indexname = %(name)s)"
)
_BYTE_AS_TEXT = [chr(byte) if 0 < byte < 128 else f"\\{byte:03o}" for byte in range(256)]
_BYTE_AS_TEXT[ord("\\")] = "\\\\"


def list_threads(namespace: str, query: ThreadQuery) -> Steps[tuple[Page, list[ThreadHead]]]:
    """A page of threads, and their rows."""
    table, time, order = _order(query)
    conditions = [f"{table}.namespace = %(namespace)s", *_conditions(query)]
    values = {"namespace": namespace, "limit": rows_wanted(query), **_values(query)}
    if query.title_contains is not None:
        ((is_indexed,),) = yield Statement(_IS_INDEXED, {"name": TITLE_INDEX})
        conditions += [_LIKE_TITLE] if is_indexed else []
    start = position_of(query)
    if start is not None:
        conditions.append(f"{time} <= %(time)s AND ({time} < %(time)s OR {table}.id > %(start)s)")
        values |= {"time": start.time_ns, "start": to_bytes(start.thread_id)}
        if query.order != "created":
            conditions.append("h.updated_minute <= %(time)s / 60000000000")
    sql = f"SELECT {STATE_COLUMNS} FROM {HEAD_FROM} WHERE {' AND '.join(conditions)}"
    rows = yield Statement(f"{sql} ORDER BY {order} DESC, {table}.id LIMIT %(limit)s", values)
    heads = [head_of(row) for row in rows]
    return cut([head.state.public() for head in heads], query), heads


def _order(query: ThreadQuery) -> tuple[str, str, str]:
    """Table, time and order of a list; the index on the last update is by minute."""
    if query.order == "created":
        return "t", "t.created_ns", "t.created_ns"
    return "h", "h.updated_ns", "h.updated_minute DESC, h.updated_ns"


def _conditions(query: ThreadQuery) -> list[str]:
    conditions = [
        f"t.{column} = %({name})s" for name, column in WORD_COLUMNS.items() if getattr(query, name) is not None
    ]
    conditions += [f"{term} %({name})s" for name, term in _TIMES.items() if getattr(query, name) is not None]
    if query.is_archived is not None:
        conditions.append("t.is_archived = %(is_archived)s")
    if query.is_empty is not None:
        conditions.append("h.messages = 0" if query.is_empty else "h.messages > 0")
    if query.title_contains is not None:
        conditions.append("position(%(title)s IN t.title_folded) > 0")
    if query.tags:
        conditions.append("t.tags @> %(tags)s")
    return conditions


def _values(query: ThreadQuery) -> dict[str, Any]:
    values: dict[str, Any] = {name: getattr(query, name) for name in (*_TIMES, "is_archived")}
    for name in WORD_COLUMNS:
        word = getattr(query, name)
        values[name] = None if word is None else to_bytes(word)
    values["title"] = to_bytes((query.title_contains or "").casefold())
    values["title_pattern"] = f"%{_escaped(values['title'])}%"
    values["tags"] = [to_bytes(tag) for tag in query.tags]
    return values


def _escaped(title: bytes) -> str:
    r"""Bytes as PostgreSQL's ``encode(…, 'escape')`` writes them, with the special characters of LIKE escaped.

    >>> _escaped(b"50% a\\b \xc3\xa9")
    '50\\% a\\\\\\\\b \\\\303\\\\251'
    """
    written = "".join(_BYTE_AS_TEXT[byte] for byte in title)
    return written.replace("\\", "\\\\").replace("%", r"\%").replace("_", r"\_")
