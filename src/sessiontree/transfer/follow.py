"""Follow the files of other tools: import what changes, and cost next to nothing while nothing does."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from sessiontree.journal import Journal
from sessiontree.transfer.formats import ImportReport, KnownFiles, import_changed, named

__all__ = ["Follower", "Source"]


class Source(NamedTuple):
    """A file or folder, and the format of the sessions in it; a folder with several formats has a source for each."""

    format: str
    path: Path


class Follower:
    """Finds files that have changed and are quiet again, and imports them.

    A file that is being written is left alone until two looks at it, one after the other, find the same size and time.
    A file that vanished or was cut is no reason to take anything away.
    """

    def __init__(self, journal: Journal, sources: Sequence[Source]) -> None:
        self._journal = journal
        self._formats: dict[Path, list[str]] = {}
        for name, path in sources:
            self._formats.setdefault(path, []).append(name)
        self._done: dict[Path, tuple[int, int]] = {}
        self._seen: dict[Path, tuple[int, int]] = {}
        self._known: dict[str, KnownFiles] = {}
        self._is_first = True

    def poll(self) -> Iterator[ImportReport]:
        """Look at all files once; import those that changed. The first look imports everything that is new."""
        if self._is_first:
            self._is_first = False
            self._done = {path: stamp for root in self._formats for path, stamp in _stamps(root)}
            for root in self._formats:
                yield from self._import_all(root)
            return
        for root in self._formats:
            yield from self._changes(root)

    def _changes(self, root: Path) -> Iterator[ImportReport]:
        is_changed = False
        for path, stamp in _stamps(root):
            if self._done.get(path) == stamp:
                continue
            if self._seen.get(path) != stamp:
                self._seen[path] = stamp
                continue
            self._done[path] = stamp
            del self._seen[path]
            name = next((name for name in self._formats[root] if named(name).detect(path)), None)
            if name is not None:
                yield self._import(path, name)
            else:
                is_changed = True
        if is_changed:
            yield from self._import_all(root)

    def _import_all(self, root: Path) -> Iterator[ImportReport]:
        """Import a file or folder in each of its formats; a file is read in the first one that recognises it."""
        claimed: set[Path] = set()
        if root.exists():
            yield from (self._import(root, name, claimed) for name in self._formats[root])

    def _import(self, path: Path, format_name: str, claimed: set[Path] | None = None) -> ImportReport:
        known = self._known.setdefault(format_name, KnownFiles(self._journal, format_name))
        return import_changed(self._journal, path, format_name, known, claimed)


def _stamps(root: Path) -> Iterator[tuple[Path, tuple[int, int]]]:
    """Every file of a source with its size and time; reads no file."""
    if root.is_file():
        for path in (root, root.with_name(root.name + "-wal")):
            if path.is_file():
                found = path.stat()
                yield path, (found.st_size, found.st_mtime_ns)
        return
    todo = [str(root)]
    while todo:
        try:
            with os.scandir(todo.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        todo.append(entry.path)
                    elif entry.is_file():
                        found = entry.stat()
                        yield Path(entry.path), (found.st_size, found.st_mtime_ns)
        except OSError:
            continue
