"""Nobody deletes SQLite's log while a store is open.

Whoever closes a database as the last one deletes its log, and SQLite knows the last one by its own locks. Those do not
hold what they promise: they are gone as soon as their process closes any other file descriptor of the database, which
a second journal or a copy of the file does, and the child of a fork never gets them. Then the next process that comes
and goes takes the log away, and what is committed to a log without a name is lost. A lock of an open file description
stays, so the store has one where SQLite asks whether it is the last.

Room in SQLite's log before it is needed.

A flush that makes a file longer takes about twice the time of one that writes over what is there, and the log of a
store that was just opened grows with every commit. So it is made longer by zeros, in few and large steps. SQLite reads
its log up to the first frame that does not fit the ones before it, and zeros never do.
"""

from __future__ import annotations

import errno
import fcntl
import os
import struct
import time
from contextlib import suppress
from pathlib import Path

from sessiontree.errors import StoreGoneError
from sessiontree.stores._io import FileDescriptor

__all__ = ["WalGuard", "WalPreallocation"]


# The bytes that every connection to a database shares, and that the last one locks for itself alone.
_SHARED_FIRST = 0x40000000 + 2
_SHARED_SIZE = 510
_PAUSE_SECONDS = 0.01

# Python knows such locks on Linux only. Elsewhere a process should open a store once.
_SET_LOCK: int | None = getattr(fcntl, "F_OFD_SETLK", None)


class WalGuard:
    """Taken before the first connection is made, let go before the last one is closed."""

    def __init__(self, store: Path, patience_seconds: float) -> None:
        self._file = FileDescriptor(store, os.O_RDWR)
        self._take(time.monotonic() + patience_seconds)

    def let_go(self) -> None:
        self._lock(fcntl.F_UNLCK)

    def close(self) -> None:
        self._file.close()

    def _take(self, end: float) -> None:
        """Another process may be the last one just now."""
        while True:
            try:
                return self._lock(fcntl.F_RDLCK)
            except BlockingIOError:
                if time.monotonic() > end:
                    raise
            time.sleep(_PAUSE_SECONDS)

    def _lock(self, kind: int) -> None:
        if _SET_LOCK is None:
            return
        try:
            fcntl.fcntl(
                self._file.number, _SET_LOCK, struct.pack("hhqqi0q", kind, os.SEEK_SET, _SHARED_FIRST, _SHARED_SIZE, 0)
            )
        except OSError as error:
            # Some systems only look like Linux and lack these locks; a store without the hold is better than none.
            if error.errno != errno.EINVAL:
                raise


_STEP = 64 * 1024
_LARGEST_ROOM = 1024 * 1024


class WalPreallocation:
    """Used inside a write transaction only: then the log is there, and nobody else makes it longer or shorter."""

    def __init__(self, store: Path) -> None:
        self._place = str(store)
        self._log = store.with_name(store.name + "-wal")
        self._file: FileDescriptor | None = None

    def make(self) -> None:
        """A length that is no whole number of steps is one that frames have reached."""
        if self._file is None:
            self._file = self._open()
        # Not fstat: a file whose times somebody looked at gets new ones with the next write, and the flush waits.
        size = os.lseek(self._file.number, 0, os.SEEK_END)
        if size % _STEP:
            self._stretch(self._file.number, size)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()

    def _open(self) -> FileDescriptor:
        try:
            return FileDescriptor(self._log, os.O_RDWR)
        except FileNotFoundError:
            raise StoreGoneError(self._place) from None

    def _stretch(self, file: int, size: int) -> None:
        end = size + min(size, _LARGEST_ROOM)
        end += -end % _STEP
        # A disk without room for zeros may have some for the commit; if not, SQLite says so.
        with suppress(OSError):
            os.pwrite(file, bytes(end - size), size)
