"""Blobs beside the trees: each pack is one file, its index first, written whole and then renamed into place."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from sessiontree.errors import BlobNotFoundError, DamagedDataError
from sessiontree.model._base import msgpack_decoder
from sessiontree.model.blobs import Blob, Pack, PackedBlob, pack_of
from sessiontree.stores._io import Files

__all__ = ["PackFolder"]


_MAGIC = b"sessiontree-pack-1\n"
_SUFFIX = ".pack"
_LENGTH_BYTES = 8


class _Spot(NamedTuple):
    file: str
    body_start: int
    place: PackedBlob


class PackFolder:
    """The blobs of a folder of packs, which other processes change too: what is not known is looked for again."""

    def __init__(self, folder: Path, files: Files) -> None:
        self._folder = folder
        self._files = files
        self._packs: dict[str, tuple[str, ...]] = {}
        self._spots: dict[str, _Spot] = {}

    def missing_blobs(self, hashes: Collection[str]) -> frozenset[str]:
        if not hashes:
            return frozenset()
        self.refresh()
        return frozenset(hashes).difference(self._spots)

    def blobs(self, hashes: Sequence[str]) -> list[Blob]:
        try:
            return [self._read(name) for name in hashes]
        except (KeyError, FileNotFoundError):
            self.refresh()
            return [self._read_known(name) for name in hashes]

    def blob_hashes(self) -> Collection[str]:
        self.refresh()
        return self._spots.keys()

    @property
    def size(self) -> int:
        with os.scandir(self._folder) as found:
            return sum(item.stat().st_size for item in found if item.name.endswith(_SUFFIX))

    def put(self, pack: Pack) -> None:
        """Write a pack, durably; the caller holds the gate."""
        index = msgspec.msgpack.encode([(bytes.fromhex(at.hash), at.size, at.start, at.length) for at in pack.places])
        head = _MAGIC + len(index).to_bytes(_LENGTH_BYTES) + index
        name = hashlib.sha256(head + pack.body).hexdigest()[:40] + _SUFFIX
        self._files.put(self._folder / name, head + pack.body)
        self._learn(name, pack.places, len(head))

    def drop(self, hashes: Collection[str]) -> None:
        """Packs that hold a dropped blob are written anew with the others."""
        self.refresh()
        dropped = set(hashes)
        for file, names in list(self._packs.items()):
            if dropped.isdisjoint(names):
                continue
            kept = [self._read(name) for name in names if name not in dropped and self._spots[name].file == file]
            self._forget(file)
            if kept:
                self.put(pack_of(kept))
            self._files.remove(self._folder / file)

    def refresh(self) -> None:
        """Read the index of packs that came, forget packs that went."""
        there = {name for name in os.listdir(self._folder) if name.endswith(_SUFFIX)}  # noqa: PTH208  names are all
        for file in self._packs.keys() - there:
            self._forget(file)
        for file in sorted(there - self._packs.keys()):
            self._load(file)

    def _load(self, file: str) -> None:
        path = self._folder / file
        with path.open("rb") as pack:
            magic = pack.read(len(_MAGIC))
            length = int.from_bytes(pack.read(_LENGTH_BYTES))
            index = pack.read(length)
        try:
            rows = msgpack_decoder(list[tuple[bytes, int, int, int]]).decode(index)
        except msgspec.DecodeError as error:
            raise DamagedDataError(str(path), len(_MAGIC), f"the index of the pack cannot be read: {error}") from error
        if magic != _MAGIC:
            raise DamagedDataError(str(path), 0, "this is no pack")
        places = [PackedBlob(hash=name.hex(), size=size, start=start, length=kept) for name, size, start, kept in rows]
        self._learn(file, places, len(_MAGIC) + _LENGTH_BYTES + length)

    def _learn(self, file: str, places: Sequence[PackedBlob], body_start: int) -> None:
        self._packs[file] = tuple(place.hash for place in places)
        for place in places:
            self._spots[place.hash] = _Spot(file, body_start, place)

    def _forget(self, file: str) -> None:
        for name in self._packs.pop(file):
            spot = self._spots.get(name)
            if spot is not None and spot.file == file:
                del self._spots[name]

    def _read(self, name: str) -> Blob:
        spot = self._spots[name]
        with (self._folder / spot.file).open("rb") as pack:
            pack.seek(spot.body_start + spot.place.start)
            return Blob(hash=name, size=spot.place.size, body=pack.read(spot.place.length))

    def _read_known(self, name: str) -> Blob:
        if name not in self._spots:
            raise BlobNotFoundError(name)
        return self._read(name)
