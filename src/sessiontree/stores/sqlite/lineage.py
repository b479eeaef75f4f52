"""Notice that the files of an open store were overwritten or removed, for example by ``cp backup.db live.db``.

SQLite does not notice: the commits since the last checkpoint are in the WAL, and it goes on writing there, on top of
pages that are not the ones that it knows. So ``store_meta.stamp`` has an id of the store and a number that grows after
each checkpoint. The stamp in the file itself, without the WAL, is then the one that the WAL continues from or the one
before it; the stamp of another store or of an older copy is neither. It is compared whenever the time or size of the file
changed, which in normal use only a checkpoint does.

SQLite does not notice either that ``rm live.db-wal`` took its WAL away, or ``rm live.db-shm`` the index that tells processes
what is in it: it goes on with the open files, and the next process makes new ones. So both must be the files that they were.
"""

from __future__ import annotations

import os
import re
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from sessiontree.errors import StoreError, StoreGoneError
from sessiontree.stores.sqlite.errors import translate_error

__all__ = ["Lineage", "new_stamp", "renew_stamp"]


_STAMP = re.compile(rb"sessiontree ([0-9a-f]{32}) (\d{16})")
_CHUNK = 1 << 20
_ATTEMPTS = 4
_SETTLED_NS = 1_000_000_000
_PAUSE_SECONDS = 0.02
"""Another program may be in the middle of a checkpoint."""


class _Stamp(NamedTuple):
    store_id: str
    number: int

    def __str__(self) -> str:
        return f"sessiontree {self.store_id} {self.number:016d}"


def new_stamp() -> str:
    """The first stamp of a store."""
    return str(_Stamp(os.urandom(16).hex(), 0))


def renew_stamp(file: Path) -> None:
    """Give a copy of a store an id of its own: with the stamp of the original it could be copied over it unnoticed."""
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        try:
            columns = connection.execute("SELECT name FROM pragma_table_info('store_meta')").fetchall()
            if ("stamp",) in columns:  # older layouts get one when they are upgraded
                connection.execute("UPDATE store_meta SET stamp = ?", (new_stamp(),))
        except sqlite3.Error as error:
            raise translate_error(str(file), error) from error


class Lineage:
    """Checks that the file at a path is the one that was opened. Every method is called under the process lock."""

    def __init__(self, path: Path, file: int, connection: sqlite3.Connection) -> None:
        self._path = path
        self._file = file
        self._is_due = False
        self._base: _Stamp | None = None
        self._is_gone = False
        self._times = self._look_at_times()
        is_continued = self._is_continued(connection)
        self._side_files = (f"{path}-wal", f"{path}-shm")
        self._inodes = [_inode_of(side_file) for side_file in self._side_files]
        self._folder = str(path.parent)
        self._seen_ns = -1
        """When the folder was changed last, as far as the files of the log were looked at since."""
        if not is_continued:
            log = path.with_name(path.name + "-wal").name
            raise StoreError(
                str(path),
                f"the file was replaced, but {log} beside it belongs to the former file; move {log} away, then open it again",
            )

    def verify(self, connection: sqlite3.Connection) -> None:
        """Raise StoreGoneError if a file was overwritten or removed since the last call."""
        if not self._has_side_files():
            log, index = (Path(side_file).name for side_file in self._side_files)
            raise StoreGoneError(str(self._path), f"its log ({log}, {index})")
        times = self._look_at_times()
        if times == self._times and not self._is_gone:
            return
        if self._is_gone or not self._is_continued(connection):
            self._is_gone = True
            raise StoreGoneError(str(self._path))
        self._times = times

    @property
    def is_replaced(self) -> bool:
        """Whether another file is in the place of one of ours. If one is only missing, SQLite can still empty the log."""
        found = [_inode_of(side_file) for side_file in self._side_files]
        return self._is_gone or any(now not in (0, known) for now, known in zip(found, self._inodes, strict=True))

    def mark(self, connection: sqlite3.Connection) -> None:
        """Change the stamp if there was a checkpoint since it was changed last. Called within a transaction."""
        if self._is_due and self._base is not None:
            following = _Stamp(self._base.store_id, self._base.number + 1)
            connection.execute("UPDATE store_meta SET stamp = ?", (str(following),))

    def committed(self) -> None:
        """Note that the transaction of ``mark`` was committed."""
        self._is_due = False

    def _has_side_files(self) -> bool:
        # A look at a file that is written makes its next sync dearer, as its times must differ then; one at the folder does not.
        try:
            changed_ns = os.stat(self._folder).st_mtime_ns  # noqa: PTH116  twice in each commit, and a Path costs more
        except FileNotFoundError:
            return False
        if changed_ns == self._seen_ns:
            return True
        # The folder may change again in the moment in which it is looked at, without another time.
        is_ours = [_inode_of(side_file) for side_file in self._side_files] == self._inodes
        if is_ours and time.time_ns() - changed_ns > _SETTLED_NS:
            self._seen_ns = changed_ns
        return is_ours

    def _look_at_times(self) -> tuple[int, int]:
        found = os.fstat(self._file)
        return found.st_mtime_ns, found.st_size

    def _is_continued(self, connection: sqlite3.Connection) -> bool:
        """Return whether the WAL continues the file, and the file is not older than when it was read last."""
        for attempt in range(_ATTEMPTS):
            if attempt:
                time.sleep(_PAUSE_SECONDS)
            try:
                current = _stamp_in(str(connection.execute("SELECT stamp FROM store_meta").fetchone()[0]).encode())
                base = self._stored(connection)
            except (sqlite3.Error, TypeError):
                continue
            if base is None and self._base is None:
                return True  # a layout without stamps, whose upgrade is in the WAL only
            if base and current and self._follows(base, current):
                self._base = base
                self._is_due = base.number == current.number
                return True
        return False

    def _follows(self, base: _Stamp, current: _Stamp) -> bool:
        is_newer = self._base is None or (base.store_id == self._base.store_id and base.number >= self._base.number)
        return is_newer and base.store_id == current.store_id and 0 <= current.number - base.number <= 1

    def _stored(self, connection: sqlite3.Connection) -> _Stamp | None:
        """Read the stamp from the file, without the WAL."""
        size = connection.execute("PRAGMA page_size").fetchone()[0]
        page = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'store_meta'").fetchone()[0]
        return _stamp_in(os.pread(self._file, size, (page - 1) * size)) or self._searched()

    def _searched(self) -> _Stamp | None:
        """Look everywhere: a VACUUM that is in the WAL only moved the page."""
        found: list[_Stamp] = []
        offset = 0
        rest = b""
        while block := os.pread(self._file, _CHUNK, offset):
            found += [_Stamp(store_id.decode(), int(number)) for store_id, number in _STAMP.findall(rest + block)]
            offset += len(block)
            rest = block[-64:]
        return max(found, key=lambda stamp: stamp.number, default=None)


def _inode_of(path: str) -> int:
    """The inode of a file, 0 if there is none."""
    try:
        return Path(path).stat().st_ino
    except FileNotFoundError:
        return 0


def _stamp_in(data: bytes) -> _Stamp | None:
    found = _STAMP.search(data)
    return None if found is None else _Stamp(found[1].decode(), int(found[2]))
