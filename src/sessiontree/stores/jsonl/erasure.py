"""What deletes have left to erase: a file in ``erasing/`` for each delete, written before it and removed after the last copy.

The copies are the pointer of a fork, the cached summary of the tree, words in the search index, blobs that no checkpoint
needs, and files that an interrupted write left under a temporary name.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from sessiontree.model._base import UNREADABLE, Record, json_decoder
from sessiontree.model.blobs import data_of
from sessiontree.model.manifest import reachable
from sessiontree.stores._io import Files
from sessiontree.stores.jsonl.layout import Layout, TreeName, name_of
from sessiontree.stores.jsonl.packs import PackFolder
from sessiontree.stores.jsonl.thread_index import ThreadIndex
from sessiontree.stores.jsonl.tree import TreeCache

__all__ = ["ANYTHING", "ErasureFolder", "PendingErasure", "erase_copies"]


_TEMPORARY = ".new"


class PendingErasure(Record, frozen=True, kw_only=True):
    """A delete whose copies are not erased yet. ``tree`` is the name of the tree file."""

    tree: TreeName
    thread_id: str
    has_blobs: bool = False


ANYTHING = PendingErasure(tree="", thread_id="", has_blobs=True)
"""What a note means that cannot be read any more: all that may hold a copy is erased, or built again."""


class ErasureFolder:
    """The folder of pending erasures."""

    def __init__(self, layout: Layout, files: Files) -> None:
        self._folder = layout.erasing
        self._files = files

    def add(self, erasure: PendingErasure) -> None:
        """Record an erasure durably, before the delete: after a crash the next open completes it."""
        self._files.put(self._folder / f"{secrets.token_hex(8)}.json", msgspec.json.encode(erasure) + b"\n")

    def pending(self) -> Iterator[tuple[Path, PendingErasure]]:
        """Yield the erasures with their files."""
        for path in sorted(self._folder.glob("*.json")):
            try:
                yield path, json_decoder(PendingErasure).decode(path.read_bytes())
            except FileNotFoundError:
                continue  # another process has completed it
            except UNREADABLE:
                yield path, ANYTHING

    def complete(self, path: Path) -> None:
        """Remove an erasure that is complete."""
        try:
            self._files.remove(path)
        except FileNotFoundError:
            return


def erase_copies(
    erasure: PendingErasure,
    layout: Layout,
    files: Files,
    *,
    trees: TreeCache,
    index: ThreadIndex,
    packs: PackFolder,
) -> None:
    """Erase the copies outside the search index. The caller holds the process lock.

    The delete may not have happened, and its thread may be back by now, so each step looks at what is there.
    """
    if erasure is ANYTHING:
        known = {name_of(thread.id) for thread in index.threads()}
        pointers = [path for path in layout.forks.iterdir() if path.name not in known]
        index.discard()
    else:
        pointers = [] if trees.find(erasure.thread_id) else [layout.pointer(erasure.thread_id)]
        index.forget(erasure.tree)
    for path in pointers:
        path.unlink(missing_ok=True)
    files.sync_folder(layout.forks)
    if layout.index.exists():
        _with_file(layout.index, files.sync)
    if erasure.has_blobs:
        roots = trees.roots()
        needed = reachable(roots.manifests, lambda name: data_of(packs.blobs([name])[0]))
        packs.drop(frozenset(packs.blob_hashes()) - needed - roots.artifacts - packs.pending_artifacts())
    for folder in (layout.trees, layout.forks, layout.torn, layout.blobs, layout.erasing):
        for path in folder.glob("*" + _TEMPORARY):
            files.remove(path)


def _with_file(path: Path, use: Callable[[int], None]) -> None:
    file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        use(file)
    finally:
        os.close(file)
