"""The three streams, whatever they were started with: closed, full, or of an encoding that lacks a letter."""

from __future__ import annotations

import io
import os
import sys

__all__ = ["prepare_streams"]


def prepare_streams() -> None:
    """Data in files and pipes is UTF-8, a terminal shows what its encoding can; a closed stream never hands its number
    to a file of the store."""
    if sys.stdin is None:
        sys.stdin = _opened(os.O_RDONLY, "r")
    if sys.stdout is None:
        # Open for reading alone: whoever wanted the data learns that it could not be written.
        sys.stdout = _opened(os.O_RDONLY, "w")
    if sys.stderr is None:
        sys.stderr = _opened(os.O_WRONLY, "w")
    for stream in (sys.stdin, sys.stdout):
        if isinstance(stream, io.TextIOWrapper):
            if stream.isatty():
                stream.reconfigure(errors="replace")
            else:
                stream.reconfigure(encoding="utf-8", errors="strict")
    sys.stderr = _Remarks(io.FileIO(sys.stderr.fileno(), "w", closefd=False), sys.stderr.encoding)


def _opened(flags: int, mode: str) -> io.TextIOWrapper:
    return open(os.open(os.devnull, flags), mode, encoding="utf-8", closefd=False)  # type: ignore[return-value]


class _Remarks(io.TextIOWrapper):
    """A remark that nobody can take is no reason to fail: the work it speaks of is done."""

    def __init__(self, raw: io.FileIO, encoding: str) -> None:
        super().__init__(raw, encoding, errors="backslashreplace", write_through=True)

    def write(self, text: str, /) -> int:
        try:
            return super().write(text)
        except OSError:
            return len(text)

    def flush(self) -> None:
        """Nothing is held back."""
