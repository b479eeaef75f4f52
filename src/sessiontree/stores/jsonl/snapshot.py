"""The files of a JSONL store at one moment.

Tree files only grow, except that deletes and erasures replace them. So it is enough to note the name, size and inode of
every file while writers wait, and to read that much of it afterwards: what was replaced meanwhile has another inode.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from sessiontree.stores.backup.manifest import FILE_NAME
from sessiontree.stores.backup.snapshot import Snapshot, SnapshotFile, SnapshotOutdatedError, SnapshotRequest
from sessiontree.stores.jsonl.layout import Layout

__all__ = ["take_snapshot"]


_READ_BYTES = 1 << 20
_TEMPORARY = ".new"


def take_snapshot(layout: Layout, request: SnapshotRequest) -> Snapshot:
    """List the files. The caller keeps writers out."""
    names = {path.relative_to(layout.folder).as_posix(): path for path in _paths(layout)}
    files = [_file(name, path, request) for name, path in names.items() if FILE_NAME.fullmatch(name)]
    return Snapshot(kind="jsonl", place=str(layout.folder), files=tuple(files))


def _paths(layout: Layout) -> Iterator[Path]:
    """The files that make up the store: no lock, no log, and no index, which can be built again."""
    yield layout.marker
    for folder in (layout.trees, layout.forks, layout.blobs, layout.torn, layout.erasing, layout.documents):
        for place, folders, names in os.walk(folder):
            folders.sort()
            yield from (Path(place) / name for name in sorted(names) if not name.endswith(_TEMPORARY))


def _file(name: str, path: Path, request: SnapshotRequest) -> SnapshotFile:
    found = path.stat()
    stamp = f"{found.st_ino}-{found.st_size}-{found.st_mtime_ns}"
    if request.is_copied and request.known.get(name) != stamp:
        copy = request.scratch / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        path = Path(shutil.copyfile(path, copy))
        return SnapshotFile(name=name, size=found.st_size, stamp=stamp, read=_reader(path, path.stat()))
    return SnapshotFile(name=name, size=found.st_size, stamp=stamp, read=_reader(path, found))


def _reader(path: Path, expected: os.stat_result) -> Callable[[], Iterator[bytes]]:
    def read() -> Iterator[bytes]:
        try:
            with path.open("rb") as file:
                if os.fstat(file.fileno()).st_ino != expected.st_ino:
                    raise SnapshotOutdatedError
                left = expected.st_size
                while left:
                    part = file.read(min(left, _READ_BYTES))
                    if not part:
                        raise SnapshotOutdatedError
                    left -= len(part)
                    yield part
        except FileNotFoundError:
            raise SnapshotOutdatedError from None

    return read
