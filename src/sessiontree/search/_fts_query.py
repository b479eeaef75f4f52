"""The tables of the full-text index, and queries as SQL.

Every entry that can be found has a row in ``doc``; the words of ``SHARD`` consecutive rows are one FTS5 table. FTS5
cannot remove words without rewriting a table, so a delete drops the shards it affects, and the next search fills them
again from the store. A query reads one shard after the other, newest first, until it has enough matches.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

import msgspec

from sessiontree.model._base import Record
from sessiontree.search.query import SearchOrder, SearchQuery, Term

__all__ = ["RANKED", "SHARD", "Match", "Scope", "create_shard", "find", "open_index", "shard_of", "table_of"]


SHARD = 1 << 14
_VERSION = 4
BUSY_SECONDS = 60.0

# A source is indexed up to the entry ``number``, which was created at ``anchor_ns``.
_TABLES = """
CREATE TABLE source (
    key INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    identity TEXT NOT NULL,
    version TEXT NOT NULL,
    number INTEGER NOT NULL,
    anchor_ns INTEGER NOT NULL
);
CREATE TABLE doc (
    seq INTEGER PRIMARY KEY,
    source INTEGER NOT NULL,
    number INTEGER NOT NULL,
    tree INTEGER NOT NULL,
    owner INTEGER NOT NULL,
    created_ns INTEGER NOT NULL,
    role TEXT NOT NULL,
    tools TEXT NOT NULL,
    model TEXT NOT NULL,
    files TEXT NOT NULL
);
CREATE UNIQUE INDEX doc_number ON doc (source, number);
CREATE TABLE label (
    source INTEGER NOT NULL,
    number INTEGER NOT NULL,
    tree INTEGER NOT NULL,
    target TEXT NOT NULL,
    name TEXT NOT NULL,
    PRIMARY KEY (source, number)
) WITHOUT ROWID;
CREATE TABLE stale (shard INTEGER PRIMARY KEY)
"""


def shard_of(seq: int) -> int:
    """Return the shard of a row."""
    return seq // SHARD


def table_of(shard: int) -> str:
    """Return the name of a shard's table."""
    return f"words_{shard}"


def open_index(path: Path, busy_seconds: float = BUSY_SECONDS) -> sqlite3.Connection:
    """Open the index file, or an index in memory if the file cannot be written.

    Raises sqlite3.DatabaseError for a file of another version, which the caller replaces.
    """
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        database: str | Path = path
    except OSError:
        database = ":memory:"
    connection = sqlite3.connect(
        database, timeout=busy_seconds, isolation_level=None, check_same_thread=False, cached_statements=1024
    )
    try:
        connection.create_function("any_glob", 2, _any_glob, deterministic=True)
        _set_up(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _set_up(connection: sqlite3.Connection) -> None:
    for setting in ("journal_mode = WAL", "synchronous = NORMAL", "secure_delete = 1", "cache_size = -65536"):
        connection.execute(f"PRAGMA {setting}").fetchone()
    if connection.execute("PRAGMA user_version").fetchone()[0] == _VERSION:
        return
    connection.execute("BEGIN IMMEDIATE")
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version not in (0, _VERSION):
        connection.execute("ROLLBACK")
        raise sqlite3.DatabaseError(f"the index has version {version}, not {_VERSION}")
    if version == 0:
        for statement in _TABLES.split(";"):
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {_VERSION}")
    connection.execute("COMMIT")


def create_shard(connection: sqlite3.Connection, shard: int) -> None:
    """Create the table of a shard. Its input is tokens already, so FTS5 only splits at spaces; the text is not kept."""
    table = table_of(shard)
    connection.execute(
        f"CREATE VIRTUAL TABLE IF NOT EXISTS {table} USING fts5(body, whole, content='', tokenize='ascii')"
    )


def shards_in(connection: sqlite3.Connection) -> list[int]:
    """Return the shards that can be searched, newest first."""
    last = connection.execute("SELECT max(seq) FROM doc").fetchone()[0]
    if last is None:
        return []
    stale = {shard for (shard,) in connection.execute("SELECT shard FROM stale")}
    return [shard for shard in range(shard_of(last), -1, -1) if shard not in stale]


RANKED = 2_000
"""How many matches are ranked, newest first: ranking half a million would take seconds."""


class Match(NamedTuple):
    """A row that matches, and the entry it stands for: its source and number there."""

    seq: int
    score: float
    source: str
    number: int


class Scope(Record, frozen=True, kw_only=True):
    """A part of a source: the entries that were appended to ``owner``, and those with these numbers."""

    source: str
    owner: int | None = None
    numbers: tuple[int, ...] = ()


def find(
    connection: sqlite3.Connection,
    query: SearchQuery,
    scopes: Sequence[Sequence[Scope]],
    *,
    order: SearchOrder,
    upto: int | None,
    most: int,
) -> list[Match]:
    """Return at most ``most`` matches in the given order; each item of ``scopes`` is a list of alternatives."""
    limit = most if order == "newest" else max(RANKED, most)
    rows: list[tuple[int, float]] = []
    for shard in shards_in(connection):
        statement, values = _statement(query, scopes, shard, upto)
        rows += connection.execute(f"{statement} LIMIT ?", (*values, limit - len(rows)))
        if len(rows) >= limit:
            break
    if order == "best":
        # The rows are newest first and sorting is stable, so rows with equal scores stay newest first.
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
    """Return the words of a query in the syntax of FTS5.

    >>> from datetime import UTC, datetime
    >>> from sessiontree.search.query import parse_query
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


def _located(connection: sqlite3.Connection, rows: Sequence[tuple[int, float]]) -> Iterator[Match]:
    for seq, score in rows:
        found = connection.execute(
            "SELECT s.name, d.number FROM doc d JOIN source s ON s.key = d.source WHERE d.seq = ?", (seq,)
        ).fetchone()
        if found is not None:
            yield Match(seq, -score, *found)


def _any_glob(lines: str, pattern: str) -> bool:
    return any(fnmatchcase(line, pattern) for line in lines.split("\n") if line)
