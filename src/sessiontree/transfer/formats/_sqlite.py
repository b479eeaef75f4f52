"""Read another program's SQLite database without changing it or its folder."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sessiontree.transfer.formats import _go
from sessiontree.transfer.formats._files import head_of

__all__ = ["columns", "is_database", "opened", "rows", "sessions_without_row", "text_of"]


_LOG_ENDINGS = ("-wal", "-journal")
_COPIES = 5


@contextmanager
def opened(source: Path) -> Iterator[sqlite3.Connection]:
    """A connection that creates no file next to the source and takes no lock on it.

    If there is a log or a rollback journal, the database file alone is not complete; then a copy is opened.
    """
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "copy.db"
        if _logs(source):
            _copy(source, copy)
            address = f"file:{quote(str(copy))}"
        else:
            address = f"file:{quote(str(source.absolute()))}?immutable=1"
        with closing(sqlite3.connect(address, uri=True)) as connection:
            connection.text_factory = bytes
            yield connection


def is_database(source: Path) -> bool:
    """Whether the file begins as an SQLite database."""
    return head_of(source, 16) == b"SQLite format 3\x00"


def columns(source: Path, *tables: str) -> list[set[str]]:
    """The names of the columns of each table; empty sets for what is not there or cannot be read."""
    try:
        with opened(source) as connection:
            return [_columns(connection, table) for table in tables]
    except (sqlite3.Error, OSError, UnicodeError):
        return [set() for _ in tables]


def _columns(connection: sqlite3.Connection, table: str) -> set[str]:
    return {text_of(row[1]) for row in connection.execute(f"PRAGMA table_info({table})")}


def rows(connection: sqlite3.Connection, query: str, *values: Any) -> Iterator[dict[str, Any]]:
    """The rows of a query by column name, with texts decoded."""
    cursor = connection.execute(query, values)
    names = [name for name, *_ in cursor.description]
    for row in cursor:
        yield {name: text_of(value) for name, value in zip(names, row, strict=True)}


def text_of(value: Any) -> Any:
    """The value; bytes as a text."""
    return _go.decode_text(value) if isinstance(value, bytes) else value


def _logs(source: Path) -> list[Path]:
    """The log and the rollback journal that SQLite needs to read the database as of its last commit."""
    beside = (source.with_name(source.name + ending) for ending in _LOG_ENDINGS)
    return [path for path in beside if path.is_file() and path.stat().st_size]


def _copy(source: Path, copy: Path) -> None:
    """Copy the database with its logs; again if they were written meanwhile, so that they fit together."""
    for _ in range(_COPIES):
        before = _stamps(source)
        for ending in ("", *_LOG_ENDINGS):
            target = copy.with_name(copy.name + ending)
            target.unlink(missing_ok=True)
            part = source.with_name(source.name + ending)
            if part.is_file():
                shutil.copyfile(part, target)
        if _stamps(source) == before:
            return


def _stamps(source: Path) -> list[tuple[int, int]]:
    return [(path.stat().st_size, path.stat().st_mtime_ns) for path in (source, *_logs(source))]


def sessions_without_row(connection: sqlite3.Connection, known: list[dict[str, Any]]) -> list[str]:
    """The ids of the sessions that only rows of the table ``messages`` tell about."""
    names = {row.get("id") for row in known}
    listed = rows(connection, "SELECT DISTINCT session_id AS id FROM messages ORDER BY session_id")
    return [str(row["id"]) for row in listed if row["id"] not in names]
