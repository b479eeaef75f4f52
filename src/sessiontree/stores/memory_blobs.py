"""Blobs in memory."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from sessiontree.blobs import Blob, unpacked
from sessiontree.errors import BlobNotFoundError
from sessiontree.rules.state import DropBlobs, PutPack

__all__ = ["MemoryBlobs"]


class MemoryBlobs:
    def __init__(self) -> None:
        self._blobs: dict[str, Blob] = {}

    def missing_blobs(self, hashes: Collection[str]) -> frozenset[str]:
        return frozenset(hashes).difference(self._blobs)

    def blobs(self, hashes: Sequence[str]) -> list[Blob]:
        try:
            return [self._blobs[name] for name in hashes]
        except KeyError as error:
            raise BlobNotFoundError(str(error.args[0])) from None

    def blob_hashes(self) -> Collection[str]:
        return self._blobs.keys()

    def apply(self, fact: PutPack | DropBlobs) -> None:
        match fact:
            case PutPack(pack=pack):
                self._blobs.update((blob.hash, blob) for blob in unpacked(pack))
            case DropBlobs(hashes=hashes):
                for name in hashes:
                    self._blobs.pop(name, None)

    @property
    def size(self) -> int:
        return sum(len(blob.body) for blob in self._blobs.values())
