"""Disk, through which a restore makes every change to the disk, one call each, and StateDir, the ``.sessiontree`` directory.

Tests replace ``Disk`` to fail or kill the process at any call. The state directory is inside the root, so that it is on the
same file system and a rename moves a file into place.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat

from sessiontree.errors import WorkspaceError
from sessiontree.workspace.ignore import STATE_DIR
from sessiontree.workspace.safe_paths import Folder

__all__ = ["Disk", "StateDir"]


_O_PATH: int = getattr(os, "O_PATH", 0)


def _with_special_bits(mode: int, found: int) -> int:
    return mode & 0o777 | found & 0o7000


class Disk:
    """Changes to the disk, relative to open directories. Links are never followed."""

    def make_folder(self, fd: int, name: str) -> None:
        """Make a folder for its owner only; its final mode is set once its content is in place."""
        os.mkdir(name, 0o700, dir_fd=fd)

    def remove_folder(self, fd: int, name: str) -> None:
        """Remove an empty folder."""
        os.rmdir(name, dir_fd=fd)

    def set_mode(self, fd: int, name: str, mode: int) -> None:
        """Set the permissions of a file or folder; its setuid, setgid and sticky bits stay as they are."""
        if not _O_PATH:
            found = os.stat(name, dir_fd=fd, follow_symlinks=False).st_mode
            os.chmod(name, _with_special_bits(mode, found), dir_fd=fd, follow_symlinks=False)
            return
        # chmod on Linux always follows links, so open the path itself and change what it names.
        file = os.open(name, _O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=fd)
        try:
            found = os.fstat(file).st_mode
            if not stat.S_ISLNK(found):
                os.chmod(f"/proc/self/fd/{file}", _with_special_bits(mode, found))  # noqa: PTH101  a descriptor, not a path
        finally:
            os.close(file)

    def write_file(self, fd: int, name: str, data: bytes, mode: int) -> None:
        """Write a new file with its final mode, and sync it."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        file = os.open(name, flags, 0o600, dir_fd=fd)
        try:
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(file, rest) :]
            os.fchmod(file, mode & 0o777)
            os.fsync(file)
        finally:
            os.close(file)

    def make_link(self, fd: int, name: str, target: bytes) -> None:
        """Make a symbolic link."""
        os.symlink(target, os.fsencode(name), dir_fd=fd)

    def link(self, from_fd: int, from_name: str, to_fd: int, to_name: str) -> None:
        """Make a hard link."""
        os.link(from_name, to_name, src_dir_fd=from_fd, dst_dir_fd=to_fd, follow_symlinks=False)

    def rename(self, from_fd: int, from_name: str, to_fd: int, to_name: str) -> None:
        """Rename a path, replacing a file that is there."""
        os.rename(from_name, to_name, src_dir_fd=from_fd, dst_dir_fd=to_fd)

    def remove(self, fd: int, name: str) -> None:
        """Remove a file or link."""
        os.unlink(name, dir_fd=fd)

    def sync(self, fd: int) -> None:
        """Sync an open file or directory."""
        os.fsync(fd)


_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_LOCK = "lock"


class StateDir:
    """The open state directory of a root; it is made on first use."""

    def __init__(self, folder: Folder) -> None:
        self.fd = _open_state_dir(folder)
        self._lock = -1

    def lock(self) -> None:
        """Wait until no other operation, in any process, works on this root."""
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        self._lock = os.open(_LOCK, flags, 0o600, dir_fd=self.fd)
        fcntl.flock(self._lock, fcntl.LOCK_EX)

    def now_ns(self) -> int:
        """Return the time on the file system's clock, with the resolution of its time stamps."""
        os.utime(self.fd)
        return os.fstat(self.fd).st_mtime_ns

    def close(self) -> None:
        """Release the lock and close the directory."""
        for fd in (self._lock, self.fd):
            if fd >= 0:
                os.close(fd)
        self._lock = self.fd = -1


def _open_state_dir(folder: Folder) -> int:
    with contextlib.suppress(FileExistsError):
        _make(folder)
    try:
        return os.open(STATE_DIR, _FLAGS, dir_fd=folder.fd)
    except OSError as error:
        problem = f"{STATE_DIR} in it is not a directory of sessiontree ({error.strerror}); move it away"
        raise WorkspaceError(folder.root, problem) from error


def _make(folder: Folder) -> None:
    try:
        os.mkdir(STATE_DIR, 0o700, dir_fd=folder.fd)
    except FileExistsError:
        raise
    except OSError as error:
        raise WorkspaceError(folder.root, f"cannot be written: {error.strerror}") from error
    state = os.open(STATE_DIR, _FLAGS, dir_fd=folder.fd)
    try:
        file = os.open(".gitignore", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=state)
        os.write(file, b"*\n")
        os.close(file)
    finally:
        os.close(state)
