"""JSON documents in files and in zip archives, within limits: an archive must not fill the memory."""

from __future__ import annotations

import zipfile
from bisect import bisect_left
from collections.abc import Iterator
from contextlib import suppress
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, Self

from sessiontree.transfer.formats._files import BOM
from sessiontree.transfer.formats._head import UNREADABLE_ARCHIVE
from sessiontree.transfer.formats._records import Tally
from sessiontree.transfer.formats._transcript import document, whole_json

__all__ = ["LARGEST_ASSET", "LARGEST_MEMBER", "Assets", "documents"]


LARGEST_MEMBER = 2 * 1024**3
LARGEST_ASSET = 64 * 1024**2
_MOST_ASSETS = 100_000
_FREE_BYTES = 64 * 1024**2
_MOST_EXPANSION = 200


class Assets:
    """The pictures and files beside a document: in the same archive, or in the same folder.

    An asset is found by its name, or by the beginning of it that ends before a dot, a dash or an underscore.
    """

    def __init__(self, path: Path) -> None:
        self._folder = path.parent
        self._archive: zipfile.ZipFile | None = None
        with suppress(*UNREADABLE_ARCHIVE):
            self._archive = zipfile.ZipFile(path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._archive is not None:
            self._archive.close()

    def read(self, name: str) -> tuple[str, bytes] | None:
        """The whole name and the content of an asset; ``None`` if it is not there, or too large."""
        found = self._find(name)
        if found is None:
            return None
        try:
            place = self._places[found]
            with self._archive.open(place) if self._archive else (self._folder / place).open("rb") as file:
                body = file.read(LARGEST_ASSET + 1)
        except UNREADABLE_ARCHIVE:
            return None
        return (found, body) if len(body) <= LARGEST_ASSET else None

    def _find(self, name: str) -> str | None:
        if not name or name in self._places:
            return name or None
        for start in (f"{name}.", f"{name}-", f"{name}_"):
            at = bisect_left(self._names, start)
            if at < len(self._names) and self._names[at].startswith(start):
                return self._names[at]
        return None

    @cached_property
    def _names(self) -> list[str]:
        return sorted(self._places)

    @cached_property
    def _places(self) -> dict[str, str]:
        """Where each file is, by its name without folders."""
        if self._archive is not None:
            return {name.rpartition("/")[2]: name for name in self._archive.namelist() if not name.endswith("/")}
        found = (path for path in self._folder.rglob("*") if path.is_file() and not path.is_symlink())
        return {path.name: str(path.relative_to(self._folder)) for path in islice(found, _MOST_ASSETS)}


def documents(path: Path, stem: str, tally: Tally) -> Iterator[tuple[Path, Any]]:
    """The JSON document of a file, or those of an archive whose names begin with ``stem``."""
    if not zipfile.is_zipfile(path):
        yield path, whole_json(path, tally)
        return
    with suppress(OSError), zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            name = member.filename.rpartition("/")[2]
            if name.startswith(stem) and name.endswith(".json"):
                found = _member(archive, member, f"{path}, {member.filename}", tally)
                if found is not None:
                    yield path, found
    tally.advance(path.stat().st_size)


def _member(archive: zipfile.ZipFile, member: zipfile.ZipInfo, place: str, tally: Tally) -> Any:
    limit = min(LARGEST_MEMBER, max(_FREE_BYTES, member.compress_size * _MOST_EXPANSION))
    try:
        with archive.open(member) as file:
            body = file.read(limit + 1)
    except UNREADABLE_ARCHIVE as error:
        tally.note("damage", place, f"the file cannot be read: {error}")
        return None
    if len(body) > limit:
        tally.note("damage", place, f"it expands to more than {limit} bytes, which is refused")
        return None
    return document(body.removeprefix(BOM), place, tally)
