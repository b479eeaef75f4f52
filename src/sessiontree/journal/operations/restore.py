"""Restore files, alone or together with a move of the leaf.

A move with files takes a checkpoint of the folder, stages the new files beside the old ones, changes the files, and then
moves the leaf. The leaf move decides: after a crash the reflog shows whether it happened, and the new files stay or the
old ones are put back.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, TypeVar, get_args

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from sessiontree.errors import (
    CommitUnknownError,
    InvalidInputError,
    PendingRestoreError,
    RestoreConflictError,
    StaleLeafError,
    ThreadNotFoundError,
    WorkspaceError,
)
from sessiontree.journal.operations.checkpoints import (
    CheckpointNote,
    Root,
    checkpoints,
    find_checkpoint,
    read_files,
    resolve,
    take_checkpoint,
)
from sessiontree.journal.operations.requests import Operation, Runtime, Work
from sessiontree.journal.operations.turns import DEFAULT_TTL_SECONDS, acquire_lease, release_lease, this_process
from sessiontree.model import Checkpoint, Lease, Move, NextMove, Thread
from sessiontree.model._base import Record
from sessiontree.model.blobs import Blob, batches
from sessiontree.model.manifest import Tree, difference
from sessiontree.model.thread import Direction
from sessiontree.stores.commands import Append, MoveLeaf, Redo, Undo
from sessiontree.stores.queries import ReadBlobs, ReadEntry, ReadMoves
from sessiontree.workspace.apply import (
    change_files,
    commit,
    finish,
    prepare,
    roll_back,
    roll_back_pending,
    settle_and_save,
    stage_files,
)
from sessiontree.workspace.cache import CacheHeader
from sessiontree.workspace.ignore import IGNORE_FILES, Conflicts
from sessiontree.workspace.open_workspace import OpenWorkspace, WorkspaceCache
from sessiontree.workspace.plan import RestorePlan, RestoreTarget, actions_for, with_stats
from sessiontree.workspace.staging import CommitMarker, Staged, Staging

__all__ = [
    "RestoreTask",
    "Settled",
    "move_with_files",
    "plan_restore",
    "restore_files",
    "rewind",
    "settle",
    "take_back",
    "with_workspace",
]


T = TypeVar("T")
LeafMove = MoveLeaf | Undo | Redo | Append
"""A command that moves the leaf. An append under a parent other than the leaf does too."""

Settled = Literal["old", "new"]
"""Which files an interrupted restore ends with: those before it, or those it was bringing back."""


class RestoreTask(Record, frozen=True, kw_only=True):
    """Which checkpoint of which thread to restore, and what to do about conflicts.

    ``paths`` are the files and folders to restore alone. ``expect_leaf`` refuses the restore if the leaf of the thread is another.
    """

    thread_id: str
    checkpoint: Checkpoint
    conflicts: Conflicts = "stop"
    paths: frozenset[str] | None = None
    expect_leaf: str | UnsetType | None = UNSET

    def __post_init__(self) -> None:
        if self.conflicts not in get_args(Conflicts):
            raise InvalidInputError(f"conflicts must be 'stop', 'force' or 'keep_mine', not {self.conflicts!r}")


class ChangedFiles(NamedTuple):
    """A restore whose files are in place: the plan, the checkpoint before it, and the staging until it is committed."""

    plan: RestorePlan
    before: str
    staging: Staging | None


def rewind(
    runtime: Runtime, cache: WorkspaceCache, thread_id: str, entry_id: str, root: Root, *, conflicts: Conflicts
) -> Operation[Thread]:
    """Make an entry the leaf and restore its files, or do neither."""
    yield ReadEntry(thread_id=thread_id, entry_id=entry_id)
    checkpoint = yield from find_checkpoint(thread_id, entry_id, root)
    task = RestoreTask(thread_id=thread_id, checkpoint=checkpoint, conflicts=conflicts)
    move = MoveLeaf(thread_id=thread_id, to_entry=entry_id, reason="rewind", at_ns=0)
    moved: Thread = yield from move_with_files(runtime, cache, root, task, move)
    return moved


def take_back(
    runtime: Runtime, cache: WorkspaceCache, found: NextMove, direction: Direction, conflicts: Conflicts
) -> Operation[Thread]:
    """Undo or redo a move with files: restore the files that it replaced, and move the leaf."""
    assert found.checkpoint is not None, "only a move with files is taken back here"
    command = Undo if direction == "undo" else Redo
    move = command(thread_id=found.move.thread_id, at_ns=0, expect_move=found.move.number)
    task = RestoreTask(thread_id=move.thread_id, checkpoint=found.checkpoint, conflicts=conflicts)
    moved: Thread = yield from move_with_files(runtime, cache, found.checkpoint.root, task, move)
    return moved


def move_with_files(
    runtime: Runtime, cache: WorkspaceCache, root: Root, task: RestoreTask, move: LeafMove
) -> Operation[Any]:
    """Restore files and commit a command that moves the leaf, or do neither; return what the command returns."""
    return (yield from with_workspace(cache, root, lambda workspace: _move_with_files(runtime, workspace, task, move)))


def with_workspace(cache: WorkspaceCache, root: Root, work: Callable[[OpenWorkspace], Operation[T]]) -> Operation[T]:
    """Open and lock a folder, settle an interrupted restore, and do some work in it."""
    workspace = OpenWorkspace(cache, root)
    try:
        pending = yield Work(function=workspace.open)
        yield from settle(workspace, pending)
        return (yield from work(workspace))
    finally:
        workspace.close()


def plan_restore(workspace: OpenWorkspace, task: RestoreTask) -> Operation[RestorePlan]:
    """Return what a restore would do. Nothing is written."""
    target = yield from _target(workspace, task)
    return (yield from _plan(workspace, task, target))


def restore_files(runtime: Runtime, workspace: OpenWorkspace, task: RestoreTask) -> Operation[RestorePlan]:
    """Restore files without moving the leaf.

    Files that are restored alone count as changed outside a turn: the folder is not that of the checkpoint.
    """
    is_closed, head = workspace.is_between_turns, workspace.stats.head
    plan, before, staging = yield from _change_files(runtime, workspace, task)
    if staging is not None:
        yield Work(function=commit, arguments=(workspace, staging))
    if task.paths is None:
        head = _head(workspace, task, before, is_closed=is_closed)
    if head is not None:
        yield Work(function=workspace.set_head, arguments=(head,))
    return replace(plan, before=before)


def settle(
    workspace: OpenWorkspace, pending: tuple[Staging, Staged] | None, prefer: Settled | None = None
) -> Operation[Literal["", "old", "new"]]:
    """Finish or roll back an interrupted restore; return which files it left, or '' if there was none."""
    if pending is None:
        return ""
    staging, staged = pending
    has_happened = prefer == "new" if prefer else (yield from _has_happened(workspace, staged.marker))
    if has_happened:
        yield Work(function=finish, arguments=(workspace, staging))
        return "new"
    yield Work(function=roll_back, arguments=(workspace, staging, staged))
    return "old"


def _move_with_files(runtime: Runtime, workspace: OpenWorkspace, task: RestoreTask, move: LeafMove) -> Operation[Any]:
    """Move the leaf and the files, or neither. No turn can run meanwhile."""
    lease = yield from acquire_lease(runtime, task.thread_id, this_process(), None, DEFAULT_TTL_SECONDS)
    try:
        moved = yield from _move(runtime, workspace, task, move, lease)
    except GeneratorExit:
        raise
    except BaseException:
        yield from release_lease(lease)
        raise
    yield from release_lease(lease)
    return moved


def _move(
    runtime: Runtime, workspace: OpenWorkspace, task: RestoreTask, move: LeafMove, lease: Lease
) -> Operation[Any]:
    is_closed = workspace.is_between_turns
    moves: Sequence[Move] = yield ReadMoves(thread_id=task.thread_id)
    number = moves[-1].number + 1 if moves else 1
    _, before, staging = yield from _change_files(runtime, workspace, task, number=number, lease=lease)
    try:
        timed = move if isinstance(move, Append) else replace(move, at_ns=runtime.clock())
        moved = yield replace(timed, expect_leaf=before, token=lease.token)
    except BaseException as error:
        # If it is unknown whether the leaf moved, the next operation on the folder asks the reflog.
        is_refused = isinstance(error, Exception) and not isinstance(error, CommitUnknownError)
        if staging is not None and is_refused:
            yield Work(function=roll_back_pending, arguments=(workspace, staging))
        if staging is not None:
            staging.close()
        raise
    head = _head(workspace, task, before, is_closed=is_closed)
    yield Work(function=settle_and_save, arguments=(workspace, staging, head))
    return moved


def _change_files(
    runtime: Runtime, workspace: OpenWorkspace, task: RestoreTask, *, number: int = 0, lease: Lease | None = None
) -> Operation[ChangedFiles]:
    """Plan, take a checkpoint, and change the files; ``number`` is that of the leaf move that decides about them."""
    target = yield from _target(workspace, task)
    plan = yield from _plan(workspace, task, target)
    if plan.conflicts and task.conflicts == "stop":
        raise RestoreConflictError(plan.root, [conflict.path for conflict in plan.conflicts])
    before = yield from _checkpoint_before(runtime, workspace, task, plan, number=number, lease=lease)
    current = dict(workspace.stats.items())
    plan = yield from _plan_again(workspace, task, plan, target, current)
    marker = None
    if number:
        place = workspace.cache.place
        marker = CommitMarker(place=place, thread_id=task.thread_id, from_entry=before, number=number)
    staging = yield from _apply(workspace, plan, current, marker)
    return ChangedFiles(plan, before, staging)


def _target(workspace: OpenWorkspace, task: RestoreTask) -> Operation[RestoreTarget]:
    resolved = yield from resolve(workspace.cache, task.checkpoint.manifest)
    workspace.check_names(resolved.tree)
    texts = yield from _ignore_texts(resolved.tree)
    left_out = frozenset(out.path for out in resolved.left_out)
    return RestoreTarget(resolved.tree, left_out, texts, chosen=task.paths)


def _ignore_texts(tree: Tree) -> Operation[dict[str, list[bytes]]]:
    """Return the ignore files of a tree by folder: what they hid was never part of it."""
    found = {path: item for path, item in tree.items() if path.rpartition("/")[2] in IGNORE_FILES and item.hash}
    texts = yield from read_files(tuple({item.hash for item in found.values()}))
    by_folder: dict[str, list[bytes]] = {}
    for path in sorted(found, key=lambda path: IGNORE_FILES.index(path.rpartition("/")[2])):
        by_folder.setdefault(path.rpartition("/")[0], []).append(texts[found[path].hash])
    return by_folder


def _plan(workspace: OpenWorkspace, task: RestoreTask, target: RestoreTarget) -> Operation[RestorePlan]:
    scan = yield Work(function=workspace.scan_and_hash)
    current = dict(scan.cache().items())
    foreign = yield from _foreign(workspace, task, current)
    plan: RestorePlan = yield Work(function=workspace.plan, arguments=(target, current, foreign, task.conflicts))
    return plan


def _plan_again(
    workspace: OpenWorkspace, task: RestoreTask, plan: RestorePlan, target: RestoreTarget, current: Tree
) -> Operation[RestorePlan]:
    """Plan over what the checkpoint holds, so that a change since the first scan can be undone too."""
    kept = {conflict.path for conflict in plan.conflicts} if task.conflicts == "keep_mine" else set()
    foreign = {*kept, *plan.left_alone}
    conflicts: Conflicts = "keep_mine" if kept else "force"
    fresh: RestorePlan = yield Work(function=workspace.plan, arguments=(target, current, foreign, conflicts))
    lost = [conflict.path for conflict in fresh.conflicts if conflict.reason == "untracked"]
    if lost and conflicts == "force":
        problem = f"cannot be restored: {lost[0]!r} cannot be stored in a checkpoint; move it out of the folder first"
        raise WorkspaceError(workspace.root, problem)
    return fresh


def _foreign(workspace: OpenWorkspace, task: RestoreTask, current: Tree) -> Operation[set[str]]:
    """Return the paths that changed outside the turns of this thread, or in another thread."""
    baseline = yield from _baseline(workspace, task.thread_id)
    if not baseline:
        return set()
    before = yield from resolve(workspace.cache, baseline)
    changed, removed = difference(before.tree, current)
    return {*changed, *removed}


def _baseline(workspace: OpenWorkspace, thread_id: str) -> Operation[str]:
    """Return the manifest since which every change is foreign; '' while a turn of this thread is running."""
    head = workspace.stats.head
    is_of_store = head is not None and head.place == workspace.cache.place
    if head is not None and is_of_store and head.thread_id == thread_id:
        return head.manifest if head.is_closed else ""
    found = yield from checkpoints(thread_id, workspace.root)
    known = [entry for entry in found if isinstance(entry.payload, Checkpoint) and entry.payload.root]
    if head is not None and is_of_store and any(entry.id == head.checkpoint for entry in known):
        return head.manifest if head.is_closed else ""
    newest = known[-1].payload if known else None
    if not isinstance(newest, Checkpoint):
        return ""
    return newest.manifest if head is not None or newest.moment == "after_turn" else ""


def _checkpoint_before(
    runtime: Runtime,
    workspace: OpenWorkspace,
    task: RestoreTask,
    plan: RestorePlan,
    *,
    number: int,
    lease: Lease | None,
) -> Operation[str]:
    """Take the checkpoint that undo restores; ``force`` adds the untracked files that will be overwritten."""
    note = CheckpointNote(label="before files were moved", moment="before_move", before_move=number)
    untracked = [conflict.path for conflict in plan.conflicts if conflict.reason == "untracked"]
    include = untracked if task.conflicts == "force" else ()
    taken = yield from take_checkpoint(runtime, workspace, task.thread_id, note, include=include, lease=lease)
    if task.expect_leaf not in {UNSET, taken.entry.parent}:
        raise StaleLeafError(task.thread_id, task.expect_leaf, taken.entry.parent)
    return taken.id


def _apply(
    workspace: OpenWorkspace, plan: RestorePlan, current: Tree, marker: CommitMarker | None
) -> Operation[Staging | None]:
    """Stage and change the files; after an error they are as before."""
    if plan.is_empty:
        return None
    root_mode = os.fstat(workspace.folder.fd).st_mode & 0o777
    actions, contents = actions_for(plan, current, root_mode)
    staging: Staging = yield Work(function=prepare, arguments=(workspace,))
    stats: dict[int, os.stat_result] = {}
    try:
        for batch in batches(contents.items(), lambda pair: pair[1].size):
            hashes = tuple({item.hash for _, item in batch if item.hash})
            blobs: list[Blob] = (yield ReadBlobs(hashes=hashes)) if hashes else []
            stats |= yield Work(function=stage_files, arguments=(workspace, staging, batch, blobs))
    except BaseException:
        staging.close()
        raise
    staged = Staged(actions=with_stats(actions, stats), marker=marker)
    try:
        yield Work(function=change_files, arguments=(workspace, staging, staged))
    except (Exception, GeneratorExit):
        raise
    except BaseException:
        # Cancelled while the files were being changed: the leaf did not move, so the old files must come back.
        yield Work(function=roll_back_pending, arguments=(workspace, staging))
        raise
    return staging


def _has_happened(workspace: OpenWorkspace, marker: CommitMarker | None) -> Operation[bool]:
    """Return whether the leaf move of an interrupted restore is in the reflog."""
    if marker is None:
        return False
    if marker.place != workspace.cache.place:
        if marker.place == "memory:":
            return False
        raise PendingRestoreError(workspace.root, marker.place, marker.thread_id)
    try:
        moves: Sequence[Move] = yield ReadMoves(thread_id=marker.thread_id)
    except ThreadNotFoundError:
        return False
    return any(move.number == marker.number and move.from_entry == marker.from_entry for move in moves)


def _head(workspace: OpenWorkspace, task: RestoreTask, checkpoint: str, *, is_closed: bool) -> CacheHeader:
    return CacheHeader(
        place=workspace.cache.place,
        thread_id=task.thread_id,
        checkpoint=checkpoint,
        manifest=task.checkpoint.manifest,
        is_closed=is_closed,
    )
