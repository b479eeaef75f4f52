"""Small changes of a session: prompt, title, tags, custom data."""

from __future__ import annotations

from typing import Any

from sessiontree.errors import InvalidInputError
from sessiontree.flows import Flow
from sessiontree.manager.desk import existing, update
from sessiontree.messages import system
from sessiontree.model import Entry, SessionKey, Thread

__all__ = ["change_tags", "set_custom", "set_system_prompt", "set_title"]


def set_system_prompt(key: SessionKey, text: str) -> Flow[Entry]:
    """The prompt is an entry of its own, so no summary can take its place."""
    thread = yield from existing(key)
    entry: Entry = yield lambda journal: journal.append(thread.id, system(text))
    return entry


def set_title(key: SessionKey, title: str) -> Flow[Thread]:
    return (yield from _changed(key, lambda _: {"title": title, "title_status": "ready", "title_source": "host"}))


def change_tags(key: SessionKey, *, added: str = "", removed: str = "") -> Flow[Thread]:
    """Each tag once, in the order in which they came."""

    def changes(thread: Thread) -> dict[str, Any]:
        tags = dict.fromkeys(tag for tag in (*thread.tags, added) if tag and tag != removed)
        return {"tags": tuple(tags)}

    return (yield from _changed(key, changes))


def set_custom(key: SessionKey, name: str, value: Any) -> Flow[Thread]:
    if name.startswith("_"):
        raise InvalidInputError(f"names with a leading underscore are kept for the manager itself; rename {name!r}")
    return (yield from _changed(key, lambda thread: {"custom": {**thread.custom, name: value}}))


def _changed(key: SessionKey, changes: Any) -> Flow[Thread]:
    thread = yield from existing(key)
    return (yield from update(thread.id, changes))
