"""Images and files of imported messages as artifacts: stored once, and not a second time in the raw record."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from sessiontree.model import ArtifactRef, Blob, FilePart, ImagePart, Message, Part, Payload, ToolResultPart, blob_of
from sessiontree.transfer.formats._records import ImportedRecord

__all__ = ["ARTIFACT", "with_artifacts", "with_contents"]


ARTIFACT = "sessiontree-artifact:"
"""What stands in a raw record before the hash of the data that was there."""

_SMALLEST = 512


def with_artifacts(record: ImportedRecord) -> ImportedRecord:
    """The record with the data of its images and files in blobs, and references in their place."""
    message = getattr(record.payload, "message", None)
    if not isinstance(message, Message) or not any(_media(message.parts)):
        return record
    found: dict[str, Blob] = {}
    parts = tuple(_referring(part, found) for part in message.parts)
    if not found:
        return record
    payload: Any = replace(record.payload, message=replace(message, parts=parts))
    return record._replace(payload=_without_data(payload, found), blobs=(*record.blobs, *found.values()))


def _media(parts: tuple[Part, ...]) -> Iterator[ImagePart | FilePart]:
    for part in parts:
        match part:
            case ImagePart(data=data) | FilePart(data=data) if len(data) >= _SMALLEST:
                yield part
            case ToolResultPart(parts=inner):
                yield from _media(inner)


def _referring(part: Part, found: dict[str, Blob]) -> Any:
    match part:
        case ImagePart(data=data) | FilePart(data=data) if len(data) >= _SMALLEST:
            try:
                blob = blob_of(base64.b64decode(data, validate=True))
            except (binascii.Error, ValueError):
                return part
            found[data] = blob
            label = part.name if isinstance(part, FilePart) else ""
            return replace(
                part, data="", artifact=ArtifactRef(sha256=blob.hash, size=blob.size, mime=part.mime, label=label)
            )
        case ToolResultPart(parts=inner):
            return replace(part, parts=tuple(_referring(one, found) for one in inner))
        case _:
            return part


def _without_data(payload: Any, found: Mapping[str, Blob]) -> Payload:
    origin: dict[str, Any] = payload.origin
    if "raw" not in origin:
        return payload  # type: ignore[no-any-return]
    names = {data: ARTIFACT + blob.hash for data, blob in found.items()}
    return replace(payload, origin={**origin, "raw": _exchanged(origin["raw"], names)})  # type: ignore[no-any-return]


def _exchanged(value: Any, names: Mapping[str, str]) -> Any:
    """A value with some of its texts replaced; a data URL keeps its beginning."""
    match value:
        case str() if len(value) >= _SMALLEST:
            head, mark, data = value.rpartition(";base64,")
            return head + mark + names.get(data, data)
        case dict():
            return {name: _exchanged(item, names) for name, item in value.items()}
        case list():
            return [_exchanged(item, names) for item in value]
        case _:
            return value


def with_contents(value: Any, read: Any) -> Any:
    """A raw record with its data back in it; ``read`` returns the bytes of a hash."""
    match value:
        case str() if ARTIFACT in value:
            head, _, name = value.partition(ARTIFACT)
            return head + base64.b64encode(read(name)).decode()
        case dict():
            return {name: with_contents(item, read) for name, item in value.items()}
        case list():
            return [with_contents(item, read) for item in value]
        case _:
            return value
