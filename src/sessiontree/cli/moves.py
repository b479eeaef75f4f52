"""What the verbs that move the head say: where it is now, what waits elsewhere, what a fork shares."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sessiontree.cli.context import CliContext
from sessiontree.cli.screen.lines import DIM, Line, beside
from sessiontree.cli.screen.rows import entry_line
from sessiontree.cli.views import build_view
from sessiontree.model import Entry, Thread
from sessiontree.render.figures import plural
from sessiontree.render.turns import is_bookkeeping

if TYPE_CHECKING:
    from sessiontree.journal import Journal

__all__ = ["head_line", "shown_path", "waiting_line"]


def shown_path(journal: Journal, thread_id: str) -> list[Entry]:
    """Return the entries of the path that people are shown, and that lists count."""
    return [entry for entry in journal.path(thread_id) if not is_bookkeeping(entry)]


def head_line(cli: CliContext, thread: Thread, width: int = 0) -> list[Line]:
    """Draw the entry that is the head now."""
    path = shown_path(cli.journal, thread.id)
    if not path:
        return [Line(("  at the beginning, before the first entry", DIM))]
    head: Entry = path[-1]
    width = width or cli.out.width
    view = build_view(cli, thread, [head], width=width)
    line = Line("  ", (cli.entries(thread.id)[head.id], "33"), "  ").extend(entry_line(view, head, is_active=True))
    mark = Line(("◀ head", "1;32"))
    shown = line.cut(max(8, width - mark.width - 2))
    return [beside(shown, mark, shown.width + 2 + mark.width)]


def waiting_line(cli: CliContext, before: Thread, after: Thread) -> list[Line]:
    """Draw what the head left behind: the entries that wait on a branch of their own."""
    if before.leaf is None:
        return []
    now = {entry.id for entry in cli.journal.path(after.id)}
    left = [entry for entry in cli.journal.path(after.id, before.leaf) if entry.id not in now]
    shown = [entry for entry in left if not is_bookkeeping(entry)]
    if not shown:
        return []
    words = f"{plural(len(shown), 'entry waits', 'entries wait')} on a branch of their own"
    if len(shown) == 1:
        words = "1 entry waits on a branch of its own"
    name = cli.entries(after.id)[shown[-1].id]
    return [Line((f"  {name}  ╰─○ {words}", DIM)).cut(cli.out.width)]
