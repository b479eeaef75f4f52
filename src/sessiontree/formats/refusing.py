"""Sources that hold nothing of the format they are said to be in: they are named, and nothing is made of them."""

from __future__ import annotations

from itertools import chain
from pathlib import Path

from sessiontree.formats.report import Tally
from sessiontree.formats.session import UNREADABLE, Item, Session
from sessiontree.model import Custom

__all__ = ["note_if_nothing_came", "with_something_readable"]

_MOST_BYTES_HELD = 8 * 1024 * 1024


def with_something_readable(session: Session, tally: Tally, format_name: str) -> Session | None:
    """The session; ``None`` where nothing tells that it is one: no head, and not one record that can be read."""
    if session.has_head:
        return session
    items, held, start = iter(session.items), [], tally.bytes_read
    for item in items:
        held.append(item)
        if not _is_unreadable(item) or tally.bytes_read - start > _MOST_BYTES_HELD:
            return session._replace(items=chain(held, items))
    tally.note("damage", session.place, f"nothing in it can be read as {format_name}; it was left out")
    return None


def note_if_nothing_came(tally: Tally, source: Path, format_name: str) -> None:
    if not tally.threads and not tally.has_damage:
        problem = f"holds nothing in the format {format_name}; name the file or folder that the sessions are in"
        tally.note("damage", str(source), problem)


def _is_unreadable(item: Item) -> bool:
    return isinstance(item.payload, Custom) and item.payload.name == UNREADABLE
