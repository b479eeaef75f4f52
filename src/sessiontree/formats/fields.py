"""Metadata of imported threads: what the source changed comes in, what was changed here stays."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from sessiontree.formats.batches import UNFINISHED
from sessiontree.formats.session import Session
from sessiontree.journal import Journal
from sessiontree.model import Thread, ThreadFields

__all__ = ["settle_fields"]


def settle_fields(journal: Journal, loaded: Thread, left: str | None, session: Session, format_name: str) -> None:
    """Write what the source says now, after all entries are in; ``left`` is the tip that imports gave the thread."""
    thread = _with_news(journal, loaded, session)
    known = {**thread.origin, **session.fields.get("origin", {})}
    fields: ThreadFields = {**session.finish(replace(thread, origin=known))}
    origin = {"format": format_name, **fields.get("origin", known), "leaf": left, "given": _hashes(session.fields)}
    fields["origin"] = {name: value for name, value in origin.items() if name != UNFINISHED}
    changed: dict[str, Any] = {name: value for name, value in fields.items() if getattr(thread, name) != value}
    if changed:
        journal.update_thread(thread.id, **changed)


def _with_news(journal: Journal, thread: Thread, session: Session) -> Thread:
    """The thread with the fields that the source changed since the last import and nobody changed here."""
    before: dict[str, str] = thread.origin.get("given", {})
    values: Any = session.fields
    ours = _hashes({name: getattr(thread, name) for name in before})
    news = {name: values[name] for name, old in before.items() if name in values and ours[name] == old}
    changed = {name: value for name, value in news.items() if getattr(thread, name) != value}
    return journal.update_thread(thread.id, **changed) if changed else thread


def _hashes(fields: Mapping[str, Any]) -> dict[str, str]:
    """Each field in short, to see later whether it is still the same."""
    bodies = {name: msgspec.json.encode(value, order="sorted") for name, value in fields.items() if name != "origin"}
    return {name: f"{zlib.crc32(body):08x}" for name, body in bodies.items()}
