"""Files on a disk with a cache: what was not synced may be gone after a power cut.

The real files are what a running program sees. Beside them it is remembered what would survive: the bytes of a file
as of its last sync, and the names in a folder as of the folder's last sync.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from sessiontree._engine.fs import Files

__all__ = ["VolatileFiles"]


class VolatileFiles(Files):
    """Give it to a store as its ``files``; ``before`` is called ahead of every step that changes the disk."""

    def __init__(self, before: Callable[[], None] = lambda: None) -> None:
        self.before = before
        self._bytes: dict[int, bytes] = {}
        self._names: dict[Path, dict[str, int]] = {}

    def open_append(self, path: Path) -> int:
        is_new = not path.exists()
        if is_new:
            self.before()
        file = super().open_append(path)
        if is_new:
            self._bytes[os.fstat(file).st_ino] = b""
        return file

    def append(self, file: int, data: bytes) -> None:
        self.before()
        super().append(file, data)

    def truncate(self, file: int, size: int) -> None:
        self.before()
        super().truncate(file, size)

    def sync(self, file: int) -> None:
        self.before()
        super().sync(file)
        self._remember(file)

    def sync_folder(self, folder: Path) -> None:
        self.before()
        super().sync_folder(folder)
        self._names[folder] = {path.name: path.stat().st_ino for path in folder.iterdir()}

    def write_new(self, path: Path, data: bytes) -> None:
        self.before()
        super().write_new(path, data)
        self._bytes[path.stat().st_ino] = data

    def survivors(self, folder: Path, target: Path, cut: Callable[[bytes], bytes]) -> None:
        """Write what a power cut now would leave of ``folder``; ``cut`` says what is left of bytes not yet synced."""
        target.mkdir()
        for name, inode in self._names.get(folder, {}).items():
            path = folder / name
            if path in self._names:
                self.survivors(path, target / name, cut)
            elif inode in self._bytes:
                (target / name).write_bytes(self._left_of(path, inode, cut))

    def _left_of(self, path: Path, inode: int, cut: Callable[[bytes], bytes]) -> bytes:
        safe = self._bytes[inode]
        now = path.read_bytes() if path.exists() and path.stat().st_ino == inode else safe
        return safe + cut(now[len(safe) :]) if now.startswith(safe) else safe

    def _remember(self, file: int) -> None:
        self._bytes[os.fstat(file).st_ino] = Path(f"/dev/fd/{file}").read_bytes()
