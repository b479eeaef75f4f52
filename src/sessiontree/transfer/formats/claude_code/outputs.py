"""Large tool outputs: their results hold only the beginning, a file or a field beside them the whole text."""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

from msgspec.structs import replace

from sessiontree.model import ArtifactRef, ResultView, TextPart, ToolResultMessage, ToolResultPart, blob_of, data_of
from sessiontree.transfer.formats._records import ImportedRecord
from sessiontree.transfer.formats._wire import Json, mapping, text

__all__ = ["whole_output", "with_full_output"]


_MARK = "<persisted-output>"
_WRAPPED = re.compile(_MARK + r".*?([^\s\"'<>]*tool-results[/\\][^\s\"'<>]+)", re.DOTALL)
_LARGEST = 64 * 1024 * 1024


def with_full_output(record: ImportedRecord, folder: Path) -> ImportedRecord:
    """The record with the whole output of a tool as an artifact, if the result names a file in the session's folder."""
    payload: Any = record.payload
    if not isinstance(payload, ToolResultMessage):
        return record
    blobs = list(record.blobs)
    parts = []
    for part in payload.message.parts:
        data = _full_output(part, folder)
        if data is None or not isinstance(part, ToolResultPart):
            parts.append(part)
            continue
        blob = blob_of(data)
        blobs.append(blob)
        ref = ArtifactRef(sha256=blob.hash, size=blob.size, mime="text/plain", label="full output")
        view = ResultView(is_truncated=True, original_bytes=len(data), full_output=ref)
        parts.append(replace(part, view=view))
    message = replace(payload.message, parts=tuple(parts))
    return record._replace(payload=replace(payload, message=message), blobs=tuple(blobs))


def _full_output(part: object, folder: Path) -> bytes | None:
    """The content of the file that a result names. Only a name in this folder is read, wherever the path leads."""
    if not isinstance(part, ToolResultPart):
        return None
    words = _words(part)
    found = _WRAPPED.search(words) if _MARK in words else None
    if found is None:
        return None
    path = folder / PurePosixPath(PureWindowsPath(found[1]).as_posix()).name
    try:
        is_small = path.is_file() and not path.is_symlink() and path.stat().st_size <= _LARGEST
        return path.read_bytes() if is_small else None
    except OSError:
        return None


def whole_output(record: ImportedRecord, wire: Json) -> str:
    """The words of a large output, of which the result has only the beginning; empty if there is no more of it."""
    if record.blobs:
        return "\n".join(data_of(blob).decode("utf-8", "replace") for blob in record.blobs)
    payload: Any = record.payload
    is_cut = isinstance(payload, ToolResultMessage) and any(_MARK in _words(part) for part in payload.message.parts)
    return text(mapping(wire.get("toolUseResult")).get("stdout")) if is_cut else ""


def _words(part: object) -> str:
    parts = part.parts if isinstance(part, ToolResultPart) else ()
    return "\n".join(one.text for one in parts if isinstance(one, TextPart))
