"""Which files were imported already, and where to go on reading a log that has grown since.

A log that only grew is read from a place near its old end, if the checksum of what stands before it is still the same.
What its reader knew there is kept as a document, one for each thread: ids and numbers, no words of the conversation. A
record that refers to something older raises LooksBackError, and then the log is read from its beginning.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from sessiontree.model import Record, Thread, convert

if TYPE_CHECKING:
    from sessiontree.journal import Journal

__all__ = ["SCOPE", "UNFINISHED", "KnownFiles", "LooksBackError", "ResumePoint", "is_unchanged_before", "save_point"]


UNFINISHED = "unfinished"
"""Key in a thread's origin while an import runs: the leaf before the import. An interrupted import leaves it there."""

SCOPE = "sessiontree/imports"
"""Scope of the documents that hold the points."""
_BLOCK = 1024 * 1024


class LooksBackError(Exception):
    """A record refers to something before the place where reading went on; the file must be read as a whole."""


class ResumePoint(Record, frozen=True, kw_only=True):
    """A place in a log: its offset, the checksum of what stands before it, what was known there.

    ``marks`` are those of the file when it was imported. ``recorder`` and ``reader`` are the state of both.
    """

    session: str
    offset: int
    checksum: int
    marks: list[list[int]]
    recorder: dict[str, Any]
    reader: dict[str, Any]


class _KnownFile(NamedTuple):
    thread_id: str
    marks: list[list[int]]
    damage: list[tuple[int, int, str, str]]


class KnownFiles:
    """The files of a format that were imported, with what tells whether they have changed since."""

    def __init__(self, journal: Journal, format_name: str, prefix: str = "") -> None:
        self._journal = journal
        self._format = format_name
        self._prefix = prefix
        self._files: dict[str, _KnownFile] | None = None

    def is_unchanged(self, stamp: Mapping[str, Any]) -> bool:
        """Whether a file is as it was when it was imported."""
        known = self._known.get(stamp["path"])
        return known is not None and bool(known.marks == stamp["marks"])

    def damage(self, stamp: Mapping[str, Any]) -> list[tuple[int, int, str, str]]:
        """What could not be read in a file: offsets, sizes, problems and places."""
        known = self._known.get(stamp["path"])
        return [] if known is None else known.damage

    def point(self, stamp: Mapping[str, Any]) -> ResumePoint | None:
        """Where to go on with a file that was imported before."""
        known = self._known.get(stamp["path"])
        found = self._journal.documents.get(SCOPE, known.thread_id) if known is not None else None
        if known is None or found is None:
            return None
        try:
            point = convert(found.value, ResumePoint)
        except msgspec.ValidationError:
            return None
        return point if point.marks == known.marks else None

    def refresh(self, thread_ids: Iterable[str]) -> None:
        """Learn about threads that were imported meanwhile."""
        for thread_id in thread_ids if self._files is not None else ():
            self._learn(self._journal.thread(thread_id))

    @property
    def _known(self) -> dict[str, _KnownFile]:
        if self._files is None:
            self._files = {}
            for thread in self._journal.iter_threads(is_archived=None, order="created", limit=1000):
                self._learn(thread)
        return self._files

    def _learn(self, thread: Thread) -> None:
        origin = thread.origin
        is_whole = origin.get("format") == self._format and UNFINISHED not in origin
        if is_whole and "file" in origin and thread.id == self._prefix + str(origin.get("session")):
            assert self._files is not None
            copies = {one["path"]: one for one in origin.get("copies", ())}
            damage: list[tuple[int, int, str, str]] = [tuple(one) for one in origin.get("damaged", ())]
            for path, copy in copies.items():
                found = [one for one in damage if one[3] == path]
                self._files[path] = _KnownFile(thread.id, copy["marks"], found)
            found = [one for one in damage if one[3] not in copies]
            self._files[origin["file"]["path"]] = _KnownFile(thread.id, origin["file"]["marks"], found)


def save_point(journal: Journal, thread_id: str, point: ResumePoint) -> None:
    """Keep a place to go on from. Called when everything before it is in the journal."""
    journal.documents.put(SCOPE, thread_id, msgspec.to_builtins(point))


def is_unchanged_before(path: Path, point: ResumePoint) -> bool:
    """Whether a file still begins with the same bytes up to a point. Reading them takes a fraction of parsing them."""
    left, checksum = point.offset, 0
    try:
        with path.open("rb", buffering=0) as file:
            while left:
                block = file.read(min(left, _BLOCK))
                if not block:
                    return False
                checksum = zlib.crc32(block, checksum)
                left -= len(block)
    except OSError:
        return False
    return checksum == point.checksum
