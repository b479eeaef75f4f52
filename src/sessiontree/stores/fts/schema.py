"""The file of the index: a row for each entry that can be found, and its words in shards.

The words of ``SHARD`` consecutive rows are one FTS5 table. To take words away for good, FTS5 has to write a table
anew; so a delete drops the shards it touches, and the next search fills them again from the store.
"""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

__all__ = ["SHARD", "open_index", "shard_of", "table_of"]

SHARD = 1 << 14
_VERSION = 2
_BUSY_SECONDS = 60.0

# A source was indexed up to the entry ``number``, which was made at ``anchor_ns``.
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
    return seq // SHARD


def table_of(shard: int) -> str:
    return f"words_{shard}"


def open_index(path: Path) -> sqlite3.Connection:
    """The file, made anew when it is of another version. Where it cannot be written the index lives in memory."""
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        database: str | Path = path
    except OSError:
        database = ":memory:"
    connection = sqlite3.connect(
        database, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False, cached_statements=1024
    )
    try:
        _prepare(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _prepare(connection: sqlite3.Connection) -> None:
    for setting in ("journal_mode = WAL", "synchronous = NORMAL", "secure_delete = 1", "cache_size = -65536"):
        connection.execute(f"PRAGMA {setting}").fetchone()
    if connection.execute("PRAGMA user_version").fetchone()[0] == _VERSION:
        return
    connection.execute("BEGIN IMMEDIATE")
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version not in (0, _VERSION):
        connection.execute("ROLLBACK")
        raise sqlite3.DatabaseError(f"the index is of version {version}")
    if version == 0:
        for statement in _TABLES.split(";"):
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {_VERSION}")
    connection.execute("COMMIT")


def create_shard(connection: sqlite3.Connection, shard: int) -> None:
    """Words come as tokens between blanks, so the plainest tokenizer is the right one; the text is not kept."""
    table = table_of(shard)
    connection.execute(
        f"CREATE VIRTUAL TABLE IF NOT EXISTS {table} USING fts5(body, whole, content='', tokenize='ascii')"
    )


def shards_in(connection: sqlite3.Connection) -> list[int]:
    """Shards that can be asked, newest first."""
    last = connection.execute("SELECT max(seq) FROM doc").fetchone()[0]
    if last is None:
        return []
    stale = {shard for (shard,) in connection.execute("SELECT shard FROM stale")}
    return [shard for shard in range(shard_of(last), -1, -1) if shard not in stale]
