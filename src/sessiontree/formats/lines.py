"""Reading files of lines: with the place of each line, whatever is in them, and never more than one in memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

from sessiontree.formats.report import Tally

__all__ = ["Line", "lines_of", "size_of"]

LONGEST_LINE = 256 * 1024 * 1024
_TELL_EVERY = 64 * 1024
_BLANK = (b"\n", b"\r\n", b"\r")


class Line(NamedTuple):
    """``body`` is without the line break; ``is_ended`` tells whether there was one."""

    body: bytes
    offset: int
    is_ended: bool


def lines_of(path: Path, tally: Tally, *, longest: int = LONGEST_LINE) -> Iterator[Line]:
    """The lines of a file that are not empty. One longer than ``longest`` is noted as damage and skipped."""
    offset = told = 0
    blank = 0
    with path.open("rb") as file:
        while body := file.readline(longest):
            start, size = offset, len(body)
            offset += size
            if offset - told >= _TELL_EVERY:
                tally.advance(offset - told)
                told = offset
            if body in _BLANK:
                blank += 1
            elif body.endswith(b"\n"):
                yield Line(body[:-1], start, True)
            elif size < longest:
                yield Line(body, start, False)
            else:
                offset += _skip_line(file, longest)
                size = offset - start
                tally.note("damage", str(path), f"a line of {size} bytes is too long", offset=start, size=size)
    tally.advance(offset - told)
    if blank:
        tally.note("repair", str(path), f"{blank} empty lines are left out")


def _skip_line(file: BinaryIO, most: int) -> int:
    """Go to the next line; how many bytes that were."""
    skipped = 0
    while body := file.readline(most):
        skipped += len(body)
        if body.endswith(b"\n"):
            break
    return skipped


def size_of(*paths: Path) -> int:
    """Bytes in files; what is not there counts nothing."""
    return sum(path.stat().st_size for path in paths if path.is_file())
