"""Manifests: the list of files in a folder at one time, stored as a blob.

A manifest is complete, or it names an older one as its ``base`` and lists the differences, so that a checkpoint of a
large folder costs only what changed. The base belongs to an earlier checkpoint on the same path, so it is visible
wherever the checkpoint is.

Names are stored as bytes, as file systems have them; inside the program they are text from ``os.fsdecode``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Literal, NamedTuple

import msgspec

from sessiontree.errors import DamagedDataError, NewerFormatError
from sessiontree.model._base import UNREADABLE, Record, msgpack_decoder

__all__ = [
    "UNKNOWN_MODE",
    "LeftOut",
    "LeftOutReason",
    "Manifest",
    "ManifestItem",
    "Tree",
    "decode_manifest",
    "difference",
    "encode_manifest",
    "patched",
    "reachable",
    "with_known_modes",
]


_VERSION = 1
_CODEC = ("utf-8", "surrogateescape")

ItemKind = Literal["file", "link", "folder"]
LeftOutReason = Literal[
    "too_large", "total_too_large", "unreadable", "special", "other_file_system", "unsafe_name", "not_tracked"
]
"""``not_tracked``: another program recorded some files only. With the empty path, everything that is not listed."""


UNKNOWN_MODE = -1
"""The mode of an item from a program that records no modes: a restore keeps the mode of the existing file."""

_USUAL_MODES = {"file": 0o644, "link": 0o777, "folder": 0o755}


class ManifestItem(NamedTuple):
    """A file, link or folder. ``content`` is the digest of a file's bytes, or the target of a link."""

    kind: ItemKind
    mode: int
    size: int
    content: bytes

    @property
    def hash(self) -> str:
        """The hash of the blob with a file's bytes; empty for links and folders."""
        return self.content.hex() if self.kind == "file" else ""


Tree = Mapping[str, ManifestItem]
"""Slash-separated relative path to item."""


class LeftOut(Record, frozen=True, kw_only=True):
    """A path that a snapshot did not include, and why."""

    path: str
    reason: LeftOutReason
    size: int = 0


class Manifest(Record, frozen=True, kw_only=True):
    """``changed`` and ``removed`` are relative to ``base``; ``chain`` counts the items since the last complete one."""

    base: str = ""
    chain: int = 0
    changed: dict[str, ManifestItem] = {}
    removed: tuple[str, ...] = ()
    left_out: tuple[LeftOut, ...] = ()


class _Wire(msgspec.Struct, array_like=True):
    version: int
    base: bytes
    chain: int
    changed: list[tuple[bytes, ItemKind, int, int, bytes]]
    removed: list[bytes]
    left_out: list[tuple[bytes, LeftOutReason, int]]


_encoder = msgspec.msgpack.Encoder()
_decoder = msgpack_decoder(_Wire)


def encode_manifest(manifest: Manifest) -> bytes:
    """Return a manifest as bytes; everything is sorted, so that equal manifests have equal bytes."""
    wire = _Wire(
        version=_VERSION,
        base=bytes.fromhex(manifest.base),
        chain=manifest.chain,
        changed=sorted((path.encode(*_CODEC), *item) for path, item in manifest.changed.items()),
        removed=sorted(path.encode(*_CODEC) for path in manifest.removed),
        left_out=sorted((out.path.encode(*_CODEC), out.reason, out.size) for out in manifest.left_out),
    )
    return _encoder.encode(wire)


def decode_manifest(data: bytes, place: str = "manifest") -> Manifest:
    """Return the manifest of some bytes; ``place`` names it in errors."""
    wire = _decoded(data, place)
    if wire.version > _VERSION:
        raise NewerFormatError(place, wire.version, _VERSION)
    return Manifest(
        base=wire.base.hex(),
        chain=wire.chain,
        changed={
            path.decode(*_CODEC): ManifestItem(kind, _permissions(mode), size, content)
            for path, kind, mode, size, content in wire.changed
        },
        removed=tuple(path.decode(*_CODEC) for path in wire.removed),
        left_out=tuple(
            LeftOut(path=path.decode(*_CODEC), reason=reason, size=size) for path, reason, size in wire.left_out
        ),
    )


def _permissions(mode: int) -> int:
    """Read, write and execute only: a manifest from elsewhere must not make a file setuid."""
    return UNKNOWN_MODE if mode < 0 else mode & 0o777


def _decoded(data: bytes, place: str) -> _Wire:
    try:
        return _decoder.decode(data)
    except UNREADABLE as error:
        raise DamagedDataError(place, 0, f"not a manifest: {error}") from error


def difference(old: Tree, new: Tree) -> tuple[dict[str, ManifestItem], tuple[str, ...]]:
    """Return the items to change in ``old``, and the paths to remove from it, to get ``new``."""
    changed = {path: item for path, item in new.items() if old.get(path) != item}
    return changed, tuple(path for path in old if path not in new)


def patched(base: Tree, manifest: Manifest) -> dict[str, ManifestItem]:
    """Return the tree of a manifest, given the tree of its base."""
    tree = {**base, **manifest.changed}
    for path in manifest.removed:
        tree.pop(path, None)
    return tree


def with_known_modes(tree: Tree, current: Tree) -> Tree:
    """Return the tree with unknown modes replaced by those of ``current``, or by the usual ones."""
    if all(item.mode != UNKNOWN_MODE for item in tree.values()):
        return tree
    known = {path: item.mode for path, item in current.items() if path in tree and item.kind == tree[path].kind}
    return {
        path: item._replace(mode=known.get(path, _USUAL_MODES[item.kind])) if item.mode == UNKNOWN_MODE else item
        for path, item in tree.items()
    }


def reachable(manifests: Iterable[str], read: Callable[[str], bytes]) -> set[str]:
    """Return the hashes of all blobs that these manifests need: manifests, their bases, and files."""
    found: set[str] = set()
    waiting = list(manifests)
    while waiting:
        name = waiting.pop()
        if not name or name in found:
            continue
        found.add(name)
        manifest = decode_manifest(read(name), f"blob {name}")
        waiting.append(manifest.base)
        found.update(item.hash for item in manifest.changed.values() if item.kind == "file")
    return found
