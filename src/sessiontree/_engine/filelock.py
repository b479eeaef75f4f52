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
        found = of.stat()
        self._number, self._device = found.st_ino, found.st_dev

    def __enter__(self) -> None:
        try:
            fcntl.flock(self._file.number, fcntl.LOCK_EX)
            found = os.stat(self._place)  # noqa: PTH116  every commit comes by, and a Path costs more than the call
            if found.st_ino != self._number or found.st_dev != self._device:
                self._refuse()
        except FileNotFoundError:
            fcntl.flock(self._file.number, fcntl.LOCK_UN)
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
        raise StoreGoneError(self._place) from None
