"""An open file that is closed once, also by nobody."""

from __future__ import annotations

import os
import weakref

__all__ = ["Descriptor"]


class Descriptor:
    """``number`` is for system calls. Where an interrupt kept the owner from closing it, it goes with its owner."""

    def __init__(self, path: str | os.PathLike[str], flags: int) -> None:
        self.number = os.open(path, flags | os.O_CLOEXEC, 0o600)
        self._closer = weakref.finalize(self, os.close, self.number)
        # At the end of the process a thread may still write, and the system closes everything anyway.
        self._closer.atexit = False

    def close(self) -> None:
        self._closer()
