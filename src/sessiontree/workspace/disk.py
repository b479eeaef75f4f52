"""Every change that a restore makes to a disk goes through here, one call a change; tests kill the process in between.

The workspace's own folder inside the root: on the same file system, so that a rename is all a restore needs.
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


class Disk:
    """Plain file work relative to open folders; nothing here follows a link."""

    def make_folder(self, fd: int, name: str) -> None:
        """For its owner alone; the mode it is to have comes when everything is in it."""
        os.mkdir(name, 0o700, dir_fd=fd)

    def remove_folder(self, fd: int, name: str) -> None:
        os.rmdir(name, dir_fd=fd)

    def set_mode(self, fd: int, name: str, mode: int) -> None:
        if not _O_PATH:
            os.chmod(name, mode, dir_fd=fd, follow_symlinks=False)
            return
        # Linux has no chmod that does not follow links; the way around is a handle on what is there itself.
        file = os.open(name, _O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=fd)
        try:
            if not stat.S_ISLNK(os.fstat(file).st_mode):
                os.chmod(f"/proc/self/fd/{file}", mode)  # noqa: PTH101  a descriptor, not a path
        finally:
            os.close(file)

    def write_file(self, fd: int, name: str, data: bytes, mode: int) -> None:
        """A new file with its final mode, on the disk when this returns."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        file = os.open(name, flags, 0o600, dir_fd=fd)
        try:
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(file, rest) :]
            os.fchmod(file, mode)
            os.fsync(file)
        finally:
            os.close(file)

    def make_link(self, fd: int, name: str, target: bytes) -> None:
        os.symlink(target, os.fsencode(name), dir_fd=fd)

    def link(self, from_fd: int, from_name: str, to_fd: int, to_name: str) -> None:
        os.link(from_name, to_name, src_dir_fd=from_fd, dst_dir_fd=to_fd, follow_symlinks=False)

    def rename(self, from_fd: int, from_name: str, to_fd: int, to_name: str) -> None:
        os.rename(from_name, to_name, src_dir_fd=from_fd, dst_dir_fd=to_fd)

    def remove(self, fd: int, name: str) -> None:
        os.unlink(name, dir_fd=fd)

    def sync(self, fd: int) -> None:
        os.fsync(fd)


_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_LOCK = "lock"


class StateDir:
    """Open while something works on the root; ``lock`` lets one at a time in, over all processes."""

    def __init__(self, folder: Folder) -> None:
        self.fd = _open_state_dir(folder)
        self._lock = -1

    def lock(self) -> None:
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        self._lock = os.open(_LOCK, flags, 0o600, dir_fd=self.fd)
        fcntl.flock(self._lock, fcntl.LOCK_EX)

    def now_ns(self) -> int:
        """The present on the clock of the file system, as coarse as its time stamps are."""
        os.utime(self.fd)
        return os.fstat(self.fd).st_mtime_ns

    def close(self) -> None:
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
        problem = f"{STATE_DIR} in it is not the folder that sessiontree keeps there: {error.strerror}"
        raise WorkspaceError(folder.root, problem) from error


def _make(folder: Folder) -> None:
    try:
        os.mkdir(STATE_DIR, 0o700, dir_fd=folder.fd)
    except FileExistsError:
        raise
    except OSError as error:
        raise WorkspaceError(folder.root, f"cannot be written: {error.strerror}") from error
    own = os.open(STATE_DIR, _FLAGS, dir_fd=folder.fd)
    try:
        file = os.open(".gitignore", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=own)
        os.write(file, b"*\n")
        os.close(file)
    finally:
        os.close(own)
