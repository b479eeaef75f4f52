"""The listing cache: what each tree file holds, so that a list reads only the files that changed.

It can be thrown away at any time: it is made anew when it is missing, broken or of another version.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from sessiontree.model import Thread
from sessiontree.model.record import Record
from sessiontree.stores.jsonl.tree import Tree
from sessiontree.typed import json_decoder

__all__ = ["Index", "Stamp", "Summary"]

_VERSION = 1


class Stamp(Record, frozen=True, kw_only=True):
    """How a file was when it was read."""

    inode: int
    size: int
    mtime_ns: int

    @classmethod
    def of(cls, found: os.stat_result) -> Stamp:
        return cls(inode=found.st_ino, size=found.st_size, mtime_ns=found.st_mtime_ns)


class Summary(Record, frozen=True, kw_only=True):
    """What lists and statistics need of a tree."""

    stamp: Stamp
    tree_id: str | None = None
    threads: tuple[Thread, ...] = ()
    entries: int = 0
    moves: int = 0
    leases: int = 0

    @classmethod
    def of(cls, tree: Tree, stamp: Stamp) -> Summary:
        state = tree.state
        return cls(
            stamp=stamp,
            tree_id=tree.tree_id,
            threads=tuple(thread.public() for thread in state.states.values()),
            entries=len(state.nodes),
            moves=sum(map(len, state.reflogs.values())),
            leases=len(state.leases),
        )


_summaries = json_decoder(Summary)


class Index:
    """Rows of an SQLite file. Its failures cost time, never an answer."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._database: sqlite3.Connection | None = None
        self._inode = 0

    def load(self) -> dict[str, Summary]:
        try:
            rows = self._open().execute("SELECT name, summary FROM tree").fetchall()
            return {name: _summaries.decode(summary) for name, summary in rows}
        except (sqlite3.Error, msgspec.DecodeError, TypeError, OSError):
            self._throw_away()
            return {}

    def save(self, changed: Mapping[str, Summary], gone: Iterable[str]) -> None:
        rows = [(name, msgspec.json.encode(summary)) for name, summary in changed.items()]
        try:
            with self._open() as database:
                database.executemany("DELETE FROM tree WHERE name = ?", [(name,) for name in gone])
                database.executemany("INSERT OR REPLACE INTO tree VALUES (?, ?)", rows)
        except (sqlite3.Error, OSError):
            self._throw_away()

    def forget(self, name: str) -> None:
        """A delete must leave nothing behind here either."""
        if self._path.exists():
            self.save({}, [name])

    def close(self) -> None:
        if self._database is not None:
            self._database.close()
            self._database = None

    def _open(self) -> sqlite3.Connection:
        if self._database is None or not self._is_current():
            self.close()
            self._database = _opened(self._path)
            self._inode = self._path.stat().st_ino
        return self._database

    def _is_current(self) -> bool:
        """Whether the open file is still the one under the name; it may be thrown away at any time."""
        try:
            return self._path.stat().st_ino == self._inode
        except FileNotFoundError:
            return False

    def _throw_away(self) -> None:
        self.close()
        with contextlib.suppress(OSError):
            self._path.unlink(missing_ok=True)


def _opened(path: Path) -> sqlite3.Connection:
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    database = sqlite3.connect(path, check_same_thread=False)
    try:
        # No journal file and zeroed free pages: deleted threads must not be found in either.
        for setting in ("journal_mode=MEMORY", "synchronous=OFF", "secure_delete=ON"):
            database.execute(f"PRAGMA {setting}").fetchall()
        if database.execute("PRAGMA user_version").fetchone()[0] != _VERSION:
            _make(database)
    except sqlite3.Error:
        database.close()
        raise
    return database


def _make(database: sqlite3.Connection) -> None:
    with database:
        database.execute("DROP TABLE IF EXISTS tree")
        database.execute("CREATE TABLE tree (name TEXT PRIMARY KEY, summary BLOB) WITHOUT ROWID")
        database.execute(f"PRAGMA user_version={_VERSION}")
