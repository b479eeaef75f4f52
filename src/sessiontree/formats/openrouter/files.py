"""File snapshots of the SDK, a text for each path, and our checkpoints, a manifest and blobs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from sessiontree.blobs import Blob, blob_of, data_of
from sessiontree.journal import Journal
from sessiontree.manifest import UNKNOWN_MODE, Item, Manifest, Tree, decode_manifest, encode_manifest, patched
from sessiontree.model import Checkpoint
from sessiontree.queries import ReadBlobs

__all__ = ["Files", "Texts", "checkpoint_of", "texts_of"]

Files = Mapping[str, str | None]
"""Path to text; ``None`` means that there must be no such file."""

_FOLDER = Item("folder", UNKNOWN_MODE, 0, b"")


class Texts(NamedTuple):
    """A checkpoint as the SDK can keep it, and the paths that it cannot keep."""

    files: dict[str, str | None]
    left_out: list[str]


def checkpoint_of(name: str, target: str, given: Files | None) -> tuple[Checkpoint, tuple[Blob, ...]]:
    """The checkpoint for a snapshot, and the blobs it needs.

    Paths in which git or we keep our own files are never restored. They are kept beside, for the way back. A path that
    leads out of the folder stays in the manifest, so that a restore refuses the whole before it changes anything.
    """
    files = given or {}
    texts = {path: text.encode() for path, text in files.items() if text is not None and not _is_private(path)}
    beside = {path: text for path, text in files.items() if path not in texts}
    blobs = {path: blob_of(data) for path, data in texts.items()}
    tree = {path: Item("file", UNKNOWN_MODE, blob.size, bytes.fromhex(blob.hash)) for path, blob in blobs.items()}
    listed = blob_of(encode_manifest(Manifest(changed={**dict.fromkeys(_folders(tree), _FOLDER), **tree})))
    checkpoint = Checkpoint(
        target=target,
        manifest=listed.hash,
        files=len(tree),
        size=sum(map(len, texts.values())),
        label=name,
        origin={"is_null": True} if given is None else {"beside": beside} if beside else {},
    )
    return checkpoint, (listed, *blobs.values())


def texts_of(journal: Journal, checkpoint: Checkpoint) -> Texts:
    """The other way; what is no text is left out."""
    found: dict[str, str | None] = dict(checkpoint.origin.get("beside", {}))
    left_out: list[str] = []
    for path, item in _tree_of(journal, checkpoint.manifest).items():
        text = _text(journal, item)
        if text is not None:
            found[path] = text
        elif item.kind != "folder":
            left_out.append(path)
    return Texts({path: found[path] for path in sorted(found, key=str.encode)}, left_out)


def _is_private(path: str) -> bool:
    parts = path.casefold().split("/")
    return ".." not in parts and (".git" in parts or parts[0] == ".sessiontree")


def _folders(paths: Iterable[str]) -> set[str]:
    """The folders that plain paths need."""
    found: set[str] = set()
    for path in paths:
        parts = path.split("/")
        if all(part not in {"", ".", ".."} for part in parts):
            found.update("/".join(parts[:depth]) for depth in range(1, len(parts)))
    return found


def _tree_of(journal: Journal, manifest: str) -> Tree:
    if not manifest:
        return {}
    found = decode_manifest(_data(journal, manifest), f"blob {manifest}")
    return patched(_tree_of(journal, found.base), found)


def _text(journal: Journal, item: Item) -> str | None:
    if not item.hash:
        return None
    try:
        return _data(journal, item.hash).decode()
    except UnicodeDecodeError:
        return None


def _data(journal: Journal, name: str) -> bytes:
    (blob,) = journal.store.read(ReadBlobs(hashes=(name,)))
    return data_of(blob)
