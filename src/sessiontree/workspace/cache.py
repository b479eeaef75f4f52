"""The stat cache: what the last snapshot saw, so that an unchanged file costs a stat and no read.

A record is trusted only if the file's times are older than the start of the snapshot on the file system's own clock, so
that a later change gets a later time. Anything younger is read again; git calls such records racy. The cache may be
deleted at any time.
"""

from __future__ import annotations

import contextlib
import os
import zlib
from collections.abc import Iterator

import msgspec

from sessiontree.model._base import UNREADABLE, Record, msgpack_decoder
from sessiontree.model.manifest import ItemKind, LeftOut, LeftOutReason, ManifestItem

__all__ = [
    "CacheHeader",
    "Key",
    "Known",
    "KnownFolder",
    "StatCache",
    "drop_cache",
    "load_cache",
    "save_cache",
]


_VERSION = 2
_NAME = "cache"
_FRESH = "cache.new"
_CHECKSUM_BYTES = 4

Key = tuple[int, int, int, int, int]
"""mtime, ctime, size, inode, mode."""


class Known(msgspec.Struct, array_like=True, gc=False):
    """A file or link as it was read. A racy one is kept for its content, but its stat is not trusted."""

    key: Key
    kind: ItemKind
    content: bytes
    is_racy: bool = False

    @property
    def item(self) -> ManifestItem:
        """The file as a manifest lists it."""
        return ManifestItem(self.kind, self.key[4] & 0o777, self.key[2] if self.kind == "file" else 0, self.content)


class KnownFolder(msgspec.Struct, array_like=True):
    """A folder as it was listed: its files, its folders, and the names that are ignored."""

    key: Key
    rules: bytes
    is_racy: bool
    files: dict[bytes, Known] = {}
    folders: list[bytes] = []
    ignored: set[bytes] = set()  # names of folders end in a slash
    ignore_files: dict[bytes, tuple[Key, bytes]] = {}
    size: int = 0
    has_left_out: bool = False


class CacheHeader(Record, frozen=True, kw_only=True):
    """The last checkpoint or restore: of which store and thread, and the manifest that the folder matched."""

    place: str
    thread_id: str
    checkpoint: str
    manifest: str
    is_closed: bool = False


class StatCache(msgspec.Struct):
    """What a scan found. ``manifest`` lists exactly that, or is '' if not known; ``chain`` is the manifest's."""

    version: int = _VERSION
    manifest: str = ""
    chain: int = 0
    files: int = 0
    size: int = 0
    folders: dict[bytes, KnownFolder] = {}
    left_out_raw: list[tuple[bytes, LeftOutReason, int]] = []
    head: CacheHeader | None = None

    @property
    def left_out(self) -> tuple[LeftOut, ...]:
        """The paths that were seen and left out."""
        return tuple(
            LeftOut(path=os.fsdecode(path), reason=reason, size=size) for path, reason, size in self.left_out_raw
        )

    def items(self) -> Iterator[tuple[str, ManifestItem]]:
        """Yield every path and item, as a manifest lists them."""
        for folder, known in self.folders.items():
            path = os.fsdecode(folder)
            if path:
                yield path, ManifestItem("folder", known.key[4] & 0o777, 0, b"")
            prefix = path + "/" if path else ""
            for name, file in known.files.items():
                yield prefix + os.fsdecode(name), file.item

    def key(self, folder: str, name: str) -> Key | None:
        """Return the key of a file when it was read."""
        known = self.folders.get(os.fsencode(folder))
        file = known.files.get(os.fsencode(name)) if known else None
        return file.key if file else None


_encoder = msgspec.msgpack.Encoder()
_decoder = msgpack_decoder(StatCache)


def load_cache(state_fd: int) -> StatCache:
    """Return the cache in the state directory; an empty one if it is missing or cannot be used."""
    try:
        file = os.open(_NAME, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=state_fd)
    except OSError:
        return StatCache()
    with open(file, "rb") as reader:  # noqa: PTH123  opened by descriptor
        data = reader.read()
    body = data[_CHECKSUM_BYTES:]
    if zlib.crc32(body).to_bytes(_CHECKSUM_BYTES) != data[:_CHECKSUM_BYTES]:
        return StatCache()
    try:
        cache = _decoder.decode(body)
    except UNREADABLE:
        return StatCache()
    return cache if cache.version == _VERSION else StatCache()


def save_cache(state_fd: int, cache: StatCache) -> None:
    """Write the cache. It is not synced: an old or empty cache after a power cut only costs time."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(_FRESH, dir_fd=state_fd)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with open(os.open(_FRESH, flags, 0o600, dir_fd=state_fd), "wb") as writer:  # noqa: PTH123  opened by descriptor
        body = _encoder.encode(cache)
        writer.write(zlib.crc32(body).to_bytes(_CHECKSUM_BYTES))
        writer.write(body)
    os.replace(_FRESH, _NAME, src_dir_fd=state_fd, dst_dir_fd=state_fd)


def drop_cache(state_fd: int) -> None:
    """Delete the cache, because an old one names another checkpoint."""
    for name in (_FRESH, _NAME):
        with contextlib.suppress(OSError):
            os.unlink(name, dir_fd=state_fd)
