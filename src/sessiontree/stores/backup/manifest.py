"""The manifest of a backup: which files the store had, and which pieces make them up."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import msgspec

from sessiontree.errors import BackupError, NewerFormatError
from sessiontree.model._base import UNREADABLE, Record, json_decoder, moment
from sessiontree.model.blobs import hash_of
from sessiontree.stores.backup.snapshot import SnapshotKind

__all__ = [
    "FILE_NAME",
    "PIECE_BYTES",
    "BackupReport",
    "Manifest",
    "StoredFile",
    "decode_manifest",
    "encode_manifest",
    "time_of",
]


PIECE_BYTES = 256 << 10
"""Files are cut into pieces of this size: a change of one page or line copies one piece."""

FORMAT = "sessiontree-backup"
VERSION = 1
SQLITE_NAME = "journal.db"
_TIME = "%Y%m%dT%H%M%S.%fZ"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_HASH = re.compile(r"[0-9a-f]{64}")
_ID = re.compile(r"\d{8}T\d{6}\.\d{6}Z-[0-9a-f]{16}")
FILE_NAME = re.compile(r"(?:[A-Za-z0-9_-][A-Za-z0-9._-]*/){0,3}[A-Za-z0-9_-][A-Za-z0-9._-]*")


class StoredFile(Record, frozen=True, kw_only=True):
    """A file of the store: its pieces in order, all of PIECE_BYTES but the last."""

    name: str
    size: int
    sha256: str
    pieces: tuple[str, ...] = ()
    stamp: str = ""

    def sized_pieces(self) -> Iterator[tuple[str, int]]:
        """Yield the hash and the size of each piece."""
        for number, piece in enumerate(self.pieces):
            yield piece, min(PIECE_BYTES, self.size - number * PIECE_BYTES)


class Manifest(Record, frozen=True, kw_only=True):
    """One backup: the store as it was at one moment after the backup began."""

    format: str = FORMAT
    version: int
    created_ns: int
    kind: SnapshotKind
    place: str
    """Where the store was."""
    files: tuple[StoredFile, ...]

    @property
    def size(self) -> int:
        """How many bytes the files have."""
        return sum(file.size for file in self.files)

    def pieces(self) -> dict[str, int]:
        """Return the size of every piece by its hash."""
        return {piece: size for file in self.files for piece, size in file.sized_pieces()}


class BackupReport(Record, frozen=True, kw_only=True):
    """What a backup did. ``id`` names it among the backups of its folder."""

    id: str
    folder: str
    files: int
    bytes: int
    """The size of the store."""
    copied_bytes: int
    """How much of it this run had to copy; the rest was there from earlier backups, and was checked."""
    repaired: tuple[str, ...] = ()
    """The damaged pieces of earlier backups that were stored again: the disk may be failing."""
    removed: tuple[str, ...] = ()
    """The ids of older backups that were removed."""


def encode_manifest(manifest: Manifest) -> tuple[str, bytes]:
    """Return the id of a backup and the text of its manifest. The id ends with a part of the hash of the text."""
    text = msgspec.json.encode(manifest) + b"\n"
    return f"{moment(manifest.created_ns):{_TIME}}-{hash_of(text)[:16]}", text


def time_of(name: str) -> int | None:
    """When the backup with this id was made, in nanoseconds; ``None`` if it is no id."""
    if _ID.fullmatch(name) is None:
        return None
    try:
        made = datetime.strptime(name.partition("-")[0], _TIME).replace(tzinfo=UTC)
    except ValueError:
        return None
    return (made - _EPOCH) // timedelta(microseconds=1) * 1000


def decode_manifest(place: str, name: str, text: bytes) -> Manifest:
    """Return a manifest. Raises BackupError if its text was changed or names a file outside the store."""
    if hash_of(text)[:16] != name.rpartition("-")[2]:
        raise BackupError(place, f"the manifest of backup {name} is damaged; use another backup")
    try:
        head = json_decoder(_Head).decode(text)
        if head.version > VERSION:
            raise NewerFormatError(place, head.version, VERSION)
        manifest = json_decoder(Manifest).decode(text)
    except UNREADABLE as error:
        raise BackupError(place, f"the manifest of backup {name} cannot be read: {error}") from error
    problem = _problem(manifest)
    if problem:
        raise BackupError(place, f"the manifest of backup {name} is not valid: {problem}")
    return manifest


class _Head(Record, frozen=True, kw_only=True):
    version: int


def _problem(manifest: Manifest) -> str:
    """What is wrong with a manifest that somebody else may have written, or ""."""
    names = [file.name for file in manifest.files]
    if manifest.kind == "sqlite" and names != [SQLITE_NAME]:
        return f"a backup of SQLite has the file {SQLITE_NAME} only"
    if len(set(names)) < len(names):
        return "two files have the same name"
    for file in manifest.files:
        if FILE_NAME.fullmatch(file.name) is None:
            return f"the file name {file.name!r}"
        if file.size < 0 or len(file.pieces) != -(-file.size // PIECE_BYTES):
            return f"the pieces of {file.name!r} do not fit its size"
        if not all(_HASH.fullmatch(piece) for piece in (*file.pieces, file.sha256)):
            return f"a hash in {file.name!r}"
    return ""
