"""Verbs that bring files back: plan, restore, and moving the leaf together with the files.

The order of a move with files: take a checkpoint of what is there, prepare everything beside the files, change the
files, move the leaf. The leaf move decides: whoever finds the folder after a crash asks the reflog whether it happened,
and keeps the new files or puts the old ones back.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from msgspec.structs import replace

from sessiontree.errors import (
    CommitUnknownError,
    PendingRestoreError,
    RestoreConflictError,
    ThreadNotFoundError,
    WorkspaceError,
)
from sessiontree.journal.operations.checkpoints import (
    CheckpointNote,
    Snapshot,
    checkpoints,
    look_at_folder,
    read_files,
    resolve,
    take,
)
from sessiontree.journal.operations.requests import Operation, Runtime, Work
from sessiontree.journal.operations.turns import DEFAULT_TTL_SECONDS, acquire_lease, release_lease, this_process
from sessiontree.model import Checkpoint, Entry, Lease, Move, MoveReason, Thread
from sessiontree.model._base import Record
from sessiontree.model.manifest import ManifestItem, Tree, difference
from sessiontree.stores.commands import MoveLeaf
from sessiontree.stores.queries import ReadMoves, ReadThread
from sessiontree.workspace.apply import change_files, commit, finish, guarded, take_back, take_back_pending, tidy
from sessiontree.workspace.cache import CacheHeader
from sessiontree.workspace.ignore import IGNORE_FILES, Conflicts, ignored_by
from sessiontree.workspace.open_workspace import OpenWorkspace, WorkspaceCache
from sessiontree.workspace.plan import Action, RestorePlan, actions_for, make_plan
from sessiontree.workspace.staging import CommitMarker, Staged, Staging, discard, open_staging, pending_restore

__all__ = ["Prefer", "Task", "move_with_files", "plan_restore", "restore_files", "settle"]


Prefer = Literal["old", "new"]
"""``old`` or ``new``: how to settle an interrupted restore whose store cannot be asked."""

_BATCH_BYTES = 8 << 20


class Task(Record, frozen=True, kw_only=True):
    """Which thread's checkpoint is to be brought back, and what to do about conflicts."""

    thread_id: str
    checkpoint: Checkpoint
    conflicts: Conflicts = "stop"


class RestoreTarget(NamedTuple):
    """The files to bring back; what the checkpoint saw and left out; and the ignore rules that held then."""

    tree: Tree
    left_out: frozenset[str]
    ignore_texts: dict[str, list[bytes]]


def plan_restore(desk: WorkspaceCache, visit: OpenWorkspace, task: Task) -> Operation[RestorePlan]:
    """What a restore would do; nothing is written anywhere."""
    scan = yield from look_at_folder(visit)
    current = dict(scan.cache().items())
    target = yield from _target(desk, task)
    visit.check_names(target.tree.keys())
    foreign = yield from _foreign(desk, visit, task, current)
    plan: RestorePlan = yield Work(function=_make_plan, arguments=(visit, task.conflicts, target, current, foreign))
    return plan


def restore_files(sources: Runtime, desk: WorkspaceCache, visit: OpenWorkspace, task: Task) -> Operation[RestorePlan]:
    """Bring files back without moving the leaf; the restore itself decides when it counts."""
    is_closed = visit.is_between_turns
    plan = yield from plan_restore(desk, visit, task)
    _refuse_conflicts(plan, task.conflicts)
    before = yield from _take_before(sources, desk, visit, task, plan)
    plan, current = yield from _plan_again(desk, visit, task, plan)
    staging = yield from _apply(visit, plan, current, None)
    if staging is not None:
        yield Work(function=commit, arguments=(visit, staging))
    yield Work(function=visit.set_head, arguments=(_head(desk, task, before.id, is_closed=is_closed),))
    return replace(plan, before=before.id)


def move_with_files(
    sources: Runtime,
    desk: WorkspaceCache,
    visit: OpenWorkspace,
    task: Task,
    *,
    to_entry: str | None,
    reason: MoveReason,
) -> Operation[Thread]:
    """Move the leaf and the files, or neither. No turn may run meanwhile."""
    lease = yield from acquire_lease(sources, task.thread_id, this_process(), None, DEFAULT_TTL_SECONDS)
    try:
        moved = yield from _move(sources, desk, visit, task, to_entry=to_entry, reason=reason, lease=lease)
    except GeneratorExit:
        raise
    except BaseException:
        yield from release_lease(lease)
        raise
    yield from release_lease(lease)
    return moved


def settle(
    desk: WorkspaceCache, visit: OpenWorkspace, prefer: Prefer | None = None
) -> Operation[Literal["", "old", "new"]]:
    """Finish or undo a restore that was interrupted; tells which: '', 'old' or 'new'."""
    found = yield Work(function=pending_restore, arguments=(visit.own.fd,))
    if found is None:
        yield Work(function=discard, arguments=(visit.own.fd, desk.disk))
        return ""
    staging, staged = found
    has_happened = prefer == "new" if prefer else (yield from _has_happened(desk, visit, staged.pledge))
    if has_happened:
        yield Work(function=finish, arguments=(visit, staging))
        return "new"
    yield Work(function=take_back, arguments=(visit, staging, staged))
    return "old"


def _move(
    sources: Runtime,
    desk: WorkspaceCache,
    visit: OpenWorkspace,
    task: Task,
    *,
    to_entry: str | None,
    reason: MoveReason,
    lease: Lease,
) -> Operation[Thread]:
    is_closed = visit.is_between_turns
    plan = yield from plan_restore(desk, visit, task)
    _refuse_conflicts(plan, task.conflicts)
    number = yield from _next_move(task.thread_id)
    before = yield from _take_before(sources, desk, visit, task, plan, number=number, lease=lease)
    plan, current = yield from _plan_again(desk, visit, task, plan)
    pledge = CommitMarker(place=desk.place, thread_id=task.thread_id, from_entry=before.id, number=number)
    staging = yield from _apply(visit, plan, current, pledge)
    try:
        moved: Thread = yield MoveLeaf(
            thread_id=task.thread_id,
            to_entry=to_entry,
            reason=reason,
            at_ns=sources.clock(),
            expect_leaf=before.id,
            token=lease.token,
        )
    except BaseException as error:
        # Where nobody knows whether the leaf moved, the next visit to the folder asks the reflog.
        is_refused = isinstance(error, Exception) and not isinstance(error, CommitUnknownError)
        if staging is not None and is_refused:
            yield Work(function=take_back_pending, arguments=(visit, staging))
        if staging is not None:
            staging.close()
        raise
    if staging is not None:
        yield Work(function=tidy, arguments=(visit, staging))
    yield Work(function=visit.set_head, arguments=(_head(desk, task, before.id, is_closed=is_closed),))
    return moved


def _next_move(thread_id: str) -> Operation[int]:
    moves: Sequence[Move] = yield ReadMoves(thread_id=thread_id)
    return moves[-1].number + 1 if moves else 1


def _take_before(
    sources: Runtime,
    desk: WorkspaceCache,
    visit: OpenWorkspace,
    task: Task,
    plan: RestorePlan,
    *,
    number: int = 0,
    lease: Lease | None = None,
) -> Operation[Snapshot]:
    """What undo will bring back; with force also the untracked files that are about to be overwritten."""
    thread: Thread = yield ReadThread(thread_id=task.thread_id)
    untracked = [conflict.path for conflict in plan.conflicts if conflict.reason == "untracked"]
    note = CheckpointNote(
        target=thread.leaf or "", label="before files were moved", moment="before_move", before_move=number
    )
    include = untracked if task.conflicts == "force" else ()
    return (yield from take(sources, desk, visit, task.thread_id, note, include=include, lease=lease))


def _plan_again(
    desk: WorkspaceCache, visit: OpenWorkspace, task: Task, plan: RestorePlan
) -> Operation[tuple[RestorePlan, dict[str, ManifestItem]]]:
    """The plan over what the checkpoint really took: whatever changed since the first look is in it."""
    current = dict(visit.cache.items())
    target = yield from _target(desk, task)
    kept = {conflict.path for conflict in plan.conflicts} if task.conflicts == "keep_mine" else set()
    foreign = {*kept, *plan.left_alone}
    conflicts: Conflicts = "keep_mine" if kept else "force"
    fresh: RestorePlan = yield Work(function=_make_plan, arguments=(visit, conflicts, target, current, foreign))
    lost = [conflict.path for conflict in fresh.conflicts if conflict.reason == "untracked"]
    if lost and conflicts == "force":
        raise WorkspaceError(visit.root, f"cannot be restored: no checkpoint can keep {lost[0]!r}, move it away first")
    return fresh, current


def _refuse_conflicts(plan: RestorePlan, conflicts: Conflicts) -> None:
    if plan.conflicts and conflicts == "stop":
        raise RestoreConflictError(plan.root, [conflict.path for conflict in plan.conflicts])


def _make_plan(
    visit: OpenWorkspace, conflicts: Conflicts, target: RestoreTarget, current: Tree, foreign: set[str]
) -> RestorePlan:
    def never_knew(path: str, item: ManifestItem) -> bool:
        parts = path.split("/")
        if any("/".join(parts[:depth]) in target.left_out for depth in range(1, len(parts) + 1)):
            return True
        is_folder = item.kind == "folder"
        return ignored_by(
            visit.rules, path, is_folder=is_folder, texts_in=lambda folder: target.ignore_texts.get(folder, ())
        )

    return make_plan(
        visit.root,
        target=target.tree,
        current=current,
        foreign=foreign,
        never_knew=never_knew,
        occupied=lambda paths: visit.occupied(paths, current),
        crowded=lambda folders: visit.crowded(folders, current),
        conflicts=conflicts,
    )


def _target(desk: WorkspaceCache, task: Task) -> Operation[RestoreTarget]:
    resolved = yield from resolve(desk, task.checkpoint.manifest)
    texts = yield from _ignore_texts(resolved.tree)
    return RestoreTarget(resolved.tree, frozenset(out.path for out in resolved.left_out), texts)


def _ignore_texts(tree: Tree) -> Operation[dict[str, list[bytes]]]:
    """The ignore files of a tree: what they hid then was never part of it."""
    found = {path: item for path, item in tree.items() if path.rpartition("/")[2] in IGNORE_FILES and item.hash}
    texts = yield from read_files(tuple({item.hash for item in found.values()}))
    by_folder: dict[str, list[bytes]] = {}
    for path in sorted(found, key=lambda path: IGNORE_FILES.index(path.rpartition("/")[2])):
        by_folder.setdefault(path.rpartition("/")[0], []).append(texts[found[path].hash])
    return by_folder


def _foreign(desk: WorkspaceCache, visit: OpenWorkspace, task: Task, current: Tree) -> Operation[set[str]]:
    """Paths that somebody else changed: outside the turns of this thread, or in another thread."""
    known: list[Entry] = yield from checkpoints(task.thread_id, visit.root)
    of_here = [entry for entry in known if isinstance(entry.payload, Checkpoint) and entry.payload.root]
    baseline = _baseline(desk, visit.cache.head, task.thread_id, of_here)
    if not baseline:
        return set()
    before = yield from resolve(desk, baseline)
    changed, removed = difference(before.tree, current)
    return {*changed, *removed}


def _baseline(desk: WorkspaceCache, head: CacheHeader | None, thread_id: str, known: Sequence[Entry]) -> str:
    """The manifest since which every change is somebody else's; '' while the thread's own work is going on."""
    if head is not None and head.place == desk.place:
        is_ours = head.thread_id == thread_id or any(entry.id == head.checkpoint for entry in known)
        if is_ours:
            return head.manifest if head.is_closed else ""
    newest = known[-1].payload if known else None
    if not isinstance(newest, Checkpoint):
        return ""
    return newest.manifest if head is not None or newest.moment == "after_turn" else ""


def _apply(
    visit: OpenWorkspace, plan: RestorePlan, current: Tree, pledge: CommitMarker | None
) -> Operation[Staging | None]:
    """Stage and change the files; on any failure they are as before."""
    if plan.is_empty:
        return None
    disk = visit.desk.disk
    root_mode = os.fstat(visit.folder.fd).st_mode & 0o777
    actions, contents = actions_for(plan, current, root_mode)
    staging: Staging = yield Work(function=guarded, arguments=(visit, open_staging, visit.own.fd, disk))
    try:
        staged = yield from _stage(visit, staging, actions, contents, pledge)
    except BaseException:
        staging.close()
        raise
    try:
        yield Work(function=change_files, arguments=(visit, staging, staged))
    except (Exception, GeneratorExit):
        raise
    except BaseException:
        # Cancelled while the files were being changed: the leaf did not move, so they must not stay so.
        yield Work(function=take_back_pending, arguments=(visit, staging))
        raise
    return staging


def _stage(
    visit: OpenWorkspace,
    staging: Staging,
    actions: Sequence[Action],
    contents: dict[int, ManifestItem],
    pledge: CommitMarker | None,
) -> Operation[Staged]:
    disk = visit.desk.disk
    stats: dict[int, os.stat_result] = {}
    for batch in _batches(contents):
        datas = yield from read_files(tuple({item.hash for _, item in batch if item.hash}))
        for number, item in batch:
            stage = (visit, staging.stage, disk, number, item, datas.get(item.hash, b""))
            stats[number] = yield Work(function=guarded, arguments=stage)
    staged = Staged(actions=tuple(_with_stat(action, stats) for action in actions), pledge=pledge)
    yield Work(function=guarded, arguments=(visit, staging.make_ready, disk, staged))
    return staged


def _with_stat(action: Action, stats: dict[int, os.stat_result]) -> Action:
    if action.kind not in {"put", "replace"}:
        return action
    status = stats[action.number]
    return replace(action, inode=status.st_ino, mtime_ns=status.st_mtime_ns)


def _batches(contents: dict[int, ManifestItem]) -> Iterator[list[tuple[int, ManifestItem]]]:
    batch: list[tuple[int, ManifestItem]] = []
    size = 0
    for number, item in contents.items():
        if batch and size + item.size > _BATCH_BYTES:
            yield batch
            batch, size = [], 0
        batch.append((number, item))
        size += item.size
    if batch:
        yield batch


def _has_happened(desk: WorkspaceCache, visit: OpenWorkspace, pledge: CommitMarker | None) -> Operation[bool]:
    """Whether the leaf move that an interrupted restore belongs to is in the reflog."""
    if pledge is None:
        return False
    if pledge.place != desk.place:
        if pledge.place == "memory:":
            return False
        raise PendingRestoreError(visit.root, pledge.place, pledge.thread_id)
    try:
        moves: Sequence[Move] = yield ReadMoves(thread_id=pledge.thread_id)
    except ThreadNotFoundError:
        return False
    return any(move.number == pledge.number and move.from_entry == pledge.from_entry for move in moves)


def _head(desk: WorkspaceCache, task: Task, checkpoint: str, *, is_closed: bool) -> CacheHeader:
    return CacheHeader(
        place=desk.place,
        thread_id=task.thread_id,
        checkpoint=checkpoint,
        manifest=task.checkpoint.manifest,
        is_closed=is_closed,
    )
