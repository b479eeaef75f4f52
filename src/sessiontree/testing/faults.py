"""Files that fail when a test says so, for the ``files=`` of a store that writes files.

>>> files = FaultyFiles("sync", at=2)
>>> files.sync_folder(Path("."))
>>> files.calls["sync_folder"]
1
"""

from __future__ import annotations

import errno
import os
from collections import Counter
from pathlib import Path
from typing import Literal

from sessiontree._engine.fs import Files

__all__ = ["FaultyFiles", "FileCall"]

FileCall = Literal[
    "open_append", "append", "truncate", "sync", "sync_folder", "write_new", "make_folder", "replace", "remove"
]
"""The kinds of file work that can be made to fail."""


class FaultyFiles(Files):
    """Real files, except that call number ``at`` of one kind fails with ``error`` (an errno).

    ``keep`` bytes of a failing append reach the file first: a torn write. ``is_lasting`` makes every later call of
    that kind fail as well, like a disk that stays full. ``calls`` counts the calls by kind.
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
