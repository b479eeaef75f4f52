"""What SQLite says, and what a damaged file makes of our own code, in our words."""

from __future__ import annotations

import errno
import sqlite3

from sessiontree.errors import (
    DamagedDataError,
    SessionTreeError,
    StoreFullError,
    StoreReadOnlyError,
    StoreUnavailableError,
)

__all__ = ["is_of_the_disk", "misshapen_table", "translate_error"]


def translate_error(place: str, error: sqlite3.Error | OSError | UnicodeDecodeError) -> SessionTreeError:
    name = getattr(error, "sqlite_errorname", "") or ""
    if isinstance(error, PermissionError) or getattr(error, "errno", 0) == errno.EROFS:
        return StoreReadOnlyError(place)
    if name == "SQLITE_FULL":
        return StoreFullError(place)
    if name.startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM")):
        return StoreReadOnlyError(place)
    if _is_damage(name, error):
        return DamagedDataError(place, 0, str(error))
    return StoreUnavailableError(place, f"{name or type(error).__name__}: {error}")


def is_of_the_disk(error: Exception) -> bool:
    """A write or flush failed, so nobody knows what of it is on the disk."""
    return (getattr(error, "sqlite_errorname", "") or "").startswith("SQLITE_IOERR")


def misshapen_table(connection: sqlite3.Connection) -> str:
    """A table that holds what was never written to it, or nothing. Pages that changed places pass SQLite's own checks."""
    tables = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'")
    for (table,) in tables.fetchall():
        quoted = '"' + table.replace('"', '""') + '"'
        columns = connection.execute(f"PRAGMA table_info({quoted})").fetchall()
        odd = " OR ".join(_odd(name, kind, is_needed or is_key) for _, name, kind, is_needed, _, is_key in columns)
        if connection.execute(f"SELECT 1 FROM {quoted} WHERE {odd}").fetchone():
            return str(table)
    if connection.execute(
        "SELECT 1 FROM checkpoint WHERE length(manifest) <> 64 OR manifest GLOB '*[^0-9a-f]*'"
    ).fetchone():
        return "checkpoint"
    return "" if connection.execute("SELECT count(*) FROM floor").fetchone()[0] == 1 else "floor"


def _odd(column: str, kind: str, is_needed: bool | int) -> str:
    allowed = f"'{kind.lower()}'" if is_needed else f"'{kind.lower()}', 'null'"
    return f"typeof({column}) NOT IN ({allowed})"


def _is_damage(name: str, error: Exception) -> bool:
    """Bytes that are no text, and keys that are there twice, come from nowhere else: the tables are ours alone."""
    if isinstance(error, UnicodeDecodeError) or name.startswith(
        ("SQLITE_CORRUPT", "SQLITE_NOTADB", "SQLITE_CONSTRAINT")
    ):
        return True
    text = str(error)
    return isinstance(error, sqlite3.OperationalError) and text.startswith(("Could not decode", "no such "))
