"""Reading files of lines: with the place of each line, whatever is in them, and never more than one in memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from sessiontree.formats.report import Tally

__all__ = ["Line", "lines_of", "size_of"]

LONGEST_LINE = 256 * 1024 * 1024


class Line(NamedTuple):
    """``body`` is without the line break; ``is_ended`` tells whether there was one."""

    body: bytes
    offset: int
    is_ended: bool


def lines_of(path: Path, tally: Tally, *, longest: int = LONGEST_LINE) -> Iterator[Line]:
    """The lines of a file. One that is longer than ``longest`` is noted as damage and skipped."""
    offset = 0
    with path.open("rb") as file:
        while body := file.readline(longest):
            size = len(body)
            tally.advance(size)
            if body.endswith(b"\n"):
                yield Line(body[:-1], offset, is_ended=True)
            elif size < longest:
                yield Line(body, offset, is_ended=False)
            else:
                while body and not body.endswith(b"\n"):
                    body = file.readline(longest)
                    size += len(body)
                    tally.advance(len(body))
                tally.note("damage", str(path), f"a line of {size} bytes is too long", offset=offset, size=size)
            offset += size


def size_of(*paths: Path) -> int:
    """Bytes in files; what is not there counts nothing."""
    return sum(path.stat().st_size for path in paths if path.is_file())
