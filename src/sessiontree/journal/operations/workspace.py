"""The verbs of ``journal.workspace``: snapshot, plan, restore, diff, recover."""

from __future__ import annotations

import os
from collections.abc import Collection
from typing import Literal

from sessiontree.errors import InvalidInputError
from sessiontree.journal.operations.checkpoints import (
    CheckpointNote,
    Root,
    Snapshot,
    find_checkpoint,
    read_files,
    resolve,
    take_checkpoint,
)
from sessiontree.journal.operations.requests import Operation, Runtime, Work
from sessiontree.journal.operations.restore import (
    RestoreTask,
    Settled,
    plan_restore,
    restore_files,
    settle,
    with_workspace,
)
from sessiontree.model import CheckpointMoment, Entry, Lease, Thread, TurnMarker
from sessiontree.model.manifest import Tree, with_known_modes
from sessiontree.stores.queries import ReadEntry, ReadThread
from sessiontree.workspace.diff import TreeDiff, contents_needed, diff_trees
from sessiontree.workspace.ignore import Conflicts
from sessiontree.workspace.open_workspace import OpenWorkspace, WorkspaceCache
from sessiontree.workspace.plan import RestorePlan

__all__ = ["Paths", "diff", "plan", "recover", "restore", "snapshot", "turn_snapshot"]

Paths = Collection[str | os.PathLike[str]]
"""Files and folders, relative to the folder of a checkpoint; a folder stands for everything in it."""


def snapshot(
    runtime: Runtime,
    cache: WorkspaceCache,
    thread_id: str,
    entry_id: str | None,
    root: Root,
    *,
    label: str = "",
    moment: CheckpointMoment = "",
    lease: Lease | None = None,
) -> Operation[Snapshot]:
    """Take a checkpoint of a folder for an entry; ``None`` is the leaf."""
    if entry_id is None:
        thread: Thread = yield ReadThread(thread_id=thread_id)
        entry_id = thread.leaf or ""
    else:
        yield ReadEntry(thread_id=thread_id, entry_id=entry_id)
    note = CheckpointNote(target=entry_id, label=label, moment=moment)

    def work(workspace: OpenWorkspace) -> Operation[Snapshot]:
        return take_checkpoint(runtime, workspace, thread_id, note, lease=lease)

    return (yield from with_workspace(cache, root, work))


def turn_snapshot(
    runtime: Runtime, cache: WorkspaceCache, root: Root, lease: Lease, moment: CheckpointMoment
) -> Operation[Snapshot]:
    """Take the checkpoint at the start or end of a turn; at the start it is for the entry that the turn answers."""
    thread: Thread = yield ReadThread(thread_id=lease.thread_id)
    target = thread.leaf or ""
    leaf: Entry = yield ReadEntry(thread_id=lease.thread_id, entry_id=target)
    if isinstance(leaf.payload, TurnMarker) and leaf.payload.status == "started":
        target = leaf.parent or target
    return (
        yield from snapshot(runtime, cache, lease.thread_id, target, root, label=moment, moment=moment, lease=lease)
    )


def plan(
    cache: WorkspaceCache, thread_id: str, entry_id: str, root: Root, *, conflicts: Conflicts, paths: Paths | None
) -> Operation[RestorePlan]:
    """Return what a restore would do."""
    task = yield from _task(thread_id, entry_id, root, conflicts, paths)
    return (yield from with_workspace(cache, root, lambda workspace: plan_restore(workspace, task)))


def restore(
    runtime: Runtime,
    cache: WorkspaceCache,
    thread_id: str,
    entry_id: str,
    root: Root,
    *,
    conflicts: Conflicts,
    paths: Paths | None,
) -> Operation[RestorePlan]:
    """Restore the files of an entry, all or some; the leaf stays."""
    task = yield from _task(thread_id, entry_id, root, conflicts, paths)
    return (yield from with_workspace(cache, root, lambda workspace: restore_files(runtime, workspace, task)))


def diff(
    cache: WorkspaceCache, thread_id: str, entry_id: str, root: Root, *, other: str | None, other_thread: str
) -> Operation[TreeDiff]:
    """Compare the files of an entry with those of another one, also of another thread, or with the folder."""
    checkpoint = yield from find_checkpoint(thread_id, entry_id, root)
    old = yield from resolve(cache, checkpoint.manifest)
    if other is None:
        return (yield from with_workspace(cache, root, lambda workspace: _diff_to_folder(workspace, old.tree)))
    newer = yield from find_checkpoint(other_thread, other, root)
    new = yield from resolve(cache, newer.manifest)
    needed = contents_needed(old.tree, new.tree) | contents_needed(new.tree, old.tree)
    contents = yield from read_files(tuple(needed))
    return (yield from _compare(old.tree, new.tree, contents))


def recover(cache: WorkspaceCache, root: Root, prefer: Settled | None) -> Operation[Literal["", "old", "new"]]:
    """Settle an interrupted restore, and return which files it left."""
    workspace = OpenWorkspace(cache, root)
    try:
        pending = yield Work(function=workspace.open)
        return (yield from settle(workspace, pending, prefer))
    finally:
        workspace.close()


def _task(
    thread_id: str, entry_id: str, root: Root, conflicts: Conflicts, paths: Paths | None
) -> Operation[RestoreTask]:
    if isinstance(paths, str):
        raise InvalidInputError(f"paths must be a list of paths, not the text {paths!r}")
    chosen = None if paths is None else frozenset(os.fspath(path).rstrip("/") for path in paths)
    checkpoint = yield from find_checkpoint(thread_id, entry_id, root)
    return RestoreTask(thread_id=thread_id, checkpoint=checkpoint, conflicts=conflicts, paths=chosen)


def _diff_to_folder(workspace: OpenWorkspace, old: Tree) -> Operation[TreeDiff]:
    scan = yield Work(function=workspace.scan_and_hash)
    new = dict(scan.cache().items())
    contents = yield from read_files(tuple(contents_needed(old, new)))
    changed = {path: item.hash for path, item in new.items() if item.hash and old.get(path) != item}
    present: dict[str, bytes] = yield Work(function=workspace.read_files, arguments=(changed,))
    contents.update((changed[path], data) for path, data in present.items())
    return (yield from _compare(old, new, contents))


def _compare(old: Tree, new: Tree, contents: dict[str, bytes]) -> Operation[TreeDiff]:
    old, new = with_known_modes(old, new), with_known_modes(new, old)
    compared: TreeDiff = yield Work(function=lambda: diff_trees(old, new, lambda item: contents[item.hash]))
    return compared
