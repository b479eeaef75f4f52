"""What the embedded stores need of the operating system: file writes, syncs, a lock between processes, mounts.

Tests pass another ``Files`` to make single operations fail or to simulate a power cut.
"""

from __future__ import annotations

import _thread
import fcntl
import os
import stat
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Literal

from sessiontree.errors import NetworkFileSystemError, StoreGoneError, StoreUnavailableError

__all__ = [
    "FileDescriptor",
    "FileLock",
    "Files",
    "Kind",
    "ProcessLock",
    "SyncFailedError",
    "file_system_of",
    "kind_of",
    "refuse_network",
    "syncing",
]


LOCK_SECONDS = 30.0
"""How long a writer waits for the lock before it gives up."""

_BLOCK = 1 << 20

# On macOS, which has no fdatasync, and where fsync leaves the data in the cache of the disk.
_FULL_SYNC: int | None = getattr(fcntl, "F_FULLFSYNC", None)

Kind = Literal["nothing", "file", "folder", "pipe", "socket", "device"]


def kind_of(path: Path) -> Kind:
    """What is at a path, without opening it: opening a pipe blocks until its other end is opened."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return "nothing"
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISDIR(mode):
        return "folder"
    return "pipe" if stat.S_ISFIFO(mode) else "socket" if stat.S_ISSOCK(mode) else "device"


class SyncFailedError(OSError):
    """A sync failed, so it is unknown what is on the disk."""


@contextmanager
def syncing() -> Iterator[None]:
    """Raise SyncFailedError for an OSError in the block."""
    try:
        yield
    except OSError as error:
        raise SyncFailedError(error.errno, str(error)) from error


class Files:
    """File operations. A short write is completed or raises; it is never mistaken for a complete one."""

    def open_append(self, path: Path) -> int:
        """Open a file for reading and appending; create it if needed."""
        return os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def append(self, file: int, data: bytes) -> None:
        """Write all of ``data`` at the end."""
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(file, rest) :]

    def write_at(self, file: int, offset: int, data: bytes) -> None:
        """Write all of ``data`` at an offset; the file was not opened for appending."""
        rest = memoryview(data)
        while rest:
            count = os.pwrite(file, rest, offset)
            rest = rest[count:]
            offset += count

    def truncate(self, file: int, size: int) -> None:
        """Cut a file to ``size`` bytes."""
        os.ftruncate(file, size)

    def sync(self, file: int) -> None:
        """Make what was written durable."""
        if _FULL_SYNC is None:
            os.fdatasync(file)
        else:
            fcntl.fcntl(file, _FULL_SYNC)

    def sync_folder(self, folder: Path) -> None:
        """Make names that were created, renamed or removed in a folder durable."""
        file = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(file)
        finally:
            os.close(file)

    def write_new(self, path: Path, data: bytes) -> None:
        """Write and sync a file; raise FileExistsError if it exists."""
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            self.append(file, data)
            self.sync(file)
        finally:
            os.close(file)

    def put(self, path: Path, data: bytes) -> None:
        """Replace the content of a file durably; after a crash it has the old content or the new."""
        new = path.with_name(path.name + ".new")
        new.unlink(missing_ok=True)
        self.write_new(new, data)
        self.replace(new, path)

    def write_again(self, file: int) -> None:
        """Write all that a file has to it once more: the kernel keeps what it failed to sync, but syncs it no more."""
        offset = 0
        while data := os.pread(file, _BLOCK, offset):
            self.write_at(file, offset, data)
            offset += len(data)

    def make_folders(self, path: Path) -> None:
        """Create a folder and those above it, durably."""
        missing = [folder for folder in (path, *path.parents) if not folder.exists()]
        for folder in reversed(missing):
            self.make_folder(folder)

    def make_folder(self, path: Path) -> None:
        """Create a folder with mode 700, durably; one that exists is left unchanged."""
        try:
            path.mkdir(mode=0o700)
        except FileExistsError:
            return
        self.sync_folder(path.parent)

    def replace(self, source: Path, target: Path) -> None:
        """Rename a file over another, durably."""
        os.replace(source, target)
        with syncing():
            self.sync_folder(target.parent)

    def remove(self, path: Path) -> None:
        """Remove a file durably."""
        path.unlink()
        with syncing():
            self.sync_folder(path.parent)


class FileDescriptor:
    """A file descriptor that is closed exactly once, by its owner or by the garbage collector."""

    def __init__(self, path: str | os.PathLike[str], flags: int) -> None:
        self.number = os.open(path, flags | os.O_CLOEXEC, 0o600)
        self._closer = weakref.finalize(self, os.close, self.number)
        # Threads may still write while the process exits; the system closes the file afterwards.
        self._closer.atexit = False

    def close(self) -> None:
        """Close the file; the second call is a no-op."""
        self._closer()


class FileLock:
    """An exclusive lock between processes, on a file beside the data: ``with lock:`` holds it.

    Waiting writers queue for it, so none starves. Threads of one process need a lock object each.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = FileDescriptor(path, os.O_RDWR | os.O_CREAT)

    def __enter__(self) -> None:
        try:
            self._lock()
            self._check()
        except BaseException:
            # An interrupt may come just after the lock was taken; __exit__ would not run then.
            self._release()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._release()

    def close(self) -> None:
        """Close the lock file."""
        self._file.close()

    def _lock(self) -> None:
        try:
            fcntl.flock(self._file.number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._wait()
        except OSError as error:
            raise StoreUnavailableError(str(self._path), f"cannot lock it: {error}") from error

    def _wait(self) -> None:
        """Wait in the system's queue, in a thread that is left behind if it takes too long."""
        wait = _LockWait(self._file)
        is_over = False
        try:
            is_over = wait.start(LOCK_SECONDS)
        finally:
            if not is_over:
                self._file = FileDescriptor(self._path, os.O_RDWR | os.O_CREAT)
                wait.abandon()
        if not is_over:
            problem = f"another process has held its lock for {LOCK_SECONDS:g} seconds; see whether it is stopped"
            raise StoreUnavailableError(str(self._path), problem)
        if wait.error is not None:
            raise StoreUnavailableError(str(self._path), f"cannot lock it: {wait.error}") from wait.error

    def _check(self) -> None:
        """Raise if nothing may be written any more."""

    def _release(self) -> None:
        try:
            fcntl.flock(self._file.number, fcntl.LOCK_UN)
        except OSError:
            # What the lock protected is done, so this is not reported. To close the file releases the lock as well.
            self._file.close()
            self._file = FileDescriptor(self._path, os.O_RDWR | os.O_CREAT)


class _LockWait:
    """One wait for a lock. A thread cannot stop waiting for ``flock``, so another one does it."""

    def __init__(self, file: FileDescriptor) -> None:
        self.error: OSError | None = None
        self._file = file
        self._has_come = False
        self._is_abandoned = False
        self._deciding = threading.Lock()
        self._is_over = threading.Lock()
        self._is_over.acquire()

    def start(self, seconds: float) -> bool:
        """Wait; return whether it is over, with the lock or with an error."""
        _thread.start_new_thread(self._wait, ())
        return self._is_over.acquire(timeout=seconds)

    def abandon(self) -> None:
        """Give the lock back as soon as it comes. The file is not used by anybody else any more."""
        with self._deciding:
            self._is_abandoned = True
            if self._has_come:
                self._give_back()

    def _wait(self) -> None:
        try:
            fcntl.flock(self._file.number, fcntl.LOCK_EX)
        except OSError as error:
            self.error = error
        with self._deciding:
            self._has_come = True
            if self._is_abandoned:
                self._give_back()
        self._is_over.release()

    def _give_back(self) -> None:
        # Closing is not enough: a child that was forked meanwhile has the file open too.
        with suppress(OSError):
            fcntl.flock(self._file.number, fcntl.LOCK_UN)
        self._file.close()


class ProcessLock(FileLock):
    """The lock of an open store.

    Entering raises StoreGoneError once the file or folder ``of`` was deleted or replaced: what is written there would be
    lost.
    """

    def __init__(self, path: Path, *, of: Path) -> None:
        super().__init__(path)
        self._place = str(of)
        found = of.stat()
        self._number, self._device = found.st_ino, found.st_dev

    def _check(self) -> None:
        try:
            found = os.stat(self._place)  # noqa: PTH116  on the path of every commit, and a Path costs more than the call
        except FileNotFoundError:
            raise StoreGoneError(self._place) from None
        if found.st_ino != self._number or found.st_dev != self._device:
            raise StoreGoneError(self._place)


_MOUNTS = Path("/proc/self/mountinfo")
_NETWORK = frozenset(
    {"9p", "afs", "beegfs", "ceph", "cifs", "davfs", "fuse.glusterfs", "fuse.s3fs", "fuse.sshfs", "glusterfs",
     "gpfs", "lustre", "ncpfs", "nfs", "nfs4", "ocfs2", "smb2", "smb3", "smbfs"}
)  # fmt: skip


def refuse_network(path: Path, mounts: Path = _MOUNTS) -> None:
    """Raise NetworkFileSystemError if the path is, or would be, on a network file system."""
    kind = file_system_of(path, mounts)
    if kind in _NETWORK:
        raise NetworkFileSystemError(str(path), kind)


def file_system_of(path: Path, mounts: Path = _MOUNTS) -> str:
    """The type of the file system that holds a path, or "" if the system does not say."""
    try:
        lines = mounts.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return ""
    real = os.path.realpath(path)
    best, kind = "", ""
    for line in lines:
        left, _, right = line.partition(" - ")
        point = _unescaped(left.split()[4])
        if len(point) >= len(best) and _is_under(real, point):
            best, kind = point, right.split()[0]
    return kind


def _is_under(path: str, point: str) -> bool:
    return point in {"/", path} or path.startswith(point + "/")


def _unescaped(text: str) -> str:
    for code, char in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        text = text.replace(code, char)
    return text
