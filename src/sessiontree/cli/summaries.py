"""Read what a list says about threads: branches, cost, whether a turn is running or was cut off."""

from __future__ import annotations

from collections.abc import Iterable

from sessiontree.cli.context import CliContext
from sessiontree.model import Entry, Thread, ThreadQuery
from sessiontree.render.figures import count
from sessiontree.render.threads import ThreadSummary, summary_of, title_of

__all__ = ["count_all", "count_threads", "left_out", "summaries", "summary", "title", "titles"]


_MOST_COUNTED = 1000
_MOST_READ = 20_000
"""How many entries a list reads for its figures; those of the threads after that are unknown."""


def summaries(cli: CliContext, threads: Iterable[Thread]) -> list[ThreadSummary]:
    """Return the summaries of threads for a list."""
    room = _MOST_READ
    found: list[ThreadSummary] = []
    for thread in threads:
        room -= thread.entries
        if room < 0:
            found.append(ThreadSummary(thread=thread, title=title_of(thread, cli.now), entries=thread.entries))
        else:
            found.append(summary(cli, thread, cli.journal.entries(thread.id)))
    return found


def title(cli: CliContext, thread: Thread) -> str:
    """Return the title of a thread, the same as in a list."""
    return title_of(thread, cli.now, () if thread.title.strip() else cli.journal.path(thread.id))


def titles(cli: CliContext, threads: Iterable[Thread]) -> list[tuple[Thread, str]]:
    """Return threads with their titles, the same as in a list; once enough was read, untitled ones with folder and day."""
    room = _MOST_READ
    found: list[tuple[Thread, str]] = []
    for thread in threads:
        room -= 0 if thread.title.strip() else thread.entries
        found.append((thread, title(cli, thread) if room >= 0 else title_of(thread, cli.now)))
    return found


def count_all(cli: CliContext) -> int:
    """Return how many threads the store has, with those that lists leave out."""
    return len(cli.threads) or cli.journal.stats().threads


def left_out(cli: CliContext) -> str:
    """Return how many of all threads a list leaves out, in words that go on after that number."""
    listed = count_threads(cli, ThreadQuery(is_empty=False))
    hidden = 0 if listed is None else count_all(cli) - listed
    return f", {count(hidden)} archived or empty" if hidden else ""


def count_threads(cli: CliContext, query: ThreadQuery) -> int | None:
    """Return how many threads a query selects; ``None`` in a store with so many that counting them takes too long."""
    if count_all(cli) > _MOST_COUNTED:
        return None
    return len(cli.journal.list_threads(query, limit=None, cursor=None))


def summary(cli: CliContext, thread: Thread, entries: list[Entry]) -> ThreadSummary:
    """Return the summary of a thread whose entries were read."""
    is_running = cli.journal.active_lease(thread.id) is not None
    return summary_of(thread, entries, cli.now, is_running=is_running)
