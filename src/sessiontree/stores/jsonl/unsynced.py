"""Files whose sync failed: noted beside the others until they have been written again (ADR 245)."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress

from sessiontree.stores._io import Files, syncing
from sessiontree.stores.jsonl.layout import TREE_SUFFIX, Layout, is_there

__all__ = ["note_unsynced", "write_unsynced"]


def note_unsynced(layout: Layout, trees: Iterable[str]) -> None:
    """Note that lines of these trees, or of the log, may be in the memory of the kernel only.

    Needs no sync: a power cut takes that memory away too. The caller learns of the failed sync in any case.
    """
    with suppress(OSError), layout.unsynced.open("a", encoding="utf-8") as note:
        note.writelines(f"{name}\n" for name in trees)


def write_unsynced(layout: Layout, files: Files) -> None:
    """Write and sync what a failed sync left, although the kernel takes it for written. Called under the process lock."""
    if not is_there(layout.unsynced):
        return
    # The note was not synced itself, so after a power cut anything may be in it.
    noted = layout.unsynced.read_text(encoding="utf-8", errors="replace").splitlines()
    trees = [path for path in layout.trees.iterdir() if path.name.removesuffix(TREE_SUFFIX) in noted]
    for path in (layout.log, *trees):
        with suppress(FileNotFoundError):
            file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
            try:
                with syncing():
                    files.write_again(file)
                    files.sync(file)
            finally:
                os.close(file)
    layout.unsynced.unlink(missing_ok=True)
