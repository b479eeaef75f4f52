"""Content-addressed blobs, which a store keeps beside its entries, and packs of them.

A blob is named by the SHA-256 of its data and stored as one zstd frame, or uncompressed if that is smaller:

>>> blob = blob_of(b"hello " * 1000)
>>> blob.size, len(blob.body) < 100, data_of(blob) == b"hello " * 1000
(6000, True, True)

Stores keep blobs in packs. A pack is one sequence of bytes that is written with one call and one flush; a database
splits it into rows of limited size.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any, Protocol, TypeVar

from sessiontree.errors import DamagedDataError
from sessiontree.model._base import Record

__all__ = [
    "CHUNK_BYTES",
    "Blob",
    "Blobs",
    "Pack",
    "PackedBlob",
    "batches",
    "blob_of",
    "check_blob",
    "chunks_of",
    "data_of",
    "hash_of",
    "pack_of",
    "unpacked",
]


CHUNK_BYTES = 1 << 20
"""The size of the rows into which a database splits a pack."""

_LEVEL = 3
_PIECE_BYTES = 1 << 20
_BATCH_BYTES = 8 << 20
_BATCH_ITEMS = 1000

T = TypeVar("T")


class Blob(Record, frozen=True, kw_only=True):
    """``hash`` and ``size`` describe the data; ``body`` is what is stored, uncompressed if it is as long as the data."""

    hash: str
    size: int
    body: bytes


class PackedBlob(Record, frozen=True, kw_only=True):
    """The position of a blob in its pack."""

    hash: str
    size: int
    start: int
    length: int


class Pack(Record, frozen=True, kw_only=True):
    """Blobs that are stored together."""

    places: tuple[PackedBlob, ...]
    body: bytes


class Blobs(Protocol):
    """The part of a store that reads blobs."""

    def missing_blobs(self, hashes: Collection[str]) -> frozenset[str]:
        """Return the hashes that are not in the store."""
        ...

    def blobs(self, hashes: Sequence[str]) -> list[Blob]:
        """Return the blobs in the given order; raise BlobNotFoundError if one is missing."""
        ...


def blob_of(data: bytes, hash: str = "") -> Blob:
    """Return a blob for some data; give ``hash`` if it is known already."""
    frame = _zstd().compress(data, level=_LEVEL)
    body = frame if len(frame) < len(data) else data
    return Blob(hash=hash or hash_of(data), size=len(data), body=body)


def data_of(blob: Blob) -> bytes:
    """Return the data of a blob, checked against its hash."""
    data = b"".join(_pieces(blob))
    if hash_of(data) != blob.hash:
        raise _damaged(blob, "the data does not match the hash")
    return data


def check_blob(blob: Blob) -> None:
    """Raise DamagedDataError unless the data of a blob matches its hash, without keeping the data in memory."""
    from hashlib import sha256  # noqa: PLC0415  as in hash_of

    found = sha256()
    for piece in _pieces(blob):
        found.update(piece)
    if found.hexdigest() != blob.hash:
        raise _damaged(blob, "the data does not match the hash")


def _pieces(blob: Blob) -> Iterator[bytes]:
    """Decompress a blob piece by piece, and no further than its size: a few bytes can expand to gigabytes."""
    if len(blob.body) == blob.size:
        yield blob.body
        return
    zstd = _zstd()
    decompressor = zstd.ZstdDecompressor()
    body, left = blob.body, blob.size
    try:
        while not decompressor.eof:
            piece = decompressor.decompress(body, max_length=_PIECE_BYTES)
            body = b""
            left -= len(piece)
            if left < 0:
                raise _damaged(blob, f"it expands to more than its size, {blob.size} bytes")
            if not piece and decompressor.needs_input:
                raise _damaged(blob, "its end is missing")
            yield piece
    except zstd.ZstdError as error:
        raise _damaged(blob, str(error)) from error


def _damaged(blob: Blob, problem: str) -> DamagedDataError:
    return DamagedDataError(f"blob {blob.hash}", 0, problem)


def pack_of(blobs: Iterable[Blob]) -> Pack:
    """Return a pack of the blobs."""
    places: list[PackedBlob] = []
    bodies: list[bytes] = []
    start = 0
    for blob in blobs:
        places.append(PackedBlob(hash=blob.hash, size=blob.size, start=start, length=len(blob.body)))
        bodies.append(blob.body)
        start += len(blob.body)
    return Pack(places=tuple(places), body=b"".join(bodies))


def unpacked(pack: Pack) -> Iterator[Blob]:
    """Yield the blobs of a pack."""
    for place in pack.places:
        yield Blob(hash=place.hash, size=place.size, body=pack.body[place.start : place.start + place.length])


def batches(items: Iterable[T], size_of: Callable[[T], int]) -> Iterator[list[T]]:
    """Split items into lists that fit into memory, by the bytes that each item takes; never an empty list.

    >>> list(batches([5_000_000, 5_000_000, 1], lambda size: size))
    [[5000000], [5000000, 1]]
    """
    batch: list[T] = []
    total = 0
    for item in items:
        size = size_of(item)
        if batch and (total + size > _BATCH_BYTES or len(batch) == _BATCH_ITEMS):
            yield batch
            batch, total = [], 0
        batch.append(item)
        total += size
    if batch:
        yield batch


def chunks_of(pack: Pack) -> list[bytes]:
    """Return the body of a pack in chunks of at most CHUNK_BYTES."""
    return [pack.body[start : start + CHUNK_BYTES] for start in range(0, len(pack.body), CHUNK_BYTES)]


def _zstd() -> Any:
    """Import zstd on first use; it is in the standard library from Python 3.14 on."""
    if sys.version_info >= (3, 14):
        from compression import zstd  # noqa: PLC0415
    else:
        from backports import zstd  # noqa: PLC0415
    return zstd


def hash_of(data: bytes) -> str:
    """Return the name of the data: its SHA-256 in hexadecimal digits."""
    from hashlib import sha256  # noqa: PLC0415  slow to import, and most programs use no blobs

    return sha256(data).hexdigest()
