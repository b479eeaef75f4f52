"""JSON documents in files and in zip archives, within limits: an archive must not fill the memory."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from sessiontree.transfer.formats._records import Tally
from sessiontree.transfer.formats._transcript import UNREADABLE_ARCHIVE, whole_json
from sessiontree.transfer.formats._wire import parse

__all__ = ["LARGEST_MEMBER", "documents"]


LARGEST_MEMBER = 2 * 1024**3
_FREE_BYTES = 64 * 1024**2
_MOST_EXPANSION = 200


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
        if len(body) > limit:
            tally.note("damage", place, f"it expands to more than {limit} bytes, which is refused")
            return None
        return parse(body)
    except UNREADABLE_ARCHIVE as error:
        tally.note("damage", place, f"the file cannot be read: {error}")
        return None
