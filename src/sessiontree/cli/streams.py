"""The standard streams, which may be closed, full, or of an encoding that cannot represent a character."""

from __future__ import annotations

import io
import os
import sys

__all__ = ["prepare_streams"]


def prepare_streams() -> None:
    """Make the standard streams safe to use.

    Files and pipes are read and written as UTF-8; a terminal shows what its encoding can. A closed stream is replaced,
    so that its descriptor is not reused for a file of the store.
    """
    if sys.stdin is None:
        sys.stdin = _opened(os.O_RDONLY, "r")
    if sys.stdout is None:
        # Opened for reading only: writing data to a closed stdout must fail.
        sys.stdout = _opened(os.O_RDONLY, "w")
    if sys.stderr is None:
        sys.stderr = _opened(os.O_WRONLY, "w")
    for stream in (sys.stdin, sys.stdout):
        if isinstance(stream, io.TextIOWrapper):
            if stream.isatty():
                stream.reconfigure(errors="replace")
            else:
                stream.reconfigure(encoding="utf-8", errors="strict")
    sys.stderr = _Messages(io.FileIO(sys.stderr.fileno(), "w", closefd=False), sys.stderr.encoding)


def _opened(flags: int, mode: str) -> io.TextIOWrapper:
    return open(os.open(os.devnull, flags), mode, encoding="utf-8", closefd=False)  # type: ignore[return-value]


class _Messages(io.TextIOWrapper):
    """The stream for messages. One that cannot be written is dropped: the work it reports is done."""

    def __init__(self, raw: io.FileIO, encoding: str) -> None:
        super().__init__(raw, encoding, errors="backslashreplace", write_through=True)

    def write(self, text: str, /) -> int:
        try:
            return super().write(text)
        except OSError:
            return len(text)

    def flush(self) -> None:
        """Do nothing: the stream is not buffered."""
