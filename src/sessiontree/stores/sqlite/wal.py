"""The WAL of an open store: sync it, and keep SQLite from deleting it.

SQLite would sync each commit while it holds the lock of the database, one process after the other. A store syncs the WAL
itself, after it has released its lock, so processes wait for the disk at the same time.

The process that closes a database last deletes its WAL, and SQLite finds out by POSIX locks whether it is the last one.
Those locks are not reliable: a process loses them as soon as it closes any other file descriptor of the database, which
a second journal or a copy of the file does, and a forked child never has them. The next process that opens and closes
the database then deletes the WAL, and commits to a file without a name are lost. A lock of an open file description is
not lost that way, so an open store holds one on the bytes that SQLite tests.
"""

from __future__ import annotations

import errno
import fcntl
import os
import struct
import time
from contextlib import suppress
from pathlib import Path

from sessiontree.stores._io import FileDescriptor, Files, SyncFailedError

__all__ = ["WalFile", "WalGuard"]


# The bytes on which every connection holds a shared lock, and on which the last one takes an exclusive lock.
_SHARED_FIRST = 0x40000000 + 2
_SHARED_SIZE = 510
_PAUSE_SECONDS = 0.01

# Python has these locks on Linux only. On other systems a process should open a store once.
_SET_LOCK: int | None = getattr(fcntl, "F_OFD_SETLK", None)


class WalFile:
    """The WAL, which stays the same file as long as a guard is held."""

    def __init__(self, store: Path) -> None:
        self._file = FileDescriptor(store.with_name(store.name + "-wal"), os.O_RDWR)
        self._files = Files()
        self._doubt = store.with_name(store.name + "-unsynced")

    def sync(self) -> None:
        """Make all commits durable, those of other processes too."""
        try:
            self._files.sync(self._file.number)
        except OSError as error:
            # The caller learns of the failure in any case. The note is for the next process and needs no sync: a power cut
            # takes away what the kernel has in its memory too.
            with suppress(OSError):
                self._doubt.touch(mode=0o600)
            raise SyncFailedError(error.errno, str(error)) from error

    @property
    def is_in_doubt(self) -> bool:
        """Whether a sync failed, so that commits may be in the memory of the kernel only, and later syncs leave them out."""
        return self._doubt.exists()

    def sync_again(self) -> None:
        """Write and sync all of the WAL, although the kernel takes it for written. No one may write to it meanwhile."""
        self._files.write_again(self._file.number)
        self.sync()
        self._doubt.unlink(missing_ok=True)

    def close(self) -> None:
        """Close the file. SQLite has no locks on it that could be lost."""
        self._file.close()


class WalGuard:
    """A shared lock, taken before the first connection is opened and released before the last one is closed."""

    def __init__(self, store: Path, timeout_seconds: float) -> None:
        self._file = FileDescriptor(store, os.O_RDWR)
        self._acquire(time.monotonic() + timeout_seconds)

    @property
    def number(self) -> int:
        """The descriptor of the file."""
        return self._file.number

    def release(self) -> None:
        """Let SQLite delete the WAL again. The file stays open until ``close``."""
        self._lock(fcntl.F_UNLCK)

    def close(self) -> None:
        """Close the file. Only after the connections: closing it makes this process lose SQLite's locks."""
        self._file.close()

    def _acquire(self, end: float) -> None:
        """Take the lock; wait while another process closes the database as the last one."""
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
            # Some systems that claim to be Linux lack these locks; a store without the guard is better than none.
            if error.errno != errno.EINVAL:
                raise
