"""Claude Code's backups of the files that it edits, as checkpoints that hold these files and no others."""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath

from msgspec.structs import replace

from sessiontree.model import Blob, Checkpoint, blob_of
from sessiontree.model.manifest import UNKNOWN_MODE, LeftOut, Manifest, ManifestItem, encode_manifest
from sessiontree.transfer.formats._wire import Json, mapping, text

__all__ = ["backup_folder", "checkpoint_of"]


_LARGEST = 64 * 1024 * 1024
_FOLDER = ManifestItem("folder", UNKNOWN_MODE, 0, b"")
_OTHERS = LeftOut(path="", reason="not_tracked")


def backup_folder(session_file: Path, session_id: str) -> Path:
    """Where the backups of a session are, beside the folder of all projects."""
    return session_file.absolute().parent.parent.parent / "file-history" / session_id


def checkpoint_of(snapshot: Json, folder: Path, *, target: str, root: str) -> tuple[Checkpoint, tuple[Blob, ...]]:
    """The checkpoint for a snapshot, and the blobs that it needs.

    If a backup is gone, the checkpoint is kept without its files: half of a snapshot must not be restored. Files outside
    the project's folder are never restored either.
    """
    backups = {path: _backup_name(backup) for path, backup in mapping(snapshot.get("trackedFileBackups")).items()}
    inside = {_relative(path, root): name for path, name in backups.items() if name}
    inside.pop("", None)
    contents = {path: _content(folder, name) for path, name in inside.items()}
    blobs = {path: blob_of(data) for path, data in contents.items() if data is not None}
    checkpoint = Checkpoint(target=target, root=root, files=len(inside), left_out=1)
    if not blobs or len(blobs) < len(contents):
        return checkpoint, ()
    files = {
        path: ManifestItem("file", UNKNOWN_MODE, blob.size, bytes.fromhex(blob.hash)) for path, blob in blobs.items()
    }
    folders = {str(above): _FOLDER for path in files for above in list(PurePosixPath(path).parents)[:-1]}
    listed = blob_of(encode_manifest(Manifest(changed=folders | files, left_out=(_OTHERS,))))
    return replace(checkpoint, manifest=listed.hash), (listed, *blobs.values())


def _backup_name(backup: object) -> str:
    """The name of the file that holds a backup; empty if there was nothing to back up."""
    return text(mapping(backup).get("backupFileName"))


def _relative(path: str, root: str) -> str:
    """The path inside the project's folder; empty if it is outside, or one of git's own files."""
    found = os.path.normpath(os.path.join(root or "/", path))  # noqa: PTH118  a path of another machine
    inside = os.path.relpath(found, root or "/")
    parts = PurePosixPath(inside.casefold()).parts
    return "" if not parts or parts[0] in {"..", ".sessiontree"} or ".git" in parts else inside


def _content(folder: Path, name: str) -> bytes | None:
    """The bytes of a backup. Only a file in this folder is read, whatever the name is."""
    path = folder / PurePosixPath(name).name
    try:
        is_small = path.is_file() and not path.is_symlink() and path.stat().st_size <= _LARGEST
        return path.read_bytes() if is_small else None
    except (OSError, ValueError):
        return None
