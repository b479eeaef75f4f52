"""Content-addressed blobs: what a store keeps beside its entries, and the part of the seam that keeps it.

A blob is named by the SHA-256 of its data and held as one zstd frame, or as it is where compression does not help:

>>> blob = blob_of(b"hello " * 1000)
>>> blob.size, len(blob.body) < 100, data_of(blob) == b"hello " * 1000
(6000, True, True)

Stores keep blobs in packs. A pack is one run of bytes, written with one call and one flush; small blobs lie in it side
by side, and a store that has to cut it into rows spreads a large blob over several of them.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, Protocol

from sessiontree.errors import DamagedDataError
from sessiontree.model._base import Record

__all__ = [
    "CHUNK_BYTES",
    "Blob",
    "Blobs",
    "Pack",
    "PackedBlob",
    "blob_of",
    "chunks_of",
    "data_of",
    "pack_of",
    "unpacked",
]


CHUNK_BYTES = 1 << 20
"""The largest row that a database keeps of a pack."""

_LEVEL = 3


class Blob(Record, frozen=True, kw_only=True):
    """``hash`` and ``size`` are those of the data; ``body`` is what is kept: as long as the data means not compressed."""

    hash: str
    size: int
    body: bytes


class PackedBlob(Record, frozen=True, kw_only=True):
    """Where a blob lies in its pack."""

    hash: str
    size: int
    start: int
    length: int


class Pack(Record, frozen=True, kw_only=True):
    """Blobs that were put together."""

    places: tuple[PackedBlob, ...]
    body: bytes


class Blobs(Protocol):
    """The part of a store that answers for blobs."""

    def missing_blobs(self, hashes: Collection[str]) -> frozenset[str]:
        """Those that the store does not have."""
        ...

    def blobs(self, hashes: Sequence[str]) -> list[Blob]:
        """The blobs, in the order asked for; one that is not there is BlobNotFoundError."""
        ...


def blob_of(data: bytes, hash: str = "") -> Blob:
    """A blob for some data; ``hash`` saves computing it where it is known."""
    frame = _zstd().compress(data, level=_LEVEL)
    body = frame if len(frame) < len(data) else data
    return Blob(hash=hash or _sha256(data), size=len(data), body=body)


def data_of(blob: Blob) -> bytes:
    """The data of a blob, checked against its name."""
    zstd = _zstd()
    try:
        data = blob.body if len(blob.body) == blob.size else zstd.decompress(blob.body)
    except zstd.ZstdError as error:
        raise DamagedDataError(f"blob {blob.hash}", 0, str(error)) from error
    if _sha256(data) != blob.hash:
        raise DamagedDataError(f"blob {blob.hash}", 0, "the content does not hash to its name")
    return data


def pack_of(blobs: Iterable[Blob]) -> Pack:
    places: list[PackedBlob] = []
    bodies: list[bytes] = []
    start = 0
    for blob in blobs:
        places.append(PackedBlob(hash=blob.hash, size=blob.size, start=start, length=len(blob.body)))
        bodies.append(blob.body)
        start += len(blob.body)
    return Pack(places=tuple(places), body=b"".join(bodies))


def unpacked(pack: Pack) -> Iterator[Blob]:
    for place in pack.places:
        yield Blob(hash=place.hash, size=place.size, body=pack.body[place.start : place.start + place.length])


def chunks_of(pack: Pack) -> list[bytes]:
    """The body of a pack in rows of at most CHUNK_BYTES."""
    return [pack.body[start : start + CHUNK_BYTES] for start in range(0, len(pack.body), CHUNK_BYTES)]


def _zstd() -> Any:
    """In the standard library from Python 3.14 on; loaded by those who keep blobs."""
    if sys.version_info >= (3, 14):
        from compression import zstd  # noqa: PLC0415
    else:
        from backports import zstd  # noqa: PLC0415
    return zstd


def _sha256(data: bytes) -> str:
    from hashlib import sha256  # noqa: PLC0415  slow to import, and most programs keep no files

    return sha256(data).hexdigest()
