"""File operations that fail (``FaultyFiles``) or lose what was not synced (``VolatileFiles``), for a store's ``files=``.

>>> files = FaultyFiles("sync", at=2)
>>> files.sync_folder(Path("."))
>>> files.calls["sync_folder"]
1
"""

from __future__ import annotations

import errno
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from sessiontree.stores._io import Files

__all__ = ["FaultyFiles", "FileCall", "VolatileFiles"]


FileCall = Literal[
    "open_append",
    "append",
    "write_at",
    "truncate",
    "sync",
    "sync_folder",
    "write_new",
    "make_folder",
    "replace",
    "remove",
]
"""The file operations that can be made to fail."""


class FaultyFiles(Files):
    """Real files, except that call number ``at`` of one kind fails with ``error`` (an errno).

    A failing append writes ``keep`` bytes first: a torn write. With ``is_lasting`` every later call of that kind fails
    too, like on a full disk. ``calls`` counts the calls by kind.
    """

    def __init__(
        self, kind: FileCall, at: int = 1, error: int = errno.EIO, *, keep: int = 0, is_lasting: bool = False
    ) -> None:
        self.kind = kind
        self.at = at
        self.error = error
        self.keep = keep
        self.is_lasting = is_lasting
        self.calls: Counter[str] = Counter()

    def open_append(self, path: Path) -> int:
        self._count("open_append")
        return super().open_append(path)

    def append(self, file: int, data: bytes) -> None:
        if self._is_due("append"):
            super().append(file, data[: self.keep])
            raise self._fault()
        super().append(file, data)

    def write_at(self, file: int, offset: int, data: bytes) -> None:
        self._count("write_at")
        super().write_at(file, offset, data)

    def truncate(self, file: int, size: int) -> None:
        self._count("truncate")
        super().truncate(file, size)

    def sync(self, file: int) -> None:
        self._count("sync")
        super().sync(file)

    def sync_folder(self, folder: Path) -> None:
        self._count("sync_folder")
        super().sync_folder(folder)

    def write_new(self, path: Path, data: bytes) -> None:
        self._count("write_new")
        super().write_new(path, data)

    def make_folder(self, path: Path) -> None:
        self._count("make_folder")
        super().make_folder(path)

    def replace(self, source: Path, target: Path) -> None:
        self._count("replace")
        super().replace(source, target)

    def remove(self, path: Path) -> None:
        self._count("remove")
        super().remove(path)

    def _count(self, kind: FileCall) -> None:
        if self._is_due(kind):
            raise self._fault()

    def _is_due(self, kind: FileCall) -> bool:
        self.calls[kind] += 1
        count = self.calls[kind]
        return kind == self.kind and (count == self.at or (self.is_lasting and count > self.at))

    def _fault(self) -> OSError:
        return OSError(self.error, f"{os.strerror(self.error)} (made to fail: {self.kind} number {self.at})")


class VolatileFiles(Files):
    """Real files that know what would survive a power cut.

    That is the bytes of a file as of its last sync, and the names in a folder as of the folder's last sync. ``before`` is
    called before every operation that changes the disk.
    """

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

    def write_at(self, file: int, offset: int, data: bytes) -> None:
        self.before()
        super().write_at(file, offset, data)

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
        """Write to ``target`` what a power cut would leave of ``folder`` now.

        ``cut`` returns what is left of bytes that were not synced.
        """
        target.mkdir()
        for name, inode in self._names.get(folder, {}).items():
            path = folder / name
            if path in self._names:
                self.survivors(path, target / name, cut)
            elif path.is_dir():  # its names were never synced; it may have the inode of a file that was removed
                (target / name).mkdir()
            elif inode in self._bytes:
                (target / name).write_bytes(self._left_of(path, inode, cut))

    def _left_of(self, path: Path, inode: int, cut: Callable[[bytes], bytes]) -> bytes:
        safe = self._bytes[inode]
        now = path.read_bytes() if path.exists() and path.stat().st_ino == inode else safe
        return safe + cut(now[len(safe) :]) if now.startswith(safe) else safe

    def _remember(self, file: int) -> None:
        self._bytes[os.fstat(file).st_ino] = Path(f"/dev/fd/{file}").read_bytes()
