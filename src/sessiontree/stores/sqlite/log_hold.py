"""Nobody deletes SQLite's log while a store is open.

Whoever closes a database as the last one deletes its log, and SQLite knows the last one by its own locks. Those do not
hold what they promise: they are gone as soon as their process closes any other file descriptor of the database, which
a second journal or a copy of the file does, and the child of a fork never gets them. Then the next process that comes
and goes takes the log away, and what is committed to a log without a name is lost. A lock of an open file description
stays, so the store has one where SQLite asks whether it is the last.
"""

from __future__ import annotations

import errno
import fcntl
import os
import struct
import time
from pathlib import Path

from sessiontree._engine.descriptor import Descriptor

__all__ = ["LogHold"]

# The bytes that every connection to a database shares, and that the last one locks for itself alone.
_SHARED_FIRST = 0x40000000 + 2
_SHARED_SIZE = 510
_PAUSE_SECONDS = 0.01

# Python knows such locks on Linux only. Elsewhere a process should open a store once.
_SET_LOCK: int | None = getattr(fcntl, "F_OFD_SETLK", None)


class LogHold:
    """Taken before the first connection is made, let go before the last one is closed."""

    def __init__(self, store: Path, patience_seconds: float) -> None:
        self._file = Descriptor(store, os.O_RDWR)
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
