"""A copy of a SQLite store at one moment, made by SQLite's online backup."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing

from sessiontree.errors import DamagedDataError
from sessiontree.stores.backup.manifest import SQLITE_NAME
from sessiontree.stores.backup.snapshot import Snapshot, SnapshotFile, SnapshotRequest
from sessiontree.stores.sqlite.errors import translate_error
from sessiontree.stores.sqlite.reads import read_transaction

__all__ = ["take_snapshot"]


_PAGES_PER_STEP = 1024
_READ_BYTES = 1 << 20


def take_snapshot(connection: sqlite3.Connection, place: str, request: SnapshotRequest) -> Snapshot:
    """Copy the store to the scratch folder. Writers go on meanwhile, because the copy is read in one transaction.

    Raises DamagedDataError if SQLite finds damage in the copy.
    """
    copy = request.scratch / SQLITE_NAME
    with read_transaction(connection):
        connection.execute("SELECT count(*) FROM store_meta").fetchone()  # the moment of the snapshot
        try:
            _copy(connection, str(copy), request)
        except sqlite3.Error as error:
            raise translate_error(str(copy), error) from error
    size = copy.stat().st_size
    file = SnapshotFile(name=SQLITE_NAME, size=size, read=lambda: _parts(str(copy)))
    return Snapshot(kind="sqlite", place=place, files=(file,), copied=size)


def _copy(connection: sqlite3.Connection, copy: str, request: SnapshotRequest) -> None:
    page_size: int = connection.execute("PRAGMA page_size").fetchone()[0]

    def advance(_status: int, remaining: int, total: int) -> None:
        if request.progress is not None:
            request.progress((total - remaining) * page_size, 2 * total * page_size)

    with closing(sqlite3.connect(copy, isolation_level=None)) as target:
        # The copy is temporary: what is cut into pieces is synced there.
        target.execute("PRAGMA synchronous = OFF")
        target.execute("PRAGMA journal_mode = OFF")
        connection.backup(target, pages=_PAGES_PER_STEP, progress=advance)
    with closing(sqlite3.connect(f"file:{copy}?immutable=1", uri=True)) as target:
        (problem,) = target.execute("PRAGMA quick_check(1)").fetchone()
        if problem != "ok":
            raise DamagedDataError(copy, 0, f"{problem}; the store itself is damaged, and no backup was made of it")


def _parts(path: str) -> Iterator[bytes]:
    with open(path, "rb") as file:  # noqa: PTH123  sqlite3 has the path as text too
        while part := file.read(_READ_BYTES):
            yield part
