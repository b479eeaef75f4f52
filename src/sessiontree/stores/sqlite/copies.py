"""Notice a store file that was copied without the files beside it.

A store that was opened once has a lock file, ``…-gate``. A file without one, and without a log, was moved or copied here
alone: if it was in use at that time, what was in its log is missing. SQLite cannot tell, so the lock file says so.
"""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["forget_copy", "is_noted_copy", "note_copy"]


_NOTE = b"The store was opened without its lock file and its log.\n"


def note_copy(path: Path) -> None:
    """Create the lock file with a note if a store has neither it nor a log. Called before the store is opened."""
    gate = path.with_name(path.name + "-gate")
    if gate.exists() or path.with_name(path.name + "-wal").exists():
        return
    try:
        file = os.open(gate, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except OSError:
        return  # another process was first, or the open fails anyway
    try:
        os.write(file, _NOTE)
    finally:
        os.close(file)


def is_noted_copy(path: Path) -> bool:
    """Return whether the file looks like a copy without its log."""
    try:
        return path.with_name(path.name + "-gate").read_bytes() == _NOTE
    except OSError:
        return False


def forget_copy(path: Path) -> None:
    """Remove the note."""
    if is_noted_copy(path):
        os.truncate(path.with_name(path.name + "-gate"), 0)
