"""Room in SQLite's log before it is needed.

A flush that makes a file longer takes about twice the time of one that writes over what is there, and the log of a
store that was just opened grows with every commit. So it is made longer by zeros, in few and large steps. SQLite reads
its log up to the first frame that does not fit the ones before it, and zeros never do.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from sessiontree._engine.descriptor import Descriptor
from sessiontree.errors import StoreGoneError

__all__ = ["LogRoom"]

_STEP = 64 * 1024
_LARGEST_ROOM = 1024 * 1024


class LogRoom:
    """Used inside a write transaction only: then the log is there, and nobody else makes it longer or shorter."""

    def __init__(self, store: Path) -> None:
        self._place = str(store)
        self._log = store.with_name(store.name + "-wal")
        self._file: Descriptor | None = None

    def make(self) -> None:
        """A length that is no whole number of steps is one that frames have reached."""
        if self._file is None:
            self._file = self._open()
        # Not fstat: a file whose times somebody looked at gets new ones with the next write, and the flush waits.
        size = os.lseek(self._file.number, 0, os.SEEK_END)
        if size % _STEP:
            self._stretch(self._file.number, size)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()

    def _open(self) -> Descriptor:
        try:
            return Descriptor(self._log, os.O_RDWR)
        except FileNotFoundError:
            raise StoreGoneError(self._place) from None

    def _stretch(self, file: int, size: int) -> None:
        end = size + min(size, _LARGEST_ROOM)
        end += -end % _STEP
        # A disk without room for zeros may have some for the commit; if not, SQLite says so.
        with suppress(OSError):
            os.pwrite(file, bytes(end - size), size)
