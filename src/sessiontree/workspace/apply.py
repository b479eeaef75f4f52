"""Apply a restore: prepare it beside the files, change the files action by action, and roll back from any state.

Every function here blocks on the disk. An error leaves the folder as it was; a crash leaves a pending restore, which the
next operation on the folder finishes or rolls back.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterable, Iterator, Sequence

from sessiontree.errors import FolderChangedError, WorkspaceError
from sessiontree.model.blobs import Blob, data_of
from sessiontree.model.manifest import ManifestItem
from sessiontree.workspace.cache import CacheHeader
from sessiontree.workspace.disk import Disk
from sessiontree.workspace.open_workspace import OpenWorkspace
from sessiontree.workspace.plan import Action
from sessiontree.workspace.safe_paths import Folder, check_path, parts_of
from sessiontree.workspace.scan import key_of
from sessiontree.workspace.staging import Staged, Staging, discard, open_staging, pending_restore

__all__ = [
    "change_files",
    "commit",
    "finish",
    "prepare",
    "roll_back",
    "roll_back_pending",
    "settle_and_save",
    "stage_files",
]


_NO_HARD_LINKS = frozenset({errno.EPERM, errno.EOPNOTSUPP, errno.EMLINK, errno.EXDEV, errno.ENOSYS, errno.EACCES})


def prepare(workspace: OpenWorkspace) -> Staging:
    """Make the directories in which a restore is staged."""
    with _discard_on_error(workspace):
        return open_staging(workspace.state.fd, workspace.cache.disk)


def stage_files(
    workspace: OpenWorkspace, staging: Staging, items: Iterable[tuple[int, ManifestItem]], blobs: Sequence[Blob]
) -> dict[int, os.stat_result]:
    """Write files beside their places, ready to be renamed; return the stat of each by its number."""
    contents = {blob.hash: data_of(blob) for blob in blobs}
    disk = workspace.cache.disk
    with _discard_on_error(workspace):
        return {number: staging.stage(disk, number, item, contents.get(item.hash, b"")) for number, item in items}


def change_files(workspace: OpenWorkspace, staging: Staging, staged: Staged) -> None:
    """Write the plan to the disk, then do every action of it; on an error, roll back."""
    try:
        with _discard_on_error(workspace):
            staging.make_ready(workspace.cache.disk, staged)
    except BaseException:
        staging.close()
        raise
    try:
        _do_all(workspace, staging, staged)
    except OSError as error:
        roll_back(workspace, staging, staged)
        raise _translate_error(workspace, error) from error
    except BaseException:
        roll_back(workspace, staging, staged)
        raise


def roll_back(workspace: OpenWorkspace, staging: Staging, staged: Staged) -> None:
    """Undo whatever was done. May be interrupted and repeated any number of times."""
    folder, disk = workspace.folder, workspace.cache.disk
    folder.leave()
    try:
        for action in reversed(staged.actions):
            _undo(folder, staging, action, _path(folder, action), disk)
        _sync_touched(folder, staged.actions, disk)
    except OSError as error:
        staging.close()
        problem = f"is partly restored ({error}); fix the cause, then call workspace.recover()"
        raise WorkspaceError(workspace.root, problem) from error
    _finish_if_possible(workspace, staging)


def roll_back_pending(workspace: OpenWorkspace, staging: Staging) -> None:
    """Roll back the restore that is on the disk, if it got as far as that."""
    staging.close()
    found = pending_restore(workspace.state.fd)
    if found is not None:
        roll_back(workspace, *found)


def commit(workspace: OpenWorkspace, staging: Staging) -> None:
    """Make a restore final that no leaf move decides about."""
    try:
        finish(workspace, staging)
    except OSError as error:
        roll_back_pending(workspace, staging)
        raise _translate_error(workspace, error) from error


def settle_and_save(workspace: OpenWorkspace, staging: Staging | None, head: CacheHeader) -> None:
    """Clean up after a leaf move with files, and record what the folder holds now."""
    if staging is not None:
        _finish_if_possible(workspace, staging)
    workspace.set_head(head)


def finish(workspace: OpenWorkspace, staging: Staging) -> None:
    """Mark a restore as settled and delete what was staged for it."""
    workspace.folder.leave()
    try:
        staging.settle(workspace.cache.disk)
    finally:
        staging.close()
    discard(workspace.state.fd, workspace.cache.disk)


def _finish_if_possible(workspace: OpenWorkspace, staging: Staging) -> None:
    """Finish; if the disk is too full to record it, the next operation on the folder does."""
    with contextlib.suppress(OSError):
        finish(workspace, staging)


@contextlib.contextmanager
def _discard_on_error(workspace: OpenWorkspace) -> Iterator[None]:
    """Delete what was staged if the disk fails, for example because it is full: no file was changed yet."""
    try:
        yield
    except OSError as error:
        discard(workspace.state.fd, workspace.cache.disk)
        raise _translate_error(workspace, error) from error


def _translate_error(workspace: OpenWorkspace, error: OSError) -> WorkspaceError:
    problem = "no space left" if error.errno in {errno.ENOSPC, errno.EDQUOT} else str(error)
    return WorkspaceError(workspace.root, f"cannot be restored ({problem}); it is as it was before")


def _do_all(workspace: OpenWorkspace, staging: Staging, staged: Staged) -> None:
    folder, disk = workspace.folder, workspace.cache.disk
    for action in staged.actions:
        path = _path(folder, action)
        _check_unchanged(workspace, action, path)
        _do(folder, staging, action, path, disk)
    _sync_touched(folder, staged.actions, disk)


def _path(folder: Folder, action: Action) -> str:
    path = os.fsdecode(action.path)
    if path or action.kind != "chmod":
        check_path(folder.root, path)
    return path


def _check_unchanged(workspace: OpenWorkspace, action: Action, path: str) -> None:
    """Raise if a path changed since it was last read."""
    folder = workspace.folder
    match action.kind:
        case "put" | "make_folder":
            if folder.look(path) is not None:
                raise FolderChangedError(folder.root, path)
        case "replace" | "remove":
            status, known = folder.look(path), workspace.key_at(path)
            if status is None or (known is not None and key_of(status) != known):
                raise FolderChangedError(folder.root, path)
        case _:
            return


def _do(folder: Folder, staging: Staging, action: Action, path: str, disk: Disk) -> None:
    fd, name = folder.place(path) if path else (folder.fd, ".")
    number = str(action.number)
    match action.kind:
        case "chmod":
            disk.set_mode(fd, name, action.new_mode)
        case "make_folder":
            disk.make_folder(fd, name)
        case "remove_folder":
            folder.leave()
            disk.remove_folder(folder.place(path)[0], name)
        case "remove":
            folder.leave()
            disk.rename(folder.place(path)[0], name, staging.old, number)
        case "put":
            disk.rename(staging.new, number, fd, name)
        case "replace":
            _keep_old(staging, number, fd, name, disk)
            disk.rename(staging.new, number, fd, name)


def _keep_old(staging: Staging, number: str, fd: int, name: str, disk: Disk) -> None:
    """Give the old file a second name, so that its path always holds a file; move it where links are not possible."""
    try:
        disk.link(fd, name, staging.old, number)
    except OSError as error:
        if error.errno not in _NO_HARD_LINKS:
            raise
        disk.rename(fd, name, staging.old, number)


def _undo(folder: Folder, staging: Staging, action: Action, path: str, disk: Disk) -> None:
    """Undo an action if it was done. A file that was put in its place since then stays: the checkpoint has the old one."""
    status = folder.look(path) if path else os.fstat(folder.fd)
    place = _locate(folder, path)
    if place is None:
        return
    match action.kind:
        case "chmod":
            if status is not None:
                disk.set_mode(*place, action.old_mode)
        case "make_folder":
            if status is not None:
                _remove_if_empty(folder, path, disk)
        case "remove_folder":
            if status is None:
                disk.make_folder(*place)
            if status is None or stat.S_ISDIR(status.st_mode):
                # Writable while its files are put back; the undo of the first action restores its mode.
                disk.set_mode(*place, action.old_mode | 0o300)
        case "put":
            if status is not None and _is_ours(status, action) and not staging.has_new(action.number):
                disk.remove(*place)
        case "remove" | "replace":
            if staging.has_old(action.number) and (status is None or _is_ours(status, action)):
                disk.rename(staging.old, str(action.number), *place)


def _locate(folder: Folder, path: str) -> tuple[int, str] | None:
    """Return the descriptor and name of a path; None if the folder that it was in is gone."""
    folder.leave()
    try:
        return folder.place(path) if path else (folder.fd, ".")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        if error.errno == errno.ELOOP:
            return None
        raise


def _is_ours(status: os.stat_result, action: Action) -> bool:
    return action.inode != 0 and (status.st_ino, status.st_mtime_ns) == (action.inode, action.mtime_ns)


def _remove_if_empty(folder: Folder, path: str, disk: Disk) -> None:
    """Remove a folder that the restore made, unless something else was put into it."""
    try:
        disk.remove_folder(*folder.place(path))
    except OSError as error:
        if error.errno not in {errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR}:
            raise


def _sync_touched(folder: Folder, actions: Iterable[Action], disk: Disk) -> None:
    for path in sorted({parts_of(os.fsdecode(action.path))[0] for action in actions}):
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            disk.sync(folder.enter(path))
