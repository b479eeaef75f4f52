"""What a list says about a thread: its title, folder and tool."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import PurePosixPath, PureWindowsPath

from sessiontree.model import Entry, Record, Thread, UserMessage
from sessiontree.model.sanitize import one_line
from sessiontree.model.titles import is_title_text, title_from
from sessiontree.render.times import moment_at, short_day
from sessiontree.render.turns import (
    Amount,
    Tokens,
    branch_count,
    cost_of_entries,
    is_bookkeeping,
    is_cut_off,
    tokens_of,
)

__all__ = ["ThreadSummary", "first_words", "folder_of", "home_path", "path_in", "summary_of", "title_of", "tool_of"]


_LONGEST = 1000


class ThreadSummary(Record, frozen=True, kw_only=True):
    """A thread and what its entries say about it; None where they were not read."""

    thread: Thread
    title: str = ""
    entries: int
    branches: int | None = None
    cost: Amount = Amount(None)
    tokens: Tokens = Tokens(None)
    is_running: bool = False
    is_cut_off: bool = False


def title_of(thread: Thread, now: datetime, path: Sequence[Entry] = ()) -> str:
    """Return the title of a thread; without one, the first words of the user on a path, else its folder and day."""
    if thread.title.strip():
        return one_line(thread.title, _LONGEST)
    if words := first_words(path):
        return words
    day = short_day(moment_at(thread.created_ns, now).date())
    return f"{folder_of(thread) or 'a thread'}, {day}"


def folder_of(thread: Thread) -> str:
    """Return the name of the folder that a thread belongs to."""
    path = one_line(thread.workspace, _LONGEST).rstrip("/\\")
    return PureWindowsPath(path).name if "\\" in path else PurePosixPath(path).name


def home_path(path: str, home: str) -> str:
    """Return a path with ``~`` for the home folder."""
    base = home.rstrip("/")
    return "~" + path[len(base) :] if base and (path == base or path.startswith(base + "/")) else path


def tool_of(thread: Thread) -> str:
    """Return the program that a thread comes from."""
    for name in ("tool", "format", "source"):
        value = thread.origin.get(name)
        if isinstance(value, str) and value and "/" not in value:
            return one_line(value, _LONGEST)
    return one_line(thread.key.channel or thread.vendor, _LONGEST)


def path_in(entries: Sequence[Entry], leaf: str | None) -> list[Entry]:
    """Return the entries from the root to a leaf, out of all entries of a thread."""
    by_id = {entry.id: entry for entry in entries}
    path: list[Entry] = []
    entry = by_id.get(leaf) if leaf else None
    while entry is not None:
        path.append(entry)
        entry = by_id.get(entry.parent) if entry.parent else None
    path.reverse()
    return path


def first_words(path: Sequence[Entry]) -> str:
    """Return a title from the first real words of the user; "" if there are none."""
    for entry in path:
        text = entry.payload.message.text.strip() if isinstance(entry.payload, UserMessage) else ""
        if is_title_text(text):
            return title_from(one_line(text, _LONGEST))
    return ""


def summary_of(thread: Thread, entries: Sequence[Entry], now: datetime, *, is_running: bool = False) -> ThreadSummary:
    """Return what the entries of a thread say about it. Those that it shares with its source cost nothing here."""
    path = path_in(entries, thread.leaf)
    return ThreadSummary(
        thread=thread,
        title=title_of(thread, now, path),
        entries=sum(not is_bookkeeping(entry) for entry in entries),
        branches=branch_count(entries),
        cost=cost_of_entries(entry for entry in entries if entry.thread_id == thread.id),
        tokens=tokens_of(thread, path),
        is_running=is_running,
        is_cut_off=not is_running and is_cut_off(path),
    )
