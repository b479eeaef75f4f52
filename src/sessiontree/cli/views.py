"""Read a thread for drawing: its entries, short ids, labels and forks."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from sessiontree.cli.context import CliContext
from sessiontree.cli.screen.lines import Line
from sessiontree.cli.screen.rows import ThreadView
from sessiontree.cli.screen.threads import head_lines
from sessiontree.cli.summaries import summary
from sessiontree.model import Entry, Thread
from sessiontree.render.ids import ShortIds
from sessiontree.render.steps import results_in
from sessiontree.render.turns import is_bookkeeping

__all__ = ["head_of", "view_of"]


def view_of(cli: CliContext, thread: Thread, *, width: int | None = None) -> ThreadView:
    """Read a thread and all its branches."""
    entries = cli.journal.entries(thread.id)
    return build_view(cli, thread, entries, width=width or cli.out.width)


def build_view(cli: CliContext, thread: Thread, entries: Sequence[Entry], *, width: int) -> ThreadView:
    """Return the view of a thread whose entries were read."""
    ids = ShortIds(entry.id for entry in entries)
    return ThreadView(
        thread=thread,
        entries=tuple(entries),
        ids=ids,
        labels=_labels(cli, thread),
        forks=_forks(cli, thread),
        calls=frozenset(call.id for entry in entries if entry.message is not None for call in entry.message.tool_calls),
        results={call: result for call, (_, result) in results_in(entries).items()},
        now=cli.now,
        width=width,
        id_width=max((len(ids[entry.id]) for entry in entries if not is_bookkeeping(entry)), default=4),
    )


def head_of(cli: CliContext, view: ThreadView) -> Iterator[Line]:
    """Draw what stands above a thread."""
    row = summary(cli, view.thread, list(view.entries))
    return head_lines(row, cli.threads, view.now, min(view.width, 132), os.path.expanduser("~"))  # noqa: PTH111


def _labels(cli: CliContext, thread: Thread) -> dict[str, tuple[str, ...]]:
    found: dict[str, list[str]] = {}
    for name, target in cli.journal.labels(thread.id).items():
        found.setdefault(target, []).append(name)
    return {target: tuple(names) for target, names in found.items()}


def _forks(cli: CliContext, thread: Thread) -> dict[str, tuple[str, ...]]:
    """The threads that start at an entry of this one, by the entry."""
    found: dict[str, list[str]] = {}
    for other in cli.journal.list_threads(tree=thread.tree, is_archived=None, limit=1000):
        if other.forked_from_entry and other.id != thread.id:
            found.setdefault(other.forked_from_entry, []).append(cli.threads[other.id])
    return {entry_id: tuple(names) for entry_id, names in found.items()}
