"""``list_threads`` as SQL; ``sessiontree.stores.listing`` defines what it means.

Filters are about ``thread``, the time of the last update is in ``head``. A join of both would be planned by guesses: the
server knows nothing about the distribution of trees. So one table drives, and the other is a subquery for each row:

- By creation, ``thread`` drives: order and filters are in the same table.
- By update, if few threads match, ``thread`` drives, and all of them are sorted.
- By update, if many do, ``head`` drives in its order until the page is full, in a window of the newest threads. A larger
  window follows if the first one promises enough. Otherwise those that match are older, and all of them are sorted.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from msgspec.structs import replace

from sessiontree.model import Page, Thread, ThreadQuery
from sessiontree.model.codec import decode_thread
from sessiontree.stores.listing import WORD_COLUMNS, Position, cut, position_of, rows_wanted
from sessiontree.stores.postgres.schema import TITLE_PARTS
from sessiontree.stores.postgres.steps import Row, Statement, Steps, to_bytes, to_text

__all__ = ["list_threads"]


_FEW = 1_000
_WINDOWS = (1_000, 10_000)

_CREATED = {"created_after_ns": "t.created_ns >=", "created_before_ns": "t.created_ns <"}
_UPDATED = {
    "updated_after_ns": (
        "h.updated_ns >= %(updated_after_ns)s",
        "updated_minute >= %(updated_after_ns)s / 60000000000",
    ),
    "updated_before_ns": (
        "h.updated_ns < %(updated_before_ns)s",
        "updated_minute <= %(updated_before_ns)s / 60000000000",
    ),
}
"""Conditions on the last update: the exact ones, and those for the index, which is by minute."""
# The condition that the index of titles serves. It may match too much, so the bytes are compared too.
_HAS_TITLE_PARTS = f"{TITLE_PARTS} @> sessiontree.title_parts(%(title)s)"
_SHORTEST_INDEXED = 3

_COUNT = "SELECT count(*) FROM (SELECT 1 FROM sessiontree.thread t WHERE {thread} LIMIT %(few)s + 1) found"
_OF_HEAD = "sessiontree.head h WHERE h.tree = t.tree AND h.id = t.id AND h.namespace = t.namespace"
_OF_THREAD = "sessiontree.thread t WHERE t.tree = h.tree AND t.id = h.id AND t.namespace = h.namespace"
_COUNTERS = "ARRAY[h.depth, h.messages, h.tokens, h.updated_ns]"
_BY_THREAD = f"""
SELECT t.tree, t.body, (SELECT h.leaf FROM {_OF_HEAD}), (SELECT {_COUNTERS} FROM {_OF_HEAD})
FROM sessiontree.thread t WHERE {{conditions}} ORDER BY {{order}} DESC, t.id LIMIT %(limit)s"""
_UPDATED_NS = f"(SELECT h.updated_ns FROM {_OF_HEAD})"
_BY_HEAD = f"""
SELECT h.tree, (SELECT t.body FROM {_OF_THREAD}), h.leaf, {_COUNTERS}
FROM sessiontree.head h WHERE {{conditions}}
ORDER BY h.updated_minute DESC, h.updated_ns DESC, h.id LIMIT %(limit)s"""
_IN_WINDOW = """h.updated_minute >= coalesce((SELECT w.updated_minute FROM sessiontree.head w WHERE {conditions}
    ORDER BY w.updated_minute DESC OFFSET %(window)s LIMIT 1), -9223372036854775808)"""


def list_threads(namespace: str, query: ThreadQuery) -> Steps[tuple[Page, dict[str, UUID]]]:
    """A page of threads, and the tree of each."""
    rows = yield from _rows(_Conditions(namespace, query), query)
    threads = [_thread_of(row) for row in rows]
    return cut(threads, query), {thread.id: row[0] for thread, row in zip(threads, rows, strict=True)}


def _rows(conditions: _Conditions, query: ThreadQuery) -> Steps[list[Row]]:
    if query.order == "created":
        return (yield conditions.by_thread("t.created_ns"))
    if conditions.is_counted:
        ((count,),) = yield conditions.count()
        if count <= _FEW:
            return (yield conditions.by_thread(_UPDATED_NS))
    if not conditions.is_windowed:
        return (yield conditions.by_head())
    wanted = rows_wanted(query)
    if wanted is not None:
        for window in _WINDOWS:
            rows = yield conditions.by_head(window)
            if len(rows) == wanted:
                return rows
            if len(rows) * _WINDOWS[-1] < wanted * window:
                break
    return (yield conditions.by_thread(_UPDATED_NS))


class _Conditions:
    """The conditions of a query on both tables, and their values."""

    def __init__(self, namespace: str, query: ThreadQuery) -> None:
        selective = _selective(query)
        title = None if query.title_contains is None else _folded(query.title_contains)
        self._indexed = [] if title is None or len(title) < _SHORTEST_INDEXED else [_HAS_TITLE_PARTS]
        # Without the index, counting titles takes as long as reading all that match.
        self.is_counted = bool(selective) and (title is None or bool(self._indexed))
        """Whether few threads may match, and counting them is cheap."""
        archived = [] if query.is_archived is None else ["t.is_archived = %(is_archived)s"]
        self._thread = [*archived, *selective]
        times = [term for name, term in _UPDATED.items() if getattr(query, name) is not None]
        self._head = [exact for exact, _ in times]
        self._minutes = [by_minute for _, by_minute in times]
        if query.is_empty is not None:
            self._head.append("h.is_empty" if query.is_empty else "h.messages > 0")
        self._start = position_of(query)
        if self._start is not None:
            self._minutes.append("updated_minute <= %(time)s / 60000000000")
        self._values = _values(namespace, query, self._start)
        self.is_windowed = bool(self._thread) and not (times or query.is_empty)
        """Whether ``by_head`` stops after a window: not if ``head`` alone leaves few threads, nor if it has all conditions."""

    def count(self) -> Statement:
        """Count the threads that match, up to a few."""
        return self._statement(_COUNT.format(thread=_all("t", self._thread + self._indexed)))

    def by_thread(self, time: str) -> Statement:
        """Read from ``thread``, sorted by ``time``."""
        conditions = self._thread + self._indexed
        if self._head:
            conditions.append(f"(SELECT {' AND '.join(self._head)} FROM {_OF_HEAD})")
        if self._start is not None:
            conditions.append(_after(time, "t"))
        return self._statement(_BY_THREAD.format(conditions=_all("t", conditions), order=time))

    def by_head(self, window: int | None = None) -> Statement:
        """Read from ``head``, newest first, or only from a window of that many threads."""
        conditions = [*(f"h.{minute}" for minute in self._minutes), *self._head]
        if self._start is not None:
            conditions.append(_after("h.updated_ns", "h"))
        if self._thread:
            conditions.append(f"(SELECT {' AND '.join(self._thread)} FROM {_OF_THREAD})")
        if window is not None:
            conditions.append(_IN_WINDOW.format(conditions=_all("w", [f"w.{minute}" for minute in self._minutes])))
        return self._statement(_BY_HEAD.format(conditions=_all("h", conditions)), window)

    def _statement(self, sql: str, window: int | None = None) -> Statement:
        return Statement(sql, self._values | {"window": window}, is_planned_each_time=True)


def _all(table: str, conditions: list[str]) -> str:
    return " AND ".join([f"{table}.namespace = %(namespace)s", *conditions])


def _after(time: str, table: str) -> str:
    return f"{time} <= %(time)s AND ({time} < %(time)s OR {table}.id > %(start)s)"


def _selective(query: ThreadQuery) -> list[str]:
    """Conditions on ``thread`` that may leave few threads of many."""
    conditions = [
        f"t.{column} = %({name})s" for name, column in WORD_COLUMNS.items() if getattr(query, name) is not None
    ]
    conditions += [f"{term} %({name})s" for name, term in _CREATED.items() if getattr(query, name) is not None]
    if query.title_contains is not None:
        conditions.append("position(%(title)s IN t.title_folded) > 0")
    if query.tags:
        conditions.append("t.tags @> %(tags)s")
    return conditions


def _values(namespace: str, query: ThreadQuery, start: Position | None) -> dict[str, Any]:
    values: dict[str, Any] = {name: getattr(query, name) for name in (*_CREATED, *_UPDATED, "is_archived")}
    values |= {"namespace": namespace, "limit": rows_wanted(query), "few": _FEW}
    for name in WORD_COLUMNS:
        word = getattr(query, name)
        values[name] = None if word is None else to_bytes(word)
    values["title"] = _folded(query.title_contains or "")
    values["tags"] = [to_bytes(tag) for tag in query.tags]
    if start is not None:
        values |= {"time": start.time_ns, "start": to_bytes(start.thread_id)}
    return values


def _thread_of(row: Row) -> Thread:
    _, body, leaf, (entries, messages, tokens, updated_ns) = row
    return replace(
        decode_thread(body),
        leaf=None if leaf is None else to_text(leaf),
        entries=entries,
        messages=messages,
        tokens=tokens,
        updated_ns=updated_ns,
    )


def _folded(title: str) -> bytes:
    return to_bytes(title.casefold())
