"""The files of a store as they were at one moment: what a store gives to a backup."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Literal

from sessiontree.model._base import Progress, Record

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Snapshot", "SnapshotFile", "SnapshotKind", "SnapshotOutdatedError", "SnapshotRequest"]


SnapshotKind = Literal["sqlite", "jsonl"]
"""The kind of store that the files are."""


class SnapshotOutdatedError(Exception):
    """A file was replaced since the snapshot was taken: take another one."""


class SnapshotRequest(Record, frozen=True, kw_only=True):
    """How to take a snapshot.

    ``scratch`` is an empty folder for temporary copies. ``known`` are the stamps of files that need not be read again.
    With ``is_copied``, files that may be replaced are copied to ``scratch`` while writers wait.
    """

    scratch: Path
    known: Mapping[str, str]
    is_copied: bool = False
    progress: Progress | None = None


class SnapshotFile(Record, frozen=True, kw_only=True):
    """A file of a store.

    ``stamp`` differs if the content differs, as far as the file system can tell; "" if it cannot. ``read`` yields the
    content in parts, and raises SnapshotOutdatedError if it is gone.
    """

    name: str
    size: int
    read: Callable[[], Iterator[bytes]]
    stamp: str = ""


class Snapshot(Record, frozen=True, kw_only=True):
    """All files of a store that a backup needs."""

    kind: SnapshotKind
    place: str
    files: tuple[SnapshotFile, ...]
    copied: int = 0
    """How many bytes were copied to the scratch folder; they count as progress."""

    @property
    def size(self) -> int:
        """How many bytes the files have."""
        return sum(file.size for file in self.files)
