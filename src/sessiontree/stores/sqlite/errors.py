"""Translate errors of SQLite, and those that a damaged file causes in our code, to errors of this package."""

from __future__ import annotations

import sqlite3

from sessiontree.errors import (
    DamagedDataError,
    SessionTreeError,
    StoreFullError,
    StoreReadOnlyError,
    StoreUnavailableError,
)
from sessiontree.stores import _os_errors
from sessiontree.stores._io import SyncFailedError

__all__ = ["is_disk_error", "misshapen_table", "translate_error"]


def translate_error(place: str, error: sqlite3.Error | OSError | UnicodeDecodeError) -> SessionTreeError:
    """Return the error of this package that says what an error of SQLite or of the file system means."""
    if isinstance(error, OSError):
        return _os_errors.translate_error(place, error)
    name = getattr(error, "sqlite_errorname", "") or ""
    if name == "SQLITE_FULL":
        return StoreFullError(place)
    if name.startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM")):
        return StoreReadOnlyError(place)
    if _is_damage(name, error):
        return DamagedDataError(place, 0, str(error))
    return StoreUnavailableError(place, f"{name or type(error).__name__}: {error}")


def is_disk_error(error: Exception) -> bool:
    """Return whether a write or flush failed, so that it is unknown what reached the disk."""
    name = getattr(error, "sqlite_errorname", "") or ""
    return isinstance(error, SyncFailedError) or name.startswith("SQLITE_IOERR")


def misshapen_table(connection: sqlite3.Connection) -> str:
    """Return a table with values of the wrong type, or "".

    Finds pages that were swapped, which SQLite's own checks do not notice.
    """
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
    return "" if connection.execute("SELECT count(*) FROM store_meta").fetchone()[0] == 1 else "store_meta"


def _odd(column: str, kind: str, is_needed: bool | int) -> str:
    allowed = f"'{kind.lower()}'" if is_needed else f"'{kind.lower()}', 'null'"
    return f"typeof({column}) NOT IN ({allowed})"


def _is_damage(name: str, error: Exception) -> bool:
    """Invalid text and repeated keys can only come from damage: no other program writes these tables."""
    if isinstance(error, UnicodeDecodeError) or name.startswith(
        ("SQLITE_CORRUPT", "SQLITE_NOTADB", "SQLITE_CONSTRAINT")
    ):
        return True
    text = str(error)
    return isinstance(error, sqlite3.OperationalError) and text.startswith(("Could not decode", "no such "))
