"""thread.json and the names of folders."""

from __future__ import annotations

import base64

from sessiontree.formats import gojson, gotime
from sessiontree.formats.floret import wire
from sessiontree.model import Thread
from sessiontree.tokens import BLANKS

__all__ = ["folder_name", "meta_of"]


def folder_name(thread_id: str) -> str:
    """The folder that the original gives a thread.

    >>> folder_name("a/b")
    'id_YS9i'
    """
    trimmed = thread_id.strip(BLANKS)
    return "id_" + base64.urlsafe_b64encode(trimmed.encode()).decode().rstrip("=") if trimmed else "_"


def meta_of(thread: Thread) -> bytes:
    """thread.json for a thread as it is now."""
    origin = thread.origin
    meta = wire.ThreadMeta(
        id=origin.get("id", thread.id),
        leaf_id=thread.leaf or "",
        parent_thread_id=thread.parent_thread,
        forked_from_thread_id=thread.forked_from_thread or origin.get("forked_from_thread", ""),
        forked_from_entry_id=thread.forked_from_entry or origin.get("forked_from_entry", ""),
        archived=thread.is_archived,
        title=thread.title,
        title_status=thread.title_status,
        title_source=thread.title_source,
        title_updated_at=_text(thread.title_updated_ns),
        title_error=thread.title_error,
        created_at=_text(thread.created_ns),
        updated_at=_text(thread.updated_ns),
        status=thread.status,
        last_viewed_at=_text(thread.last_viewed_ns),
    )
    return gojson.indented(gojson.encode(meta))


def _text(time_ns: int) -> str:
    return gotime.text(time_ns) if time_ns else gotime.ZERO
