"""The only module that writes and syncs files; tests put a failing one in its place."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Literal

__all__ = ["Files", "Kind", "kind_of"]

Kind = Literal["nothing", "file", "folder", "pipe", "socket", "device"]


def kind_of(path: Path) -> Kind:
    """What is at a path, without opening it: opening a pipe waits for its other end."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return "nothing"
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISDIR(mode):
        return "folder"
    return "pipe" if stat.S_ISFIFO(mode) else "socket" if stat.S_ISSOCK(mode) else "device"


class Files:
    """Plain file work. A short write is finished or reported, never taken for a whole one."""

    def open_append(self, path: Path) -> int:
        return os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def append(self, file: int, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(file, rest) :]

    def truncate(self, file: int, size: int) -> None:
        os.ftruncate(file, size)

    def sync(self, file: int) -> None:
        os.fdatasync(file)

    def sync_folder(self, folder: Path) -> None:
        """Make created and renamed names in a folder durable."""
        file = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(file)
        finally:
            os.close(file)

    def write_new(self, path: Path, data: bytes) -> None:
        """Write a file that must not exist yet, durably."""
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            self.append(file, data)
            self.sync(file)
        finally:
            os.close(file)

    def put(self, path: Path, data: bytes) -> None:
        """Give a file this content, durably; a crash leaves the old content or the new one."""
        fresh = path.with_name(path.name + ".new")
        fresh.unlink(missing_ok=True)
        self.write_new(fresh, data)
        self.replace(fresh, path)

    def make_folder(self, path: Path) -> None:
        """Make a folder that only its owner can enter, durably; one that exists stays as it is."""
        try:
            path.mkdir(mode=0o700)
        except FileExistsError:
            return
        self.sync_folder(path.parent)

    def replace(self, source: Path, target: Path) -> None:
        """Put a finished file in the place of another one, durably."""
        os.replace(source, target)
        self.sync_folder(target.parent)

    def remove(self, path: Path) -> None:
        path.unlink()
        self.sync_folder(path.parent)
