"""Staging: a restore is prepared in the state directory, and can be rolled back until it is settled.

``restore.new``   being prepared: no file has changed, it may be deleted
``restore``       the plan is on the disk: files may have changed, and ``old`` holds them as they were
``restore.done``  settled: it may be deleted
"""

from __future__ import annotations

import contextlib
import os

import msgspec

from sessiontree.errors import DamagedDataError
from sessiontree.model._base import UNREADABLE, Record, msgpack_decoder
from sessiontree.model.manifest import ManifestItem
from sessiontree.workspace.disk import Disk
from sessiontree.workspace.plan import Action

__all__ = ["CommitMarker", "Staged", "Staging", "discard", "open_staging", "pending_restore"]


_PREPARING, _READY, _DONE = "restore.new", "restore", "restore.done"
_NEW, _OLD, _PLAN = "new", "old", "plan"
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class CommitMarker(Record, frozen=True, kw_only=True):
    """The leaf move that decides about a restore: the new files stay if it is in the reflog, and go if it is not."""

    place: str
    thread_id: str
    from_entry: str
    number: int


class Staged(Record, frozen=True, kw_only=True):
    """A restore as it is written to the disk before any file changes."""

    actions: tuple[Action, ...] = ()
    marker: CommitMarker | None = msgspec.field(default=None, name="pledge")


class Staging:
    """The open staging directory: ``new`` holds the files to put in place, ``old`` the files that were there."""

    def __init__(self, state_fd: int, name: str) -> None:
        self.state_fd = state_fd
        self.fd = os.open(name, _FOLDER, dir_fd=state_fd)
        self.new = os.open(_NEW, _FOLDER, dir_fd=self.fd)
        self.old = os.open(_OLD, _FOLDER, dir_fd=self.fd)

    def close(self) -> None:
        """Close the directory; closing it twice is harmless."""
        for fd in (self.old, self.new, self.fd):
            if fd >= 0:
                os.close(fd)
        self.old = self.new = self.fd = -1

    def stage(self, disk: Disk, number: int, item: ManifestItem, data: bytes) -> os.stat_result:
        """Write a file or link, ready to be renamed into place, and return its stat."""
        name = str(number)
        if item.kind == "link":
            disk.make_link(self.new, name, item.content)
        else:
            disk.write_file(self.new, name, data, item.mode)
        return os.stat(name, dir_fd=self.new, follow_symlinks=False)

    def make_ready(self, disk: Disk, staged: Staged) -> None:
        """Write the plan and sync everything: from here on files may change."""
        disk.write_file(self.fd, _PLAN, msgspec.msgpack.encode(staged), 0o600)
        disk.sync(self.new)
        disk.sync(self.fd)
        disk.rename(self.state_fd, _PREPARING, self.state_fd, _READY)
        disk.sync(self.state_fd)

    def settle(self, disk: Disk) -> None:
        """Mark the restore as settled: it can no longer be rolled back."""
        disk.rename(self.state_fd, _READY, self.state_fd, _DONE)
        disk.sync(self.state_fd)

    def has_new(self, number: int) -> bool:
        """Return whether a staged file has not been put in place yet."""
        return _has(self.new, str(number))

    def has_old(self, number: int) -> bool:
        """Return whether the old file of an action is kept here."""
        return _has(self.old, str(number))


def open_staging(state_fd: int, disk: Disk) -> Staging:
    """Make a new staging directory; leftovers of an earlier attempt are deleted."""
    discard(state_fd, disk)
    for path in (_PREPARING, f"{_PREPARING}/{_NEW}", f"{_PREPARING}/{_OLD}"):
        disk.make_folder(state_fd, path)
    return Staging(state_fd, _PREPARING)


def pending_restore(state_fd: int) -> tuple[Staging, Staged] | None:
    """Return the restore that was interrupted after it may have changed files, if there is one."""
    if not _has(state_fd, _READY):
        return None
    staging = Staging(state_fd, _READY)
    with open(os.open(_PLAN, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=staging.fd), "rb") as file:  # noqa: PTH123
        data = file.read()
    try:
        return staging, msgpack_decoder(Staged).decode(data)
    except UNREADABLE as error:
        staging.close()
        raise DamagedDataError(f"{_READY}/{_PLAN}", 0, str(error)) from error


def discard(state_fd: int, disk: Disk) -> None:
    """Delete staging directories that are settled or never became ready."""
    for name in (_PREPARING, _DONE):
        if _has(state_fd, name):
            _remove_tree(state_fd, name, disk)


def _remove_tree(above: int, name: str, disk: Disk) -> None:
    """Delete a directory. Folders that were moved here may be read-only."""
    with contextlib.suppress(PermissionError):
        disk.set_mode(above, name, 0o700)
    fd = os.open(name, _FOLDER, dir_fd=above)
    try:
        with os.scandir(fd) as listing:
            entries = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in listing]
        for inner, is_folder in entries:
            if is_folder:
                _remove_tree(fd, inner, disk)
            else:
                disk.remove(fd, inner)
    finally:
        os.close(fd)
    disk.remove_folder(above, name)


def _has(fd: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=fd, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True
