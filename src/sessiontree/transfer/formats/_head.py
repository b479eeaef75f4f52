"""The beginning of a file, by which its format is recognised."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator
from functools import cached_property, lru_cache
from itertools import islice
from pathlib import Path

from sessiontree.transfer.formats import _go
from sessiontree.transfer.formats._files import Line, head_of, size_of
from sessiontree.transfer.formats._wire import Json, parse

__all__ = ["UNREADABLE_ARCHIVE", "Head", "head", "is_wholly_broken", "records_of_line"]


_HEAD_BYTES = 64 * 1024
_HEAD_RECORDS = 40
_LONGEST_FIRST_LINE = 16 * 1024 * 1024


class Head:
    """The beginning of a file."""

    def __init__(self, path: Path, data: bytes) -> None:
        self.path = path
        self.data = data

    @property
    def lines(self) -> Iterator[bytes]:
        """The first lines that are whole and not empty."""
        lines = self.data.split(b"\n")
        whole = lines if len(self.data) < _HEAD_BYTES else lines[:-1]
        return islice((line for line in whole if line.strip()), _HEAD_RECORDS)

    @cached_property
    def records(self) -> list[Json]:
        """The JSON objects of the first lines; empty if the file does not have one to a line."""
        return [record for line in self.lines for record in _records(line)]

    @property
    def is_json(self) -> bool:
        """Whether it begins as a JSON object or array."""
        return self.data.lstrip()[:1] in (b"{", b"[")

    @property
    def is_zip(self) -> bool:
        """Whether it is a zip archive."""
        return self.data.startswith(b"PK\x03\x04")

    def members(self, stem: str) -> list[bytes]:
        """The beginnings of the files in an archive whose names begin with ``stem``."""
        try:
            with zipfile.ZipFile(self.path) as archive:
                names = [name for name in archive.namelist() if name.rpartition("/")[2].startswith(stem)]
                return [_start(archive, name) for name in names[:_HEAD_RECORDS]]
        except UNREADABLE_ARCHIVE:
            return []

    def has(self, *names: str) -> bool:
        """Whether all the names stand in it as keys of JSON objects, or as values."""
        return all(f'"{name}"'.encode() in self.data for name in names)


UNREADABLE_ARCHIVE = (OSError, zipfile.BadZipFile, RuntimeError, NotImplementedError, EOFError, ValueError, zlib.error)
"""What reading a damaged zip archive may raise."""


def _start(archive: zipfile.ZipFile, name: str) -> bytes:
    with archive.open(name) as file:
        return file.read(_HEAD_BYTES)


def _records(line: bytes) -> list[Json]:
    try:
        found = [parse(line)]
    except _go.JsonError:
        found = [value for value, _ in records_of_line(Line(line, 0, True))]
    return [value for value in found if isinstance(value, dict)]


def _is_json(line: bytes) -> bool:
    try:
        parse(line)
    except _go.JsonError:
        return bool(records_of_line(Line(line, 0, True)))
    return True


@lru_cache(maxsize=4096)
def _cached_head(path: Path, _stamp: tuple[int, int]) -> Head:
    data = head_of(path, _HEAD_BYTES)
    if len(data) == _HEAD_BYTES and b"\n" not in data and ".jsonl" in path.suffixes:
        data = head_of(path, _LONGEST_FIRST_LINE)
    return Head(path, data)


def head(path: Path) -> Head:
    """The beginning of a file; empty if it cannot be read."""
    try:
        found = path.stat()
    except OSError:
        return Head(path, b"")
    return _cached_head(path, (found.st_size, found.st_mtime_ns))


def is_wholly_broken(path: Path) -> bool:
    """Whether a log has something in it, but at its beginning nothing that can be read."""
    found = head(path)
    is_damaged_archive = path.suffix == ".zst" and not found.data and size_of(path) > 0
    return is_damaged_archive or (bool(found.data.strip()) and not any(map(_is_json, found.lines)))


def records_of_line(line: Line) -> list[tuple[Json, Line]]:
    """The records of a line that holds more than one; empty if it is broken."""
    if b"}{" not in line.body.replace(b" ", b""):
        return []
    try:
        bodies = list(_go.values_in(line.body))
        values = [parse(body) for body in bodies]
    except _go.JsonError:
        return []
    return [
        (value, line._replace(body=body, checksum=None))
        for value, body in zip(values, bodies, strict=True)
        if isinstance(value, dict)
    ]
