"""Blobs of the JSONL store: pack files that begin with their index, written beside and renamed into place.

An empty file named after an artifact keeps it until an entry refers to it.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import BinaryIO, NamedTuple

import msgspec

from sessiontree.errors import BlobNotFoundError, DamagedDataError
from sessiontree.model._base import UNREADABLE, msgpack_decoder
from sessiontree.model.blobs import Blob, Pack, PackedBlob, pack_of
from sessiontree.stores._io import Files

__all__ = ["PackFolder"]


_MAGIC = b"sessiontree-pack-1\n"
_SUFFIX = ".pack"
_PENDING_SUFFIX = ".pending"
_LENGTH_BYTES = 8


class _Location(NamedTuple):
    """Where a blob is: a pack file, the offset of its body, and the blob's place in the body."""

    file: str
    body_start: int
    place: PackedBlob


class PackFolder:
    """The blobs of a folder of packs. Other processes change it too, so the folder is read again for an unknown blob."""

    def __init__(self, folder: Path, files: Files) -> None:
        self._folder = folder
        self._files = files
        self._packs: dict[str, tuple[str, ...]] = {}
        self._locations: dict[str, _Location] = {}

    def missing_blobs(self, hashes: Collection[str]) -> frozenset[str]:
        """The hashes that are not in the folder."""
        if not hashes:
            return frozenset()
        self.refresh()
        return frozenset(hashes).difference(self._locations)

    def blobs(self, hashes: Sequence[str]) -> list[Blob]:
        """Blobs, in the order of ``hashes``; raise BlobNotFoundError for a missing one."""
        try:
            return [self._read(name) for name in hashes]
        except (KeyError, FileNotFoundError):
            self.refresh()
            return [self._read_known(name) for name in hashes]

    def blob_hashes(self) -> Collection[str]:
        """The hashes of all blobs."""
        self.refresh()
        return self._locations.keys()

    def pending_artifacts(self) -> frozenset[str]:
        """The hashes of artifacts that no entry has referred to yet."""
        names = os.listdir(self._folder)  # noqa: PTH208  only names are needed
        return frozenset(name.removesuffix(_PENDING_SUFFIX) for name in names if name.endswith(_PENDING_SUFFIX))

    def put_pending(self, hashes: Collection[str]) -> None:
        """Keep artifacts until ``drop_pending``; the caller holds the process lock."""
        for name in sorted(hashes):
            self._files.put(self._folder / (name + _PENDING_SUFFIX), b"")

    def drop_pending(self, hashes: Collection[str]) -> None:
        """Note that an entry refers to the artifacts from now on."""
        for name in self.pending_artifacts().intersection(hashes):
            self._files.remove(self._folder / (name + _PENDING_SUFFIX))

    @property
    def size(self) -> int:
        """How many bytes the packs take."""
        with os.scandir(self._folder) as found:
            return sum(item.stat().st_size for item in found if item.name.endswith(_SUFFIX))

    def put(self, pack: Pack) -> None:
        """Write a pack durably; the caller holds the process lock."""
        index = msgspec.msgpack.encode([(bytes.fromhex(at.hash), at.size, at.start, at.length) for at in pack.places])
        head = _MAGIC + len(index).to_bytes(_LENGTH_BYTES) + index
        name = hashlib.sha256(head + pack.body).hexdigest()[:40] + _SUFFIX
        self._files.put(self._folder / name, head + pack.body)
        self._add(name, pack.places, len(head))

    def drop(self, hashes: Collection[str]) -> None:
        """Remove blobs: packs that contain one are replaced by packs of the others."""
        self.refresh()
        dropped = set(hashes)
        for file, names in list(self._packs.items()):
            if dropped.isdisjoint(names):
                continue
            kept = [self._read(name) for name in names if name not in dropped and self._locations[name].file == file]
            self._forget(file)
            if kept:
                self.put(pack_of(kept))
            self._files.remove(self._folder / file)

    def refresh(self) -> None:
        """Read the indexes of new packs and forget removed ones."""
        present = {name for name in os.listdir(self._folder) if name.endswith(_SUFFIX)}  # noqa: PTH208  only names are needed
        for file in self._packs.keys() - present:
            self._forget(file)
        for file in sorted(present - self._packs.keys()):
            self._load(file)

    def _load(self, file: str) -> None:
        path = self._folder / file
        with path.open("rb") as pack:
            magic = pack.read(len(_MAGIC))
            length = int.from_bytes(pack.read(_LENGTH_BYTES))
            index = _read_part(pack, len(_MAGIC) + _LENGTH_BYTES, length)
        try:
            rows = msgpack_decoder(list[tuple[bytes, int, int, int]]).decode(index)
        except UNREADABLE as error:
            raise DamagedDataError(str(path), len(_MAGIC), f"cannot read the index of the pack: {error}") from error
        if magic != _MAGIC:
            raise DamagedDataError(str(path), 0, "not a pack file")
        places = [PackedBlob(hash=name.hex(), size=size, start=start, length=kept) for name, size, start, kept in rows]
        self._add(file, places, len(_MAGIC) + _LENGTH_BYTES + length)

    def _add(self, file: str, places: Sequence[PackedBlob], body_start: int) -> None:
        self._packs[file] = tuple(place.hash for place in places)
        for place in places:
            self._locations[place.hash] = _Location(file, body_start, place)

    def _forget(self, file: str) -> None:
        for name in self._packs.pop(file):
            location = self._locations.get(name)
            if location is not None and location.file == file:
                del self._locations[name]

    def _read(self, name: str) -> Blob:
        location = self._locations[name]
        with (self._folder / location.file).open("rb") as pack:
            body = _read_part(pack, location.body_start + location.place.start, location.place.length)
            return Blob(hash=name, size=location.place.size, body=body)

    def _read_known(self, name: str) -> Blob:
        if name not in self._locations:
            raise BlobNotFoundError(name)
        return self._read(name)


def _read_part(pack: BinaryIO, start: int, length: int) -> bytes:
    """Read what a file has of a part: a damaged length must not cost memory that the file does not take."""
    size = os.fstat(pack.fileno()).st_size
    if not 0 <= start <= size:
        return b""
    pack.seek(start)
    return pack.read(max(0, min(length, size - start)))
