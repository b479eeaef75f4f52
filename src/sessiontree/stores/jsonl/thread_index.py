"""All trees at a glance, for lists and statistics.

The listing cache: what each tree file holds, so that a list reads only the files that changed.

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
from sessiontree.model._base import Record, json_decoder
from sessiontree.stores.jsonl.layout import name_of
from sessiontree.stores.jsonl.tree import Tree, TreeCache

__all__ = ["Stamp", "SummaryFile", "ThreadIndex", "TreeSummary"]


_VERSION = 1


class Stamp(Record, frozen=True, kw_only=True):
    """How a file was when it was read."""

    inode: int
    size: int
    mtime_ns: int

    @classmethod
    def of(cls, found: os.stat_result) -> Stamp:
        return cls(inode=found.st_ino, size=found.st_size, mtime_ns=found.st_mtime_ns)


class TreeSummary(Record, frozen=True, kw_only=True):
    """What lists and statistics need of a tree."""

    stamp: Stamp
    tree_id: str | None = None
    threads: tuple[Thread, ...] = ()
    entries: int = 0
    moves: int = 0
    leases: int = 0

    @classmethod
    def of(cls, tree: Tree, stamp: Stamp) -> TreeSummary:
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
    """Rows of an SQLite file. Its failures cost time, never an answer."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._database: sqlite3.Connection | None = None
        self._inode = 0

    def load(self) -> dict[str, TreeSummary]:
        try:
            rows = self._open().execute("SELECT name, summary FROM tree").fetchall()
            return {name: _summaries.decode(summary) for name, summary in rows}
        except (sqlite3.Error, msgspec.DecodeError, TypeError, OSError):
            self._throw_away()
            return {}

    def save(self, changed: Mapping[str, TreeSummary], gone: Iterable[str]) -> None:
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


class ThreadIndex:
    def __init__(self, shelf: TreeCache, index: SummaryFile) -> None:
        self._shelf = shelf
        self._index = index
        self._summaries: dict[str, TreeSummary] | None = None
        self._unsaved: set[str] = set()
        self._gone: set[str] = set()

    def refresh(self) -> dict[str, TreeSummary]:
        """Summaries of all tree files; only those that changed since the last look are read."""
        before = self._index.load() if self._summaries is None else self._summaries
        now: dict[str, TreeSummary] = {}
        for name, found in self._shelf.names():
            stamp = Stamp.of(found)
            known = before.get(name)
            summary = known if known is not None and known.stamp == stamp else self._summarised(name, stamp)
            if summary is None:
                continue
            now[name] = summary
            if summary is not known:
                self._unsaved.add(name)
        self._gone |= before.keys() - now.keys()
        self._summaries = now
        return now

    def threads(self) -> list[Thread]:
        """Every thread once. A tree file under a wrong name shows its threads unless the right file has them."""
        summaries = self.refresh()
        by_name = sorted(summaries, key=lambda name: name == name_of(summaries[name].tree_id or ""))
        found = {thread.id: thread for name in by_name for thread in summaries[name].threads}
        return list(found.values())

    @property
    def has_unsaved(self) -> bool:
        return bool(self._unsaved or self._gone)

    def save(self) -> None:
        """Write the cache. With the gate held, so that no delete runs: what it removed must not come back."""
        current = {name: Stamp.of(found) for name, found in self._shelf.names()} if self._unsaved else {}
        summaries = self._summaries or {}
        changed = {name: summaries[name] for name in self._unsaved if name in summaries}
        fresh = {name: summary for name, summary in changed.items() if current.get(name) == summary.stamp}
        self._index.save(fresh, self._gone)
        self._unsaved.clear()
        self._gone.clear()

    def forget(self, name: str) -> None:
        self._index.forget(name)
        if self._summaries is not None:
            self._summaries.pop(name, None)
        self._unsaved.discard(name)

    def close(self) -> None:
        self._index.close()

    def _summarised(self, name: str, stamp: Stamp) -> TreeSummary | None:
        tree = self._shelf.peek(name)
        if tree is None:
            return None
        try:
            return TreeSummary.of(tree, stamp)
        finally:
            self._shelf.release(tree)
