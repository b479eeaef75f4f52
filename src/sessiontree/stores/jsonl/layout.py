"""The files in the folder of a JSONL store, and whether a folder is such a store.

An id can be any string, so a file name is a readable slug of it and a hash, which makes it unique.

>>> name_of("../etc/passwd")
'etc-passwd-7fef78f53440346c04dac510'
"""

from __future__ import annotations

import hashlib
import os
import re
from functools import lru_cache
from pathlib import Path
from typing import Annotated

import msgspec

from sessiontree.errors import ForeignStoreError, NewerFormatError
from sessiontree.model._base import UNREADABLE, Record, json_decoder
from sessiontree.stores._io import Files, ProcessLock, kind_of, refuse_network

__all__ = ["TREE_SUFFIX", "Count", "Layout", "TreeName", "is_there", "name_of", "open_folder"]


TREE_SUFFIX = ".jsonl"

TreeName = Annotated[str, msgspec.Meta(pattern=r"^[^/\x00]+\Z")]
"""The name of a tree's file, without suffix. In a file that somebody crafted it could be a path that leads elsewhere."""

Count = Annotated[int, msgspec.Meta(ge=0, le=1 << 62)]
"""An offset or a length in a file, or the number of an entry: less than 64 bits, and more can be added to it."""

_FORMAT = "sessiontree-jsonl"
_VERSION = 1
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
_LONGEST_SLUG = 40


class Marker(Record, frozen=True, kw_only=True):
    """The content of ``sessiontree.json``."""

    format: str
    version: int


class Layout:
    """The paths in a store's folder, made once: every commit needs some of them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.marker = folder / "sessiontree.json"
        """The file that says that the folder is a store, and its version."""
        self.lock = folder / "gate.lock"
        """The file that writers lock."""
        self.log = folder / "commits.log"
        """The lines of batches that wrote to many trees and are not synced in their files yet."""
        self.unsynced = folder / "unsynced"
        """The names of trees whose sync failed."""
        self.index = folder / "index.db"
        """The cached summaries of trees."""
        self.search = folder / "search.db"
        """The search index."""
        self.trees = folder / "trees"
        """The folder of tree files."""
        self.forks = folder / "forks"
        """The folder of pointers from forks to their trees."""
        self.blobs = folder / "blobs"
        """The folder of blob packs."""
        self.torn = folder / "torn"
        """The folder of bytes that were cut out of damaged files."""
        self.erasing = folder / "erasing"
        """The folder of deletes whose copies are not erased yet."""
        self.plan = folder / "commit.json"
        """The commit of several files that is being carried out."""
        self.documents = folder / "documents"
        """The folder of documents, with a folder for each scope."""

    def tree(self, name: str) -> Path:
        """The file of a tree."""
        return self.trees / (name + TREE_SUFFIX)

    def pointer(self, thread_id: str) -> Path:
        """The pointer of a fork."""
        return self.forks / name_of(thread_id)

    def tree_of_fork(self, thread_id: str) -> str | None:
        """The id of the tree that a fork is in, or None without a readable pointer."""
        pointer = self.pointer(thread_id)
        if not is_there(pointer):
            return None
        try:
            return json_decoder(str).decode(pointer.read_bytes())
        except (FileNotFoundError, *UNREADABLE):
            return None

    def leftovers(self, name: str) -> list[Path]:
        """Files with bytes that were cut out of a tree file."""
        prefix = name + TREE_SUFFIX + "."
        return [path for path in self.torn.iterdir() if path.name.startswith(prefix)]


def is_there(path: Path) -> bool:
    """Whether there is a file. Commits look for files that are mostly missing, and ``Path.exists`` raises inside for those."""
    return os.access(path, os.F_OK)


@lru_cache(maxsize=4_096)
def name_of(any_id: str) -> str:
    """The file name for an id, without suffix."""
    digest = hashlib.sha256(any_id.encode("utf-8", "surrogatepass")).hexdigest()[:24]
    slug = _UNSAFE.sub("-", any_id[: 4 * _LONGEST_SLUG])[:_LONGEST_SLUG].strip("-.")
    return f"{slug}-{digest}" if slug else digest


def open_folder(folder: Path, files: Files) -> tuple[Layout, ProcessLock]:
    """Open the store in a folder, or create one; raise ForeignStoreError for any other folder and leave it unchanged."""
    layout = Layout(folder)
    _refuse_non_folder(folder)
    refuse_network(folder)
    files.make_folders(folder)
    if not _is_ours(layout):
        _refuse_other_files(layout)
    lock = ProcessLock(layout.lock, of=folder)
    try:
        with lock:
            _complete(layout, files)
    except BaseException:
        lock.close()
        raise
    return layout, lock


def _refuse_non_folder(folder: Path) -> None:
    try:
        kind = kind_of(folder)
    except NotADirectoryError:
        raise ForeignStoreError(str(folder), "a part of its path is a file") from None
    if kind not in ("nothing", "folder"):
        raise ForeignStoreError(str(folder), f"it is a {kind}, not a folder")


def _is_ours(layout: Layout) -> bool:
    kind = kind_of(layout.marker)
    if kind == "nothing":
        return False
    if kind != "file":
        raise ForeignStoreError(str(layout.folder), f"{layout.marker.name} is a {kind}")
    text = layout.marker.read_bytes()
    try:
        marker = json_decoder(Marker).decode(text)
    except UNREADABLE as error:
        raise ForeignStoreError(
            str(layout.folder), f"{layout.marker.name} is not a sessiontree marker: {error}"
        ) from error
    if marker.format != _FORMAT:
        raise ForeignStoreError(str(layout.folder), f"{layout.marker.name} has the format {marker.format!r}")
    if marker.version > _VERSION:
        raise NewerFormatError(str(layout.folder), marker.version, _VERSION)
    return True


def _refuse_other_files(layout: Layout) -> None:
    own = {layout.lock.name, layout.marker.name + ".new"}
    others = sorted(path.name for path in layout.folder.iterdir() if path.name not in own)
    # Another process may have created the store since the first check.
    if others and not _is_ours(layout):
        raise ForeignStoreError(str(layout.folder), f"a folder with {others[0]!r} and no {layout.marker.name}")


def _complete(layout: Layout, files: Files) -> None:
    if not _is_ours(layout):
        files.put(layout.marker, msgspec.json.encode(Marker(format=_FORMAT, version=_VERSION)) + b"\n")
    for path in (layout.trees, layout.forks, layout.torn, layout.blobs, layout.erasing):
        files.make_folder(path)
