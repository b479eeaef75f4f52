"""The meta record of a session: what its thread says about it now."""

from __future__ import annotations

import hashlib

from sessiontree.formats import gojson, gotime
from sessiontree.formats.ggcode import wire
from sessiontree.model import Thread

__all__ = ["meta_hash", "meta_record"]


def meta_record(thread: Thread) -> wire.Record:
    return wire.Record(
        type="meta",
        session_id=thread.origin.get("id", thread.id),
        title=thread.title,
        workspace=thread.workspace,
        vendor=thread.vendor,
        endpoint=thread.endpoint,
        model=thread.model,
        created_at=gotime.text(thread.created_ns),
        updated_at=gotime.text(thread.updated_ns),
    )


def meta_hash(thread: Thread) -> str:
    """Tells whether the metadata changed since an import; the time of the last change does not count."""
    record = meta_record(thread)
    record.updated_at = ""
    return hashlib.blake2b(gojson.encode_plain(record), digest_size=16).hexdigest()
