"""Queries as SQL: one question to each shard, newest first, until there is enough."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from operator import itemgetter
from typing import NamedTuple

import msgspec

from sessiontree.model.record import Record
from sessiontree.search.query import SearchQuery, Term
from sessiontree.search.results import SearchOrder
from sessiontree.stores.fts.schema import SHARD, shards_in, table_of

__all__ = ["RANKED", "Found", "Scope", "find", "prepare"]

RANKED = 2_000
"""How many matches are ranked, the newest ones: ranking half a million would take seconds and help nobody."""


class Found(NamedTuple):
    seq: int
    score: float
    source: str
    number: int


class Scope(Record, frozen=True, kw_only=True):
    """A part of a source: what was appended through ``owner``, and the entries of these numbers."""

    source: str
    owner: int | None = None
    numbers: tuple[int, ...] = ()


def prepare(connection: sqlite3.Connection) -> None:
    connection.create_function("any_glob", 2, _any_glob, deterministic=True)


def find(
    connection: sqlite3.Connection,
    query: SearchQuery,
    scopes: Sequence[Sequence[Scope]],
    *,
    order: SearchOrder,
    upto: int | None,
    most: int,
) -> list[Found]:
    limit = most if order == "newest" else max(RANKED, most)
    rows: list[tuple[int, float]] = []
    for shard in shards_in(connection):
        statement, values = _statement(query, scopes, shard, upto)
        rows += connection.execute(f"{statement} LIMIT ?", (*values, limit - len(rows)))
        if len(rows) >= limit:
            break
    if order == "best":
        # The rows come newest first and sorting is stable, so equals stay that way.
        rows.sort(key=itemgetter(1))
    return [*_located(connection, rows[:most])]


def _statement(
    query: SearchQuery, scopes: Sequence[Sequence[Scope]], shard: int, upto: int | None
) -> tuple[str, list[object]]:
    table = table_of(shard)
    conditions, values = _conditions(query, scopes)
    if query.wanted:
        columns, tables, key = f"w.rowid, bm25({table})", f"{table} w", "w.rowid"
        conditions.insert(0, f"{table} MATCH ?")
        values.insert(0, match_text(query))
        if len(conditions) > 1:
            tables += " CROSS JOIN doc d ON d.seq = w.rowid"
    else:
        columns, tables, key = "d.seq, 0.0", "doc d", "d.seq"
        conditions += ["d.seq >= ?", "d.seq < ?"]
        values += [shard * SHARD, (shard + 1) * SHARD]
        if query.excluded:
            conditions.append(f"d.seq NOT IN (SELECT rowid FROM {table} WHERE {table} MATCH ?)")
            values.append(" OR ".join(map(_term_text, query.excluded)))
    if upto is not None:
        conditions.append(f"{key} <= ?")
        values.append(upto)
    where = " AND ".join(conditions)
    return f"SELECT {columns} FROM {tables} WHERE {where} ORDER BY {key} DESC", values


def match_text(query: SearchQuery) -> str:
    """The words of a query in the language of FTS5.

    >>> from datetime import UTC, datetime
    >>> from sessiontree.search.parsing import parse_query
    >>> match_text(parse_query('readFile retr* -old', now=datetime.now(UTC)))
    '(("read file" OR "readfile") AND ("retr"*)) NOT (("old"))'
    """
    wanted = " AND ".join(map(_term_text, query.wanted))
    excluded = " OR ".join(map(_term_text, query.excluded))
    return f"({wanted}) NOT ({excluded})" if excluded else wanted


def _term_text(term: Term) -> str:
    star = "*" if term.is_prefix else ""
    phrases = (" ".join(tokens).replace('"', '""') for tokens in term.alternatives)
    return "(" + " OR ".join(f'"{phrase}"{star}' for phrase in phrases) + ")"


def _conditions(query: SearchQuery, scopes: Sequence[Sequence[Scope]]) -> tuple[list[str], list[object]]:
    conditions: list[str] = []
    values: list[object] = []
    for template, wanted in (
        ("d.role = ?", query.roles),
        ("any_glob(d.tools, ?)", query.tools),
        ("instr(d.model, ?) > 0", query.models),
        ("instr(d.files, ?) > 0", query.files),
    ):
        if wanted:
            conditions.append("(" + " OR ".join([template] * len(wanted)) + ")")
            values += wanted
    for condition, moment in (("d.created_ns < ?", query.before_ns), ("d.created_ns >= ?", query.after_ns)):
        if moment is not None:
            conditions.append(condition)
            values.append(moment)
    for alternatives in scopes:
        condition, bound = _within(alternatives)
        conditions.append(condition)
        values += bound
    return conditions, values


def _within(scopes: Sequence[Scope]) -> tuple[str, list[object]]:
    alternatives: list[str] = ["0"]
    values: list[object] = []
    for scope in scopes:
        alternatives.append(
            "(d.source = (SELECT key FROM source WHERE name = ?)"
            " AND (d.owner = ? OR d.number IN (SELECT value FROM json_each(?))))"
        )
        values += [
            scope.source,
            -1 if scope.owner is None else scope.owner,
            msgspec.json.encode(scope.numbers).decode(),
        ]
    return "(" + " OR ".join(alternatives) + ")", values


def _located(connection: sqlite3.Connection, rows: Sequence[tuple[int, float]]) -> Iterator[Found]:
    for seq, score in rows:
        found = connection.execute(
            "SELECT s.name, d.number FROM doc d JOIN source s ON s.key = d.source WHERE d.seq = ?", (seq,)
        ).fetchone()
        if found is not None:
            yield Found(seq, -score, *found)


def _any_glob(lines: str, pattern: str) -> bool:
    return any(fnmatchcase(line, pattern) for line in lines.split("\n") if line)
