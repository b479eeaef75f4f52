"""Erase copies of deleted content: older pages in the WAL, and words in the search index.

SQLite zeroes deleted content in the pages of the file (``secure_delete``). ``store_meta`` counts the deletions, and how
many of them are erased everywhere; a crash in between leaves a difference, which the next open settles.
"""

from __future__ import annotations

import sqlite3
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sessiontree.stores._io import ProcessLock
from sessiontree.stores.protocol import Durability
from sessiontree.stores.sqlite import schema
from sessiontree.stores.sqlite.lineage import Lineage

__all__ = ["Erasure", "has_copies"]


_VACUUM_FRACTION = 8
"""The file is rewritten if at least one part in so many of it was erased."""


def has_copies(connection: sqlite3.Connection) -> bool:
    """Return whether copies of deleted content may be left."""
    return bool(connection.execute("SELECT deletions <> erased FROM store_meta").fetchone()[0])


class Erasure:
    """Erases copies with a connection and a process lock of its own, so that no other writer waits for readers."""

    def __init__(self, path: Path, process_lock: ProcessLock, durability: Durability, lineage: Lineage) -> None:
        self._path = path
        self._process_lock = process_lock
        self._durability = durability
        self._lineage = lineage
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._noted: deque[tuple[list[int], int, int]] = deque()
        self._keys: list[int] = []
        self._deletions = 0
        self._freed_bytes = 0
        self._is_due = True

    def expect(self) -> None:
        """Note that there will be something to erase, even if the caller is interrupted before ``note``."""
        self._is_due = True

    def note(self, keys: list[int], deletions: int, freed_bytes: int) -> None:
        """Note deletions that were committed: the keys of their entries, and how many bytes they took."""
        self._noted.append((keys, deletions, freed_bytes))

    def run(self) -> bool:
        """Erase what is left and return True; False if a reader is in the way or something fails."""
        with self._lock:
            self._take_notes()
            if self._is_due:
                self._is_due = False
                try:
                    self._is_due = not self._erase()
                except Exception:  # noqa: BLE001  a damaged file can raise any exception
                    self._is_due = True
            return not self._is_due

    def _take_notes(self) -> None:
        while self._noted:
            keys, deletions, freed_bytes = self._noted.popleft()
            self._keys += keys
            self._deletions += deletions
            self._freed_bytes += freed_bytes
            self._is_due = True

    def vacuum(self) -> int:
        """Rewrite the file without its free pages; return how many bytes smaller it is. Writers wait."""
        with self._lock, self._process_lock:
            connection = self._open()
            self._lineage.verify(connection)
            before = self._path.stat().st_size
            connection.execute("VACUUM")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            return before - self._path.stat().st_size

    def close(self) -> None:
        """Close the connection."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _erase(self) -> bool:
        connection = self._open()
        deletions, erased = connection.execute("SELECT deletions, erased FROM store_meta").fetchone()
        if deletions == erased:
            return True
        if not self._erase_from_search(deletions):
            return False
        with self._process_lock:
            self._lineage.verify(connection)
            self._give_room_back(connection)
            if connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
                return False
            connection.execute("UPDATE store_meta SET erased = max(erased, ?)", (deletions,))
        return True

    def _erase_from_search(self, deletions: int) -> bool:
        from sessiontree.stores.sqlite.search import SqliteSearch  # noqa: PLC0415  most programs never search

        search = SqliteSearch(self._path, self._reader, busy_seconds=0)
        try:
            is_erased = search.forget(self._keys, str(deletions - self._deletions), str(deletions))
        finally:
            search.close()
        if is_erased:
            self._keys, self._deletions = [], 0
        return is_erased

    def _give_room_back(self, connection: sqlite3.Connection) -> None:
        """Rewrite the file if a good part of it was erased; if that fails, later writes use the room."""
        freed, self._freed_bytes = self._freed_bytes, 0
        if freed and freed * _VACUUM_FRACTION >= self._path.stat().st_size:
            try:
                connection.execute("VACUUM")
            except sqlite3.Error:
                return

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            connection = schema.connect(self._path)
            try:
                schema.prepare_writer(connection, self._durability, self._path)
                # Other writers must not wait while this one waits for readers.
                connection.execute("PRAGMA busy_timeout = 0")
            except BaseException:
                connection.close()
                raise
            self._connection = connection
        return self._connection

    @contextmanager
    def _reader(self) -> Iterator[sqlite3.Connection]:
        yield self._open()
