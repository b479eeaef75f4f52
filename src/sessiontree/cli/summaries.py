"""Read what a list says about threads: branches, cost, whether a turn is running or was cut off."""

from __future__ import annotations

from collections.abc import Iterable

from sessiontree.cli.context import CliContext
from sessiontree.model import Entry, Thread
from sessiontree.render.threads import ThreadSummary, summary_of, title_of

__all__ = ["summaries", "summary"]


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


def summary(cli: CliContext, thread: Thread, entries: list[Entry]) -> ThreadSummary:
    """Return the summary of a thread whose entries were read."""
    is_running = cli.journal.active_lease(thread.id) is not None
    return summary_of(thread, entries, cli.now, is_running=is_running)
