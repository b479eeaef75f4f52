"""Cached summaries of all tree files, so that lists and statistics read only the files that changed.

The cache is an SQLite file that may be removed at any time; it is rebuilt if it is missing, broken or of another version.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from sessiontree.model import Thread
from sessiontree.model._base import UNREADABLE, Record, json_decoder
from sessiontree.stores.jsonl.layout import name_of
from sessiontree.stores.jsonl.tree import Tree, TreeCache

__all__ = ["Stamp", "SummaryFile", "ThreadIndex", "TreeSummary"]


_VERSION = 1


class Stamp(Record, frozen=True, kw_only=True):
    """Identity, size and time of a file when it was read."""

    inode: int
    size: int
    mtime_ns: int

    @classmethod
    def of(cls, found: os.stat_result) -> Stamp:
        """The stamp of a stat result."""
        return cls(inode=found.st_ino, size=found.st_size, mtime_ns=found.st_mtime_ns)


class TreeSummary(Record, frozen=True, kw_only=True):
    """What lists and statistics need to know about a tree."""

    stamp: Stamp
    tree_id: str | None = None
    threads: tuple[Thread, ...] = ()
    entries: int = 0
    moves: int = 0
    leases: int = 0

    @classmethod
    def of(cls, tree: Tree, stamp: Stamp) -> TreeSummary:
        """The summary of a loaded tree."""
        state = tree.state
        return cls(
            stamp=stamp,
            tree_id=tree.tree_id,
            threads=tuple(thread.public() for thread in state.states.values()),
            entries=len(state.nodes),
            moves=sum(map(len, state.reflogs.values())),
            leases=len(state.leases),
        )


_summaries = json_decoder(TreeSummary)


class SummaryFile:
    """The SQLite file of summaries. If it fails it is discarded; answers do not depend on it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._database: sqlite3.Connection | None = None
        self._inode = 0

    def load(self) -> dict[str, TreeSummary]:
        """All summaries by tree name."""
        try:
            rows = self._open().execute("SELECT name, summary FROM tree").fetchall()
            return {name: _summaries.decode(summary) for name, summary in rows}
        except (*UNREADABLE, sqlite3.Error, TypeError, OSError):
            self.discard()
            return {}

    def save(self, changed: Mapping[str, TreeSummary], removed: Iterable[str]) -> None:
        """Write changed summaries and remove others."""
        rows = [(name, msgspec.json.encode(summary)) for name, summary in changed.items()]
        try:
            with self._open() as database:
                database.executemany("DELETE FROM tree WHERE name = ?", [(name,) for name in removed])
                database.executemany("INSERT OR REPLACE INTO tree VALUES (?, ?)", rows)
        except (sqlite3.Error, OSError):
            self.discard()

    def forget(self, name: str) -> None:
        """Remove a summary: a deleted thread must not stay in the cache."""
        if self._path.exists():
            self.save({}, [name])

    def close(self) -> None:
        """Close the file."""
        if self._database is not None:
            self._database.close()
            self._database = None

    def _open(self) -> sqlite3.Connection:
        if self._database is None or not self._is_current():
            self.close()
            self._database = _connect(self._path)
            self._inode = self._path.stat().st_ino
        return self._database

    def _is_current(self) -> bool:
        """Whether the open file is still the one at the path; it may be removed at any time."""
        try:
            return self._path.stat().st_ino == self._inode
        except FileNotFoundError:
            return False

    def discard(self) -> None:
        """Remove the file."""
        self.close()
        with contextlib.suppress(OSError):
            self._path.unlink(missing_ok=True)


def _connect(path: Path) -> sqlite3.Connection:
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    database = sqlite3.connect(path, check_same_thread=False)
    try:
        # Without a journal file and with zeroed free pages, deleted threads leave no trace on disk.
        for setting in ("journal_mode=MEMORY", "synchronous=OFF", "secure_delete=ON"):
            database.execute(f"PRAGMA {setting}").fetchall()
        if database.execute("PRAGMA user_version").fetchone()[0] != _VERSION:
            _create(database)
    except sqlite3.Error:
        database.close()
        raise
    return database


def _create(database: sqlite3.Connection) -> None:
    with database:
        database.execute("DROP TABLE IF EXISTS tree")
        database.execute("CREATE TABLE tree (name TEXT PRIMARY KEY, summary BLOB) WITHOUT ROWID")
        database.execute(f"PRAGMA user_version={_VERSION}")


class ThreadIndex:
    """The threads of all tree files."""

    def __init__(self, trees: TreeCache, file: SummaryFile) -> None:
        self._trees = trees
        self._file = file
        self._summaries: dict[str, TreeSummary] | None = None
        self._unsaved: set[str] = set()
        self._removed: set[str] = set()

    def refresh(self) -> dict[str, TreeSummary]:
        """Summaries of all tree files; only the files that changed since the last call are read."""
        before = self._file.load() if self._summaries is None else self._summaries
        now: dict[str, TreeSummary] = {}
        for name, found in self._trees.files():
            stamp = Stamp.of(found)
            known = before.get(name)
            summary = known if known is not None and known.stamp == stamp else self._summarize(name, stamp)
            if summary is None:
                continue
            now[name] = summary
            if summary is not known:
                self._unsaved.add(name)
        self._removed |= before.keys() - now.keys()
        self._summaries = now
        return now

    def threads(self) -> list[Thread]:
        """Every thread once. Threads of a misnamed tree file are listed unless the correctly named file has them."""
        summaries = self.refresh()
        by_name = sorted(summaries, key=lambda name: name == name_of(summaries[name].tree_id or ""))
        found = {thread.id: thread for name in by_name for thread in summaries[name].threads}
        return list(found.values())

    @property
    def has_unsaved(self) -> bool:
        """Whether ``save`` has something to write."""
        return bool(self._unsaved or self._removed)

    def save(self) -> None:
        """Write changed summaries. The caller holds the process lock, so that no concurrent delete is undone here."""
        current = {name: Stamp.of(found) for name, found in self._trees.files()} if self._unsaved else {}
        summaries = self._summaries or {}
        changed = {name: summaries[name] for name in self._unsaved if name in summaries}
        fresh = {name: summary for name, summary in changed.items() if current.get(name) == summary.stamp}
        self._file.save(fresh, self._removed)
        self._unsaved.clear()
        self._removed.clear()

    def forget(self, name: str) -> None:
        """Remove the summary of a tree."""
        self._file.forget(name)
        if self._summaries is not None:
            self._summaries.pop(name, None)
        self._unsaved.discard(name)

    def discard(self) -> None:
        """Remove the cache file and all summaries; they are made again when they are needed."""
        self._file.discard()
        self._summaries = None
        self._unsaved.clear()
        self._removed.clear()

    def close(self) -> None:
        """Close the cache file."""
        self._file.close()

    def _summarize(self, name: str, stamp: Stamp) -> TreeSummary | None:
        tree = self._trees.peek(name)
        if tree is None:
            return None
        try:
            return TreeSummary.of(tree, stamp)
        finally:
            self._trees.release(tree)
