"""The gate: one exclusive lock between processes, on a side file, so that writers queue instead of starving."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from types import TracebackType

__all__ = ["Gate"]


class Gate:
    """``with gate:`` holds the lock. Safe between processes; within one, the committer lets one writer in."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def __enter__(self) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX)
        except BaseException:
            # An interrupt may come when the lock has just been taken, and then nobody would leave the block.
            fcntl.flock(self._file, fcntl.LOCK_UN)
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        fcntl.flock(self._file, fcntl.LOCK_UN)

    def close(self) -> None:
        os.close(self._file)
