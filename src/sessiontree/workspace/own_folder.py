"""The workspace's own folder inside the root: on the same file system, so that a rename is all a restore needs."""

from __future__ import annotations

import contextlib
import fcntl
import os

from sessiontree.errors import WorkspaceError
from sessiontree.workspace.safe_paths import Folder
from sessiontree.workspace.settings import OWN_FOLDER

__all__ = ["OwnFolder"]

_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_LOCK = "lock"


class OwnFolder:
    """Open while something works on the root; ``lock`` lets one at a time in, over all processes."""

    def __init__(self, folder: Folder) -> None:
        self.fd = _opened(folder)
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


def _opened(folder: Folder) -> int:
    with contextlib.suppress(FileExistsError):
        _make(folder)
    try:
        return os.open(OWN_FOLDER, _FLAGS, dir_fd=folder.fd)
    except OSError as error:
        problem = f"{OWN_FOLDER} in it is not the folder that sessiontree keeps there: {error.strerror}"
        raise WorkspaceError(folder.root, problem) from error


def _make(folder: Folder) -> None:
    try:
        os.mkdir(OWN_FOLDER, 0o700, dir_fd=folder.fd)
    except FileExistsError:
        raise
    except OSError as error:
        raise WorkspaceError(folder.root, f"cannot be written: {error.strerror}") from error
    own = os.open(OWN_FOLDER, _FLAGS, dir_fd=folder.fd)
    try:
        file = os.open(".gitignore", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=own)
        os.write(file, b"*\n")
        os.close(file)
    finally:
        os.close(own)
