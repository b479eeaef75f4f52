"""The gate: one exclusive lock between processes, on a side file, so that writers queue instead of starving."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from types import TracebackType
from typing import NoReturn

from sessiontree._engine.descriptor import Descriptor
from sessiontree.errors import StoreGoneError

__all__ = ["Gate"]


class Gate:
    """``with gate:`` holds the lock. Safe between processes; within one, the committer lets one writer in.

    Nobody gets in once the file or folder that it is ``of`` was deleted or replaced: what is written to a file without
    a name is lost.
    """

    def __init__(self, path: Path, *, of: Path) -> None:
        self._place = str(of)
        self._file = Descriptor(path, os.O_RDWR | os.O_CREAT)
        self._identity = _identity(self._place)

    def __enter__(self) -> None:
        try:
            fcntl.flock(self._file.number, fcntl.LOCK_EX)
            if _identity(self._place) != self._identity:
                self._refuse()
        except BaseException:
            # An interrupt may come when the lock has just been taken, and then nobody would leave the block.
            fcntl.flock(self._file.number, fcntl.LOCK_UN)
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        fcntl.flock(self._file.number, fcntl.LOCK_UN)

    def close(self) -> None:
        self._file.close()

    def _refuse(self) -> NoReturn:
        raise StoreGoneError(self._place)


def _identity(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)  # noqa: PTH116  every commit comes by here, and a Path costs more than the call
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino
