"""The size of the terminal."""

from __future__ import annotations

import os
import sys

__all__ = ["terminal_size"]


_IN_A_PIPE = (80, 24)


def terminal_size() -> os.terminal_size:
    """Return columns and rows; COLUMNS and LINES win over the terminal.

    ``shutil.get_terminal_size`` does the same, but loading shutil loads every kind of compression with it.
    """
    columns, lines = _from_environment("COLUMNS"), _from_environment("LINES")
    if not (columns and lines):
        shown = _of_stdout()
        columns, lines = columns or shown[0], lines or shown[1]
    return os.terminal_size((columns, lines))


def _from_environment(name: str) -> int:
    value = os.environ.get(name, "")
    return int(value) if value.isdecimal() else 0


def _of_stdout() -> tuple[int, int]:
    """A terminal may say that it has no columns, and stdout may be closed or replaced."""
    try:
        columns, lines = os.get_terminal_size(sys.__stdout__.fileno())  # type: ignore[union-attr]
    except (AttributeError, ValueError, OSError):
        return _IN_A_PIPE
    return columns or _IN_A_PIPE[0], lines or _IN_A_PIPE[1]
