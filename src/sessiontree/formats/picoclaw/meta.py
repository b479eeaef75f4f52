"""The meta file and the older session file."""

from __future__ import annotations

from sessiontree.formats import gojson, gotime
from sessiontree.formats.picoclaw import wire
from sessiontree.model import Thread

__all__ = ["legacy_of", "meta_of"]


def meta_of(thread: Thread, skip: int, count: int, summary: str) -> bytes:
    meta = wire.Meta(
        key=thread.origin.get("key", thread.id),
        summary=summary,
        skip=skip,
        count=count,
        created_at=gotime.text(thread.created_ns),
        updated_at=gotime.text(thread.updated_ns),
    )
    return gojson.indented(gojson.encode(meta))


def legacy_of(thread: Thread, messages: list[wire.Message] | None, summary: str) -> bytes:
    session = wire.LegacySession(
        key=thread.origin.get("key", thread.id),
        messages=messages,
        summary=summary,
        created=gotime.text(thread.created_ns),
        updated=gotime.text(thread.updated_ns),
    )
    return gojson.indented(gojson.encode(session))
