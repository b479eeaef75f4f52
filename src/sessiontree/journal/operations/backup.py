"""Back up a store: take a snapshot, store the pieces that are missing, then write the manifest."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

from sessiontree.errors import BackupError, InvalidInputError, StoreError
from sessiontree.journal.operations.requests import Operation, Runtime, Work
from sessiontree.model._base import Progress
from sessiontree.stores._log import log_event
from sessiontree.stores.backup.folder import BackupFolder
from sessiontree.stores.backup.manifest import VERSION, BackupReport, Manifest, StoredFile
from sessiontree.stores.backup.snapshot import Snapshot, SnapshotOutdatedError, SnapshotRequest
from sessiontree.stores.queries import TakeSnapshot

__all__ = ["backup", "freeze"]


_ATTEMPTS_BESIDE_WRITERS = 3
_MICROSECOND = 1000


def backup(
    runtime: Runtime, place: str, target: str | os.PathLike[str], keep: int | None, progress: Progress | None
) -> Operation[BackupReport]:
    """Back up the store at ``place`` into the folder ``target``."""
    if keep is not None and not (isinstance(keep, int) and keep >= 1):
        raise InvalidInputError(f"keep must be a number from 1, not {keep!r}")
    folder = BackupFolder.at(target)
    path = folder.path
    _refuse_own_folder(place, path)
    yield Work(function=folder.create)
    with ExitStack() as stack:
        scratch = yield Work(function=stack.enter_context, arguments=(folder.locked(),))
        last: Manifest | None = yield Work(function=_last, arguments=(folder, place))
        known = {} if last is None else {file.name: file for file in last.files}
        # Backups are ordered by their times, also if the clock was set back.
        earliest_ns = folder.newest_ns() + _MICROSECOND
        copied = 0
        for attempt in range(_ATTEMPTS_BESIDE_WRITERS + 1):
            request = SnapshotRequest(
                scratch=scratch,
                known={name: file.stamp for name, file in known.items()},
                is_copied=attempt == _ATTEMPTS_BESIDE_WRITERS,
                progress=progress,
            )
            snapshot: Snapshot = yield TakeSnapshot(request=request)
            stored = _StoredFiles(known)
            is_whole = yield Work(function=stored.add, arguments=(folder, snapshot, progress))
            copied += stored.copied
            known = stored.files
            if is_whole:
                break
        else:
            raise BackupError(str(path), "files of the store were replaced while they were being read; try again")
        manifest = Manifest(
            version=VERSION,
            created_ns=max(runtime.clock(), earliest_ns),
            kind=snapshot.kind,
            place=snapshot.place,
            files=tuple(known[file.name] for file in snapshot.files),
        )
        backup_id = yield Work(function=folder.complete, arguments=(manifest,))
        try:
            removed = () if keep is None else (yield Work(function=folder.keep, arguments=(keep,)))
        except StoreError as error:
            problem = f"backup {backup_id} is complete, but older ones could not be removed ({error})"
            raise BackupError(str(path), problem) from error
        if folder.repaired:
            problem = (
                f"damaged pieces of earlier backups stored again: {len(folder.repaired)}; check the disk of the backups"
            )
            log_event("backup", "warning", problem, store=place, folder=str(path))
        log_event(
            "backup", "info", f"backup {backup_id} is complete", store=place, folder=str(path), copied_bytes=copied
        )
        return BackupReport(
            id=backup_id,
            folder=str(path),
            files=len(manifest.files),
            bytes=manifest.size,
            copied_bytes=copied,
            repaired=tuple(folder.repaired),
            removed=removed,
        )


def freeze(folder: str | os.PathLike[str]) -> Operation[str]:
    """Write the store as it is at one moment into an empty folder, and return the address of the copy."""
    for attempt in range(_ATTEMPTS_BESIDE_WRITERS + 1):
        scratch, copy = Path(folder) / f"scratch-{attempt}", Path(folder) / f"store-{attempt}"
        yield Work(function=scratch.mkdir)
        request = SnapshotRequest(scratch=scratch, known={}, is_copied=attempt == _ATTEMPTS_BESIDE_WRITERS)
        snapshot: Snapshot = yield TakeSnapshot(request=request)
        if (yield Work(function=_write, arguments=(snapshot, copy))):
            break
    return f"{snapshot.kind}:///{copy}"


def _write(snapshot: Snapshot, copy: Path) -> bool:
    """Write the files of a snapshot; return False if one was replaced meanwhile."""
    try:
        for file in snapshot.files:
            path = copy if snapshot.kind == "sqlite" else copy / file.name
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("wb") as written:
                written.writelines(file.read())
    except SnapshotOutdatedError:
        return False
    return True


def _refuse_own_folder(place: str, path: Path) -> None:
    store = Path(os.path.realpath(place))
    if path == store or store in path.parents:
        raise BackupError(str(path), "the backup would be inside the store; choose a folder elsewhere, on another disk")


def _last(folder: BackupFolder, place: str) -> Manifest | None:
    """The last backup, if there is one. Raises BackupError if it was of another store."""
    last = next((manifest for _, manifest in folder.readable()), None)
    if last is not None and last.place != place:
        raise BackupError(
            folder.place, f"the folder holds backups of {last.place}; choose a folder of its own for each store"
        )
    return last


class _StoredFiles:
    """The files that were stored so far; what is outdated is stored again by the next attempt."""

    def __init__(self, known: Mapping[str, StoredFile]) -> None:
        self.files = dict(known)
        self.copied = 0

    def add(self, folder: BackupFolder, snapshot: Snapshot, progress: Progress | None) -> bool:
        """Store a snapshot; return False if a file was replaced meanwhile."""
        try:
            for file, copied in folder.add_pieces(snapshot, self.files, progress):
                self.files[file.name] = file
                self.copied += copied
        except SnapshotOutdatedError:
            return False
        return True
