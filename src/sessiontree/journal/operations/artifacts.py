"""Verbs about artifacts: store one, read one, and give messages the data of those that they show."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from msgspec.structs import replace

from sessiontree.context import Context
from sessiontree.errors import BlobNotFoundError, InvalidInputError
from sessiontree.journal.operations.requests import Operation, Work
from sessiontree.model import ArtifactRef
from sessiontree.model.artifacts import is_hash, shown_artifacts, with_data
from sessiontree.model.blobs import Blob, blob_of, data_of
from sessiontree.stores.commands import PutBlobs
from sessiontree.stores.queries import FindMissingBlobs, ReadBlobs

__all__ = ["ArtifactSource", "put_artifact", "read_artifact", "with_artifacts"]


ArtifactSource = bytes | bytearray | memoryview | str | os.PathLike[str]
"""What an artifact is made from: its bytes, or the path of a file."""

_PREVIEW_CHARACTERS = 200


def put_artifact(source: ArtifactSource, mime: str, label: str) -> Operation[ArtifactRef]:
    """Store bytes or a file, and return the reference that messages show."""
    name = _name_of(source)
    blob, preview = yield Work(function=_load, arguments=(source,))
    kind = mime or _type_of(name)
    yield PutBlobs(blobs=(blob,), are_artifacts=True)
    return ArtifactRef(
        sha256=blob.hash,
        size=blob.size,
        mime=kind,
        label=label or name,
        preview=preview if kind.startswith("text/") else "",
    )


def read_artifact(ref: ArtifactRef | str) -> Operation[bytes]:
    """Return the bytes of an artifact."""
    name = ref.sha256 if isinstance(ref, ArtifactRef) else ref
    if not is_hash(name):
        raise InvalidInputError(f"read_artifact() takes what put_artifact() returned, or its sha256, not {ref!r}")
    contents = yield from _contents([name])
    return contents[name]


def with_artifacts(context: Context) -> Operation[Context]:
    """Give images and files the data of their artifacts. One that is not in the store stays a reference."""
    names = shown_artifacts(context.messages)
    if not names:
        return context
    missing: frozenset[str] = yield FindMissingBlobs(hashes=names)
    try:
        contents = yield from _contents(name for name in names if name not in missing)
    except BlobNotFoundError:  # deleted in between
        return (yield from with_artifacts(context))
    return replace(context, messages=tuple(with_data(message, contents) for message in context.messages))


def _contents(names: Iterable[str]) -> Operation[dict[str, bytes]]:
    blobs: list[Blob] = yield ReadBlobs(hashes=tuple(names))
    contents: dict[str, bytes] = yield Work(function=lambda: {blob.hash: data_of(blob) for blob in blobs})
    return contents


def _name_of(source: ArtifactSource) -> str:
    if isinstance(source, bytes | bytearray | memoryview):
        return ""
    if not isinstance(source, str | os.PathLike):
        raise InvalidInputError(f"an artifact is made from bytes or from the path of a file, not from {source!r}")
    return Path(source).name


def _type_of(name: str) -> str:
    import mimetypes  # noqa: PLC0415  slow to import, and most programs store no files

    return mimetypes.guess_type(name)[0] or ""


def _load(source: ArtifactSource) -> tuple[Blob, str]:
    data = bytes(source) if isinstance(source, bytes | bytearray | memoryview) else Path(source).read_bytes()
    return blob_of(data), data[: 4 * _PREVIEW_CHARACTERS].decode(errors="replace")[:_PREVIEW_CHARACTERS]
