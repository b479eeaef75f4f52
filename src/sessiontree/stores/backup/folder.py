"""The folder of backups: pieces named by their hashes, and manifests.

A piece is written under another name, synced and renamed, so what has a name is complete; the manifest is written last.
An interrupted backup therefore leaves pieces without a manifest, which the next backup uses. It reads each piece that it
uses again: a disk may have damaged it since, and the new backup would be as bad as the old one.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import closing, contextmanager, suppress
from itertools import islice
from pathlib import Path

import msgspec

from sessiontree.errors import BackupError, DamagedDataError, NewerFormatError
from sessiontree.model._base import UNREADABLE, Progress, Record, json_decoder
from sessiontree.model.blobs import Blob, blob_of, check_blob, data_of, hash_of
from sessiontree.stores._io import FileLock, Files, SyncFailedError
from sessiontree.stores._os_errors import translate_error
from sessiontree.stores.backup.manifest import (
    FORMAT,
    PIECE_BYTES,
    VERSION,
    Manifest,
    StoredFile,
    decode_manifest,
    encode_manifest,
    time_of,
)
from sessiontree.stores.backup.snapshot import Snapshot, SnapshotFile

__all__ = ["BackupFolder"]


_PIECE = re.compile(r"[0-9a-f]{64}(?:\.new)?")
"""A piece, or one that was being written."""


class _Marker(Record, frozen=True, kw_only=True):
    """The content of ``sessiontree-backup.json``."""

    format: str
    version: int


class BackupFolder:
    """A folder of backups of one store."""

    def __init__(self, path: Path, files: Files | None = None) -> None:
        self.path = path
        self.place = str(path)
        self._files = files or Files()
        self._marker = path / "sessiontree-backup.json"
        self._lock = path / "lock"
        self._pieces = path / "pieces"
        self._manifests = path / "backups"
        self._sound: set[str] = set()
        self.repaired: list[str] = []
        """The damaged pieces of earlier backups that were stored again."""

    @classmethod
    def at(cls, path: str | os.PathLike[str]) -> BackupFolder:
        """The folder at a path. Raises BackupError for what no path can be."""
        try:
            return cls(Path(os.path.realpath(path)))
        except ValueError as error:
            raise BackupError(repr(path), f"this is no path: {error}") from error

    def create(self) -> None:
        """Create the folder, or use what is there. Raises BackupError, and changes nothing, if it is something else."""
        is_ours = self._is_ours()
        if not is_ours and self.path.is_dir() and not self._is_begun():
            raise BackupError(self.place, "the folder is not empty and holds no backups; choose a new folder")
        with self._translated():
            self._files.make_folders(self.path)
            with closing(FileLock(self._lock)) as lock, lock:
                for folder in (self._pieces, self._manifests):  # programs that copy folders may leave out empty ones
                    self._files.make_folder(folder)
                if is_ours or self._is_ours():
                    return
                marker = _Marker(format=FORMAT, version=VERSION)
                self._files.put(self._marker, msgspec.json.encode(marker) + b"\n")

    def open(self) -> None:
        """Use an existing folder. Raises BackupError if it holds no backups."""
        if not self._is_ours():
            raise BackupError(self.place, "there are no backups here; `sessiontree backup` makes one")

    def _is_begun(self) -> bool:
        """Whether the folder has nothing but what an interrupted ``create`` leaves."""
        folders = (self._pieces, self._manifests)
        begun = {*folders, self._lock, self._marker, self._marker.with_name(self._marker.name + ".new")}
        return set(self.path.iterdir()) <= begun and not any(any(folder.glob("*")) for folder in folders)

    @contextmanager
    def locked(self) -> Iterator[Path]:
        """Keep other backups and removals out; yields an empty folder for temporary files."""
        scratch = self.path / "scratch"
        with self._translated(), closing(FileLock(self._lock)) as lock, lock:
            shutil.rmtree(scratch, ignore_errors=True)
            scratch.mkdir(mode=0o700)
            try:
                yield scratch
            finally:
                shutil.rmtree(scratch, ignore_errors=True)

    def ids(self) -> list[str]:
        """Return the ids of all complete backups, oldest first."""
        return sorted(
            path.stem for path in self._manifests.glob("*.json") if time_of(path.stem) is not None and path.is_file()
        )

    def manifest(self, backup_id: str | None = None) -> tuple[str, Manifest]:
        """Return a backup, or the last one. Raises BackupError if there is none, or if its manifest is damaged."""
        found = self.ids()
        if backup_id is None:
            if not found:
                raise BackupError(self.place, "there is no complete backup here")
            backup_id = found[-1]
        elif backup_id not in found:
            raise BackupError(
                self.place, f"there is no backup {backup_id!r} here; `sessiontree backup FOLDER --list` shows them"
            )
        with self._translated():
            return backup_id, decode_manifest(
                self.place, backup_id, (self._manifests / f"{backup_id}.json").read_bytes()
            )

    def readable(self) -> Iterator[tuple[str, Manifest]]:
        """Yield the backups whose manifests are not damaged, newest first."""
        for backup_id in reversed(self.ids()):
            with suppress(BackupError):
                yield self.manifest(backup_id)

    def newest_ns(self) -> int:
        """Return the time of the last backup, also of one that cannot be read; 0 if there is none."""
        return max((time_of(backup_id) or 0 for backup_id in self.ids()), default=0)

    def add_pieces(
        self, snapshot: Snapshot, known: Mapping[str, StoredFile], progress: Progress | None
    ) -> Iterator[tuple[StoredFile, int]]:
        """Store the pieces that are missing or damaged; yield each file, and how many of its bytes were copied.

        A file with the stamp of a ``known`` one whose pieces are sound is not read. SnapshotOutdatedError is raised in the
        middle.
        """
        done, total = snapshot.copied, snapshot.copied + snapshot.size
        for file in snapshot.files:
            earlier = known.get(file.name)
            if earlier is not None and file.stamp and earlier.stamp == file.stamp and self._is_sound(earlier):
                yield earlier, 0
            else:
                yield self._add_file(file)
            done += file.size
            if progress is not None:
                progress(done, total)

    def complete(self, manifest: Manifest) -> str:
        """Make a backup count: sync the names of its pieces and write its manifest. Return its id.

        Raises BackupError with its id if the manifest is written and only its name could not be synced.
        """
        with self._translated():
            for folder in sorted({self._piece(piece).parent for piece in manifest.pieces()}):
                self._files.sync_folder(folder)
            self._files.sync_folder(self._pieces)
            backup_id, text = encode_manifest(manifest)
            decode_manifest(self.place, backup_id, text)  # what cannot be read must not count
            try:
                self._files.put(self._manifests / f"{backup_id}.json", text)
            except SyncFailedError as error:
                problem = f"backup {backup_id} is complete, but a power cut could remove it ({error}); make another one"
                raise BackupError(self.place, problem) from error
        return backup_id

    def keep(self, number: int) -> tuple[str, ...]:
        """Remove all but the last backups, and the pieces that no backup needs; return the ids of removed backups.

        Those that cannot be read are not counted, and go with those that are as old.
        """
        kept = [backup_id for backup_id, _ in islice(self.readable(), number)]
        removed = [backup_id for backup_id in self.ids() if backup_id < min(kept)]
        with self._translated():
            # The manifests first: a crash in between leaves pieces too many, never a manifest without its pieces.
            for backup_id in removed:
                self._files.remove(self._manifests / f"{backup_id}.json")
            # The pieces of a damaged manifest are not known, so all of them stay until it is removed.
            with suppress(BackupError):
                self._remove_pieces(
                    {piece for backup_id in self.ids() for piece in self.manifest(backup_id)[1].pieces()}
                )
        return tuple(removed)

    def _remove_pieces(self, needed: AbstractSet[str]) -> None:
        for path in self._pieces.glob("??/*"):
            if path.name not in needed and _PIECE.fullmatch(path.name):
                path.unlink()

    def verify(self, manifest: Manifest, progress: Progress | None = None) -> list[str]:
        """Read every piece of a backup; return what is wrong with it."""
        problems: list[str] = []
        pieces = manifest.pieces()
        for done, (piece, size) in enumerate(pieces.items(), start=1):
            try:
                check_blob(Blob(hash=piece, size=size, body=self._piece(piece).read_bytes()))
            except FileNotFoundError:
                problems.append(f"piece {piece} is missing")
            except (DamagedDataError, OSError) as error:
                reason = error.problem if isinstance(error, DamagedDataError) else str(error)
                problems.append(
                    f"piece {piece} is damaged ({reason}); the next backup stores it again if the store still has it"
                )
            if progress is not None:
                progress(done, len(pieces))
        return problems

    def read(self, file: StoredFile) -> Iterator[bytes]:
        """Yield the content of a file, checked against all hashes. Raises BackupError if a piece is damaged or missing."""
        whole = hashlib.sha256()
        for piece, size in file.sized_pieces():
            try:
                data = data_of(Blob(hash=piece, size=size, body=self._piece(piece).read_bytes()))
            except (FileNotFoundError, DamagedDataError) as error:
                problem = f"piece {piece} of {file.name!r} is missing or damaged; restore another backup"
                raise BackupError(self.place, problem) from error
            whole.update(data)
            yield data
        if whole.hexdigest() != file.sha256:
            raise BackupError(self.place, f"{file.name!r} does not match its hash; restore another backup")

    def _add_file(self, file: SnapshotFile) -> tuple[StoredFile, int]:
        whole = hashlib.sha256()
        pieces: list[str] = []
        copied = 0
        for data in _cut(file.read()):
            whole.update(data)
            piece = hash_of(data)
            copied += self._add_piece(piece, data)
            pieces.append(piece)
        stored = StoredFile(
            name=file.name, size=file.size, sha256=whole.hexdigest(), pieces=tuple(pieces), stamp=file.stamp
        )
        return stored, copied

    def _add_piece(self, piece: str, data: bytes) -> int:
        if self._has(piece, len(data)):
            return 0
        path = self._piece(piece)
        blob = blob_of(data, piece)
        with self._translated():
            if path.exists():
                self.repaired.append(piece)
            self._files.make_folder(path.parent)
            new = path.with_name(path.name + ".new")
            new.unlink(missing_ok=True)
            self._files.write_new(new, blob.body)
            # Read again before it counts: what is stored is what was meant.
            check_blob(Blob(hash=piece, size=len(data), body=new.read_bytes()))
            os.replace(new, path)  # its folder is synced once, before the manifest is written
        self._sound.add(piece)
        return len(data)

    def _is_sound(self, file: StoredFile) -> bool:
        return all(self._has(piece, size) for piece, size in file.sized_pieces())

    def _has(self, piece: str, size: int) -> bool:
        """Whether a piece is there and fits its hash; it is read once."""
        if piece in self._sound:
            return True
        try:
            check_blob(Blob(hash=piece, size=size, body=self._piece(piece).read_bytes()))
        except (DamagedDataError, OSError):
            return False
        self._sound.add(piece)
        return True

    def _piece(self, piece: str) -> Path:
        return self._pieces / piece[:2] / piece

    def _is_ours(self) -> bool:
        try:
            text = self._marker.read_bytes()
        except FileNotFoundError:
            return False
        except NotADirectoryError:
            raise BackupError(self.place, "this is a file; a backup is a folder") from None
        except OSError as error:
            raise translate_error(self.place, error) from error
        try:
            marker = json_decoder(_Marker).decode(text)
        except UNREADABLE as error:
            raise BackupError(self.place, f"{self._marker.name} cannot be read: {error}") from error
        if marker.format != FORMAT:
            raise BackupError(self.place, f"{self._marker.name} has the format {marker.format!r}")
        if marker.version > VERSION:
            raise NewerFormatError(self.place, marker.version, VERSION)
        return True

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise translate_error(self.place, error) from error


def _cut(parts: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the same bytes in pieces of PIECE_BYTES."""
    waiting = bytearray()
    for part in parts:
        waiting += part
        while len(waiting) >= PIECE_BYTES:
            yield bytes(waiting[:PIECE_BYTES])
            del waiting[:PIECE_BYTES]
    if waiting:
        yield bytes(waiting)
