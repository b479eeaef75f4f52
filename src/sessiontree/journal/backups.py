"""Read backups: list them, verify them, and make the files of a store from one."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path

from sessiontree.errors import BackupError
from sessiontree.model._base import Progress, Record
from sessiontree.stores._io import Files, SyncFailedError
from sessiontree.stores._os_errors import translate_error
from sessiontree.stores.backup.folder import BackupFolder
from sessiontree.stores.backup.manifest import Manifest
from sessiontree.stores.backup.snapshot import SnapshotKind
from sessiontree.stores.sqlite.copies import is_noted_copy
from sessiontree.stores.sqlite.lineage import renew_stamp

__all__ = [
    "Backup",
    "backup_ids",
    "find_backup",
    "list_backups",
    "looks_like_copy",
    "unpack_backup",
    "verify_backup",
]


_SIDE_FILES = ("-wal", "-shm", "-journal")


class Backup(Record, frozen=True, kw_only=True):
    """One of the backups in a folder."""

    id: str
    created_ns: int
    kind: SnapshotKind
    place: str
    """Where the store was."""
    files: int
    bytes: int


def list_backups(folder: str | os.PathLike[str]) -> list[Backup]:
    """Return the complete backups in a folder, oldest first. Raises BackupError if the folder is not one of backups.

    A backup with a damaged manifest is left out; ``backup_ids`` returns its id too, and ``verify_backup`` its problem.
    """
    opened = _opened(folder)
    found: list[Backup] = []
    for backup_id in opened.ids():
        with suppress(BackupError):
            found.append(_backup(*opened.manifest(backup_id)))
    return found


def backup_ids(folder: str | os.PathLike[str]) -> list[str]:
    """Return the ids of all backups in a folder, oldest first, also of those that cannot be read."""
    return _opened(folder).ids()


def verify_backup(
    folder: str | os.PathLike[str], backup_id: str | None = None, *, progress: Progress | None = None
) -> list[str]:
    """Read every piece of a backup (the last one, if none is named) and return what is missing or damaged.

    ``progress(done, total)`` is called with numbers of pieces.
    """
    opened = _opened(folder)
    try:
        _, manifest = opened.manifest(backup_id)
    except BackupError as error:
        if backup_id not in opened.ids():
            raise
        return [str(error)]
    return opened.verify(manifest, progress)


def find_backup(folder: str | os.PathLike[str], backup_id: str | None = None) -> Backup:
    """Return a backup, or the last one. Raises BackupError if there is none, or if its manifest is damaged."""
    return _backup(*_opened(folder).manifest(backup_id))


def unpack_backup(
    folder: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    backup_id: str | None = None,
    progress: Progress | None = None,
) -> Backup:
    """Write the files of a backup to a path where nothing is, all of them or nothing.

    Every byte is checked against the hashes. ``progress(done, total)`` is called with byte counts.
    """
    opened = _opened(folder)
    backup_id, manifest = opened.manifest(backup_id)
    path = Path(os.path.realpath(target))
    new = path.with_name(path.name + "-restoring")
    try:
        _refuse_existing(path, manifest.kind)
        for suffix in ("", *_SIDE_FILES):  # of a restore that was killed
            _remove(new.with_name(new.name + suffix))
        Files().make_folders(path.parent)
        if manifest.kind == "sqlite":
            _write(opened, manifest, {manifest.files[0].name: new}, progress)
            renew_stamp(new)
            path.with_name(path.name + "-gate").touch(mode=0o600)  # its lock file: nothing is missing
        else:
            new.mkdir(mode=0o700)
            _write(opened, manifest, {file.name: new / file.name for file in manifest.files}, progress)
        Files().replace(new, path)
    except SyncFailedError as error:
        problem = f"backup {backup_id} is restored, but a power cut could remove it ({error}); sync the disk"
        raise BackupError(str(path), problem) from error
    except OSError as error:
        _give_up(new)
        raise translate_error(str(path), error) from error
    except BaseException:
        _give_up(new)
        raise
    return _backup(backup_id, manifest)


def looks_like_copy(file: str | os.PathLike[str]) -> bool:
    """Return whether a SQLite store that was opened looks like a copy without its log, which may miss the last entries.

    A store that was moved while it was closed looks the same, and misses nothing. ``repair`` forgets it.
    """
    return is_noted_copy(Path(os.path.realpath(file)))


def _opened(folder: str | os.PathLike[str]) -> BackupFolder:
    opened = BackupFolder.at(folder)
    opened.open()
    return opened


def _backup(backup_id: str, manifest: Manifest) -> Backup:
    return Backup(
        id=backup_id,
        created_ns=manifest.created_ns,
        kind=manifest.kind,
        place=manifest.place,
        files=len(manifest.files),
        bytes=manifest.size,
    )


def _refuse_existing(path: Path, kind: SnapshotKind) -> None:
    is_empty_folder = path.is_dir() and not any(path.iterdir())
    if is_empty_folder and kind == "sqlite":
        raise BackupError(str(path), "this is a folder, and the store is a file; name a file in it")
    if path.exists() and not is_empty_folder:
        raise BackupError(str(path), "there is something already; restore to another path, or move it away first")
    for suffix in _SIDE_FILES:
        side = path.with_name(path.name + suffix)
        # SQLite would take the log of another store for that of the restored one.
        if side.exists():
            raise BackupError(str(path), f"{side.name} of another store is left beside it; move it away first")


def _write(folder: BackupFolder, manifest: Manifest, paths: dict[str, Path], progress: Progress | None) -> None:
    files = Files()
    done = 0
    for stored in manifest.files:
        path = paths[stored.name]
        files.make_folders(path.parent)
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            for data in folder.read(stored):
                files.append(file, data)
                done += len(data)
                if progress is not None:
                    progress(done, manifest.size)
            files.sync(file)
        finally:
            os.close(file)
    for parent in {path.parent for path in paths.values()}:
        files.sync_folder(parent)


def _give_up(new: Path) -> None:
    """Remove what was written; if that fails, the next restore does it, and the first failure is the one to report."""
    with suppress(OSError):
        _remove(new)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
