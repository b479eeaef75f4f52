"""The meta file, the older session file, and the names of both."""

from __future__ import annotations

import hashlib
import re

from sessiontree.formats import gojson, gotime
from sessiontree.formats.picoclaw import wire
from sessiontree.model import Thread

__all__ = ["legacy_of", "meta_of", "stem_of"]

_LONGEST_STEM = 200


def stem_of(key: str) -> str:
    """The file name of a key without its ending. Two keys may share one: only the meta file knows the real key.

    >>> stem_of("agent:main/1")
    'agent_main_1'
    """
    stem = re.sub(r"[:/\\\x00]", "_", key)
    if len(stem.encode()) <= _LONGEST_STEM:
        return stem
    return stem.encode()[:100].decode(errors="ignore") + "-" + hashlib.sha256(key.encode()).hexdigest()[:32]


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
