"""Restore: doing the actions of a plan one by one, and undoing them in any state that a kill left behind.

A restore in a visited folder: done whole, or taken back; what goes wrong is told in our words.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Callable, Iterable
from typing import Any

from sessiontree.errors import FolderChangedError, WorkspaceError
from sessiontree.workspace.cache import Key, key_of
from sessiontree.workspace.disk import Disk
from sessiontree.workspace.open_workspace import OpenWorkspace
from sessiontree.workspace.plan import Action
from sessiontree.workspace.safe_paths import Folder, check_path, parts_of
from sessiontree.workspace.staging import Staged, Staging, discard, pending_restore

__all__ = [
    "apply",
    "change_files",
    "commit",
    "finish",
    "guarded",
    "roll_back",
    "take_back",
    "take_back_pending",
    "tidy",
]


_NO_HARD_LINKS = frozenset({errno.EPERM, errno.EOPNOTSUPP, errno.EMLINK, errno.EXDEV, errno.ENOSYS, errno.EACCES})


def apply(folder: Folder, staging: Staging, staged: Staged, disk: Disk, key_at: Callable[[str], Key | None]) -> None:
    """Do everything; ``key_at`` says what each file was like when it was last read, so that no later change is lost."""
    for action in staged.actions:
        path = _path(folder, action)
        _check_unchanged(folder, action, path, key_at)
        _do(folder, staging, action, path, disk)
    _sync_touched(folder, staged.actions, disk)


def roll_back(folder: Folder, staging: Staging, staged: Staged, disk: Disk) -> None:
    """Undo whatever was done; may be killed and called again as often as it takes."""
    for action in reversed(staged.actions):
        _undo(folder, staging, action, _path(folder, action), disk)
    _sync_touched(folder, staged.actions, disk)


def _path(folder: Folder, action: Action) -> str:
    path = os.fsdecode(action.path)
    if path or action.kind != "chmod":
        check_path(folder.root, path)
    return path


def _check_unchanged(folder: Folder, action: Action, path: str, key_at: Callable[[str], Key | None]) -> None:
    match action.kind:
        case "put" | "make_folder":
            if folder.look(path) is not None:
                raise FolderChangedError(folder.root, path)
        case "replace" | "remove":
            status, known = folder.look(path), key_at(path)
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
    """A second name for the old file, so that at no moment nothing is there; where that cannot be, move it."""
    try:
        disk.link(fd, name, staging.old, number)
    except OSError as error:
        if error.errno not in _NO_HARD_LINKS:
            raise
        disk.rename(fd, name, staging.old, number)


def _undo(folder: Folder, staging: Staging, action: Action, path: str, disk: Disk) -> None:
    """What others put in a place after a crash stays theirs; the checkpoint before the restore has what was there."""
    status = folder.look(path) if path else os.fstat(folder.fd)
    place = _reached(folder, path)
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
                # Open to its owner while its files come back; one that was closed is closed again by the first action.
                disk.set_mode(*place, action.old_mode | 0o300)
        case "put":
            if status is not None and _is_ours(status, action) and not staging.has_new(action.number):
                disk.remove(*place)
        case "remove" | "replace":
            if staging.has_old(action.number) and (status is None or _is_ours(status, action)):
                disk.rename(staging.old, str(action.number), *place)


def _reached(folder: Folder, path: str) -> tuple[int, str] | None:
    """Where a path is; None if somebody took away the folder that it was in."""
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
    """Something that others put into a folder of ours meanwhile is theirs and stays."""
    try:
        disk.remove_folder(*folder.place(path))
    except OSError as error:
        if error.errno not in {errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR}:
            raise


def _sync_touched(folder: Folder, actions: Iterable[Action], disk: Disk) -> None:
    for path in sorted({parts_of(os.fsdecode(action.path))[0] for action in actions}):
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            disk.sync(folder.enter(path))


def change_files(visit: OpenWorkspace, staging: Staging, staged: Staged) -> None:
    try:
        apply(visit.folder, staging, staged, visit.desk.disk, visit.key_at)
    except OSError as error:
        take_back(visit, staging, staged)
        raise _in_our_words(visit, error) from error
    except BaseException:
        take_back(visit, staging, staged)
        raise


def guarded(visit: OpenWorkspace, function: Callable[..., Any], *arguments: Any) -> Any:
    """Preparing may fail, for example for lack of space: then the preparation goes, and nothing was changed."""
    try:
        return function(*arguments)
    except OSError as error:
        discard(visit.own.fd, visit.desk.disk)
        raise _in_our_words(visit, error) from error


def _in_our_words(visit: OpenWorkspace, error: OSError) -> WorkspaceError:
    problem = "no space left" if error.errno in {errno.ENOSPC, errno.EDQUOT} else str(error)
    return WorkspaceError(visit.root, f"cannot be restored ({problem}); it is as it was before")


def take_back_pending(visit: OpenWorkspace, staging: Staging) -> None:
    staging.close()
    found = pending_restore(visit.own.fd)
    if found is not None:
        take_back(visit, *found)


def take_back(visit: OpenWorkspace, staging: Staging, staged: Staged) -> None:
    visit.folder.leave()
    try:
        roll_back(visit.folder, staging, staged, visit.desk.disk)
    except OSError as error:
        staging.close()
        problem = f"was left between two states ({error}); workspace.recover() brings it back when that is mended"
        raise WorkspaceError(visit.root, problem) from error
    tidy(visit, staging)


def commit(visit: OpenWorkspace, staging: Staging) -> None:
    """A restore without a leaf move counts once it is settled."""
    try:
        finish(visit, staging)
    except OSError as error:
        take_back_pending(visit, staging)
        raise _in_our_words(visit, error) from error


def tidy(visit: OpenWorkspace, staging: Staging) -> None:
    """What is decided is decided, even if the disk has no room to write that down: the next visit tidies up."""
    with contextlib.suppress(OSError):
        finish(visit, staging)


def finish(visit: OpenWorkspace, staging: Staging) -> None:
    visit.folder.leave()
    try:
        staging.settle(visit.desk.disk)
    finally:
        staging.close()
    discard(visit.own.fd, visit.desk.disk)
