"""Reading files: line by line with the place of each, whatever is in them and whatever stands in their place."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, NamedTuple

from sessiontree.formats.report import Tally

__all__ = ["Line", "head_of", "lines_of", "lines_starting", "modified_ns", "plain_files", "size_of", "whole_of"]

LONGEST_LINE = 256 * 1024 * 1024
_TELL_EVERY = 64 * 1024
_BUFFER = 64 * 1024
_BLANK = (b"\n", b"\r\n", b"\r")


class Line(NamedTuple):
    """``body`` is without the line break; ``is_ended`` tells whether there was one."""

    body: bytes
    offset: int
    is_ended: bool


def lines_of(path: Path, tally: Tally, *, longest: int = LONGEST_LINE) -> Iterator[Line]:
    """The lines of a file that are not empty. One longer than ``longest`` is noted as damage and skipped.

    Where the disk gives no more, that is noted, and the lines end.
    """
    try:
        yield from _lines(path, tally, longest)
    except OSError as error:
        tally.note("damage", str(path), f"the file cannot be read on: {error}")


def _lines(path: Path, tally: Tally, longest: int) -> Iterator[Line]:
    offset = told = 0
    blank = 0
    with path.open("rb", buffering=_BUFFER) as file:
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


def lines_starting(path: Path, prefix: bytes) -> Iterator[bytes]:
    """The lines that begin so; the others, and a file that cannot be read, are passed over without a word."""
    with suppress(OSError), path.open("rb", buffering=_BUFFER) as file:
        while body := file.readline(LONGEST_LINE):
            if len(body) == LONGEST_LINE and not body.endswith(b"\n"):
                _skip_line(file, LONGEST_LINE)
            elif body.startswith(prefix):
                yield body.removesuffix(b"\n")


def _skip_line(file: BinaryIO, most: int) -> int:
    """Go to the next line; how many bytes that were."""
    skipped = 0
    while body := file.readline(most):
        skipped += len(body)
        if body.endswith(b"\n"):
            break
    return skipped


def plain_files(folder: Path, pattern: str, tally: Tally | None = None) -> list[Path]:
    """The files of a folder by name. A folder, a pipe or a dead link of such a name is noted, and never opened."""
    plain: list[Path] = []
    for path in sorted(folder.glob(pattern)):
        if path.is_file():
            plain.append(path)
        elif tally is not None:
            tally.note("damage", str(path), "is no file that can be read; it is left out")
    return plain


def whole_of(path: Path, tally: Tally) -> bytes | None:
    """A whole file; ``None`` where there is none, or where it cannot be read, which is noted."""
    try:
        if path.is_file():
            return path.read_bytes()
        problem = "is no file that can be read" if path.is_symlink() or path.exists() else ""
    except OSError as error:
        problem = f"the file cannot be read: {error}"
    if problem:
        tally.note("damage", str(path), problem)
    return None


def head_of(path: Path, size: int) -> bytes:
    """The beginning of a file; nothing of what is no file or cannot be read."""
    try:
        if not path.is_file():
            return b""
        with path.open("rb") as file:
            return file.read(size)
    except OSError:
        return b""


def modified_ns(*paths: Path) -> int:
    """When the newest of some files was written; 0 if there is none."""
    return max((path.stat().st_mtime_ns for path in paths if path.is_file()), default=0)


def size_of(*paths: Path) -> int:
    """Bytes in files; what is not there counts nothing."""
    return sum(path.stat().st_size for path in paths if path.is_file())
