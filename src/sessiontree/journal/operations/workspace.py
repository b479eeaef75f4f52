"""The verbs of ``journal.workspace``, and the moves of the leaf that take the files along."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator
from typing import Any, Literal, NamedTuple, TypeVar

from sessiontree.journal.operations.checkpoints import (
    CheckpointNote,
    Snapshot,
    find_checkpoint,
    look_at_folder,
    read_files,
    resolve,
    take,
)
from sessiontree.journal.operations.requests import Operation, Runtime, Work
from sessiontree.journal.operations.restore import Prefer, Task, move_with_files, plan_restore, restore_files, settle
from sessiontree.model import Checkpoint, CheckpointMoment, Entry, Lease, Move, MoveReason, Thread, TurnMarker
from sessiontree.model.manifest import Tree, with_known_modes
from sessiontree.stores.commands import Redo, Undo
from sessiontree.stores.queries import ReadEntry, ReadMoves, ReadThread
from sessiontree.stores.rules.leaf import next_redo, next_undo
from sessiontree.workspace.diff import TreeDiff, contents_needed, diff_trees
from sessiontree.workspace.ignore import Conflicts
from sessiontree.workspace.open_workspace import OpenWorkspace, WorkspaceCache
from sessiontree.workspace.plan import RestorePlan

__all__ = ["TurnFiles", "diff", "plan", "recover", "redo", "restore", "rewind", "snapshot", "turn_snapshot", "undo"]


T = TypeVar("T")
Root = str | os.PathLike[str]


class TurnFiles(NamedTuple):
    """The folder that a turn works on."""

    desk: WorkspaceCache
    root: Root


def snapshot(
    sources: Runtime,
    desk: WorkspaceCache,
    thread_id: str,
    entry_id: str | None,
    root: Root,
    *,
    label: str = "",
    moment: CheckpointMoment = "",
    lease: Lease | None = None,
) -> Operation[Snapshot]:
    if entry_id is None:
        thread: Thread = yield ReadThread(thread_id=thread_id)
        entry_id = thread.leaf or ""
    else:
        yield ReadEntry(thread_id=thread_id, entry_id=entry_id)
    note = CheckpointNote(target=entry_id, label=label, moment=moment)

    def work(visit: OpenWorkspace) -> Operation[Snapshot]:
        return take(sources, desk, visit, thread_id, note, lease=lease)

    return (yield from _visiting(desk, root, work))


def turn_snapshot(sources: Runtime, files: TurnFiles, lease: Lease, moment: CheckpointMoment) -> Operation[Snapshot]:
    """The files as they are when a turn begins or ends; at its beginning they belong to what it answers."""
    thread: Thread = yield ReadThread(thread_id=lease.thread_id)
    target = thread.leaf or ""
    leaf: Entry = yield ReadEntry(thread_id=lease.thread_id, entry_id=target)
    if isinstance(leaf.payload, TurnMarker) and leaf.payload.status == "started":
        target = leaf.parent or target
    desk, root = files
    return (yield from snapshot(sources, desk, lease.thread_id, target, root, label=moment, moment=moment, lease=lease))


def plan(
    desk: WorkspaceCache, thread_id: str, entry_id: str, root: Root, *, conflicts: Conflicts
) -> Operation[RestorePlan]:
    found = yield from find_checkpoint(thread_id, entry_id, root)
    task = _task(thread_id, found, conflicts)

    return (yield from _visiting(desk, root, lambda visit: plan_restore(desk, visit, task)))


def restore(
    sources: Runtime, desk: WorkspaceCache, thread_id: str, entry_id: str, root: Root, *, conflicts: Conflicts
) -> Operation[RestorePlan]:
    found = yield from find_checkpoint(thread_id, entry_id, root)
    task = _task(thread_id, found, conflicts)
    return (yield from _visiting(desk, root, lambda visit: restore_files(sources, desk, visit, task)))


def rewind(
    sources: Runtime, desk: WorkspaceCache, thread_id: str, entry_id: str, root: Root, *, conflicts: Conflicts
) -> Operation[Thread]:
    yield ReadEntry(thread_id=thread_id, entry_id=entry_id)
    found = yield from find_checkpoint(thread_id, entry_id, root)
    return (yield from _moving(sources, desk, _task(thread_id, found, conflicts), entry_id, "rewind", root=root))


def undo(sources: Runtime, desk: WorkspaceCache, thread_id: str, *, conflicts: Conflicts) -> Operation[Thread]:
    """Take the last move back; if it moved files, they come back too."""
    moves: list[Move] = yield ReadMoves(thread_id=thread_id)
    found = yield from _files_of(thread_id, next_undo(thread_id, moves))
    if found is None:
        moved: Thread = yield Undo(thread_id=thread_id, at_ns=sources.clock())
        return moved
    task = _task(thread_id, found, conflicts)
    return (yield from _moving(sources, desk, task, found.id, "undo", root=task.checkpoint.root))


def redo(sources: Runtime, desk: WorkspaceCache, thread_id: str, *, conflicts: Conflicts) -> Operation[Thread]:
    """Take the last undo back; if it moved files, they go with it."""
    moves: list[Move] = yield ReadMoves(thread_id=thread_id)
    thread: Thread = yield ReadThread(thread_id=thread_id)
    found = yield from _files_of(thread_id, next_redo(thread_id, moves, thread.leaf))
    if found is None:
        moved: Thread = yield Redo(thread_id=thread_id, at_ns=sources.clock())
        return moved
    task = _task(thread_id, found, conflicts)
    return (yield from _moving(sources, desk, task, found.id, "redo", root=task.checkpoint.root))


def diff(desk: WorkspaceCache, thread_id: str, entry_id: str, root: Root, *, other: str | None) -> Operation[TreeDiff]:
    """From a checkpoint to another one, or to the folder as it is."""
    found = yield from find_checkpoint(thread_id, entry_id, root)
    old = yield from resolve(desk, _checkpoint(found).manifest)
    if other is None:
        return (yield from _visiting(desk, root, lambda visit: _diff_to_folder(visit, old.tree)))
    newer = yield from find_checkpoint(thread_id, other, root)
    new = yield from resolve(desk, _checkpoint(newer).manifest)
    datas = yield from read_files(tuple(contents_needed(old.tree, new.tree) | contents_needed(new.tree, old.tree)))
    return (yield from _compare(old.tree, new.tree, datas))


def recover(desk: WorkspaceCache, root: Root, prefer: Prefer | None) -> Operation[Literal["", "old", "new"]]:
    visit = desk.visit(root)
    try:
        yield Work(function=visit.open)
        return (yield from settle(desk, visit, prefer))
    finally:
        visit.close()


def _visiting(
    desk: WorkspaceCache, root: Root, work: Callable[[OpenWorkspace], Generator[Any, Any, T]]
) -> Operation[T]:
    """Open the folder, settle what an interrupted restore left, then do the work."""
    visit = desk.visit(root)
    try:
        yield Work(function=visit.open)
        yield from settle(desk, visit)
        return (yield from work(visit))
    finally:
        visit.close()


def _moving(
    sources: Runtime, desk: WorkspaceCache, task: Task, to_entry: str, reason: MoveReason, *, root: Root
) -> Operation[Thread]:
    def work(visit: OpenWorkspace) -> Operation[Thread]:
        return move_with_files(sources, desk, visit, task, to_entry=to_entry, reason=reason)

    return (yield from _visiting(desk, root, work))


def _diff_to_folder(visit: OpenWorkspace, old: Tree) -> Operation[TreeDiff]:
    scan = yield from look_at_folder(visit)
    new = dict(scan.cache().items())
    datas = yield from read_files(tuple(contents_needed(old, new)))
    changed = {path: item.hash for path, item in new.items() if item.hash and old.get(path) != item}
    present: dict[str, bytes] = yield Work(function=visit.read_present, arguments=(changed,))
    datas.update((changed[path], data) for path, data in present.items())
    return (yield from _compare(old, new, datas))


def _compare(old: Tree, new: Tree, datas: dict[str, bytes]) -> Operation[TreeDiff]:
    old, new = with_known_modes(old, new), with_known_modes(new, old)
    compared: TreeDiff = yield Work(function=lambda: diff_trees(old, new, lambda item: datas[item.hash]))
    return compared


def _files_of(thread_id: str, move: Move) -> Operation[Entry | None]:
    """The checkpoint that a move took of the files before it moved them, if it did."""
    if move.from_entry is None:
        return None
    entry: Entry = yield ReadEntry(thread_id=thread_id, entry_id=move.from_entry)
    payload = entry.payload
    is_taken_for_it = isinstance(payload, Checkpoint) and payload.before_move == move.number
    return entry if is_taken_for_it else None


def _task(thread_id: str, found: Entry, conflicts: Conflicts) -> Task:
    return Task(thread_id=thread_id, checkpoint=_checkpoint(found), conflicts=conflicts)


def _checkpoint(entry: Entry) -> Checkpoint:
    assert isinstance(entry.payload, Checkpoint)
    return entry.payload
