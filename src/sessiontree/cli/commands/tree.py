"""The commands tree and log."""

from __future__ import annotations

import click

from sessiontree.cli.addresses import resolve, short, thread_or_pick
from sessiontree.cli.context import CliContext
from sessiontree.cli.declare import (
    all_entries_option,
    argument,
    command,
    count_option,
    no_pager_option,
    thread_argument,
)
from sessiontree.cli.output import cell_width, fit
from sessiontree.cli.render.text import clock_time, gist, is_bookkeeping, role_of
from sessiontree.cli.render.tree import ASCII, Row, rows_of
from sessiontree.model import Thread
from sessiontree.model.sanitize import one_line

__all__ = ["log", "tree"]


_STYLES = {"user": "cyan", "assistant": "green", "tool": "magenta", "system": "blue"}
_NARROWEST_TEXT = 8
_WIDE = 70


@command(
    "tree",
    examples=[
        "sessiontree tree @",
        "sessiontree tree 3fa9c0de --no-fold",
        "sessiontree tree 3fa9c0de --all --json",
    ],
)
@thread_argument
@click.option("--no-fold", is_flag=True, help="Show every entry of long runs without a branch.")
@all_entries_option
@no_pager_option
def tree(cli: CliContext, *, thread: str | None, no_fold: bool, everything: bool, no_pager: bool) -> None:
    """Draw all branches of a thread: the active path runs straight down, the others are indented where they start.

    \b
    ● active path   ○ other branch   ◆ compaction   ✗ failed turn   ◼ checkpoint   ⋮ folded entries
    """
    found = thread_or_pick(cli, thread)
    _draw(cli, found, is_folded=not no_fold, shows_all=everything, is_paged=not no_pager)


@command(
    "log",
    examples=[
        "sessiontree log @ -n 10",
        "sessiontree log @ --graph",
        "sessiontree log 3fa9c0de:good",
    ],
)
@argument("address", "A thread, or the entry to start from.", required=False)
@count_option("--limit", "-n", default=50, about="List at most N entries.")
@click.option("--graph", is_flag=True, help="Draw branches, as `tree` does.")
@all_entries_option
@no_pager_option
def log(cli: CliContext, *, address: str | None, limit: int, graph: bool, everything: bool, no_pager: bool) -> None:
    """List the entries of a path, newest first.

    In a pipe: id, time, role and text, separated by tabs.
    """
    if graph:
        thread = thread_or_pick(cli, address)
        _draw(cli, thread, is_folded=True, shows_all=everything, is_paged=not no_pager)
        return
    found = resolve(cli.journal, address or thread_or_pick(cli, None).id)
    path = cli.journal.path(found.thread.id, found.entry_id)
    shown = [entry for entry in reversed(path) if everything or not is_bookkeeping(entry)][:limit]
    if cli.out.is_json:
        cli.out.json(thread=found.thread, entries=shown)
        return

    def write() -> None:
        for entry in shown:
            if not cli.out.is_terminal:
                cells = (entry.id, entry.created_at.isoformat(), role_of(entry), gist(entry, 2000))
                cli.out.line("\t".join(cells))
                continue
            when = f"  {clock_time(entry.created_at)}" if cli.out.width >= _WIDE else ""
            lead = f"{short(entry.id)}{when}  {role_of(entry):<10} "
            text = gist(entry, max(_NARROWEST_TEXT, cli.out.width - len(lead)))
            cli.out.line(cli.out.styled(lead, _STYLES.get(role_of(entry), "")) + text)

    cli.out.page(write, is_enabled=not no_pager)


def _draw(cli: CliContext, thread: Thread, *, is_folded: bool, shows_all: bool, is_paged: bool) -> None:
    journal = cli.journal
    entries = journal.entries(thread.id)
    forks: dict[str, list[Thread]] = {}
    for other in journal.list_threads(tree=thread.tree, is_archived=None, limit=1000):
        if other.forked_from_entry and other.id != thread.id:
            forks.setdefault(other.forked_from_entry, []).append(other)
    rows = rows_of(
        entries,
        leaf=thread.leaf,
        labels=journal.labels(thread.id),
        notable=set(forks),
        glyphs=ASCII if cli.out.is_plain_ascii else None,
        is_folded=is_folded,
        shows_all=shows_all,
    )
    if cli.out.is_json:
        cli.out.json(thread=thread, rows=list(rows))
        return

    def write() -> None:
        title = one_line(thread.title or "(no title)", max(_NARROWEST_TEXT, cli.out.width - 12))
        cli.out.line(f"{cli.out.styled(short(thread.id), 'yellow')}  {cli.out.styled(title, 'bold')}")
        for row in rows:
            cli.out.line(_line(cli, row, forks))

    cli.out.page(write, is_enabled=is_paged)


def _line(cli: CliContext, row: Row, forks: dict[str, list[Thread]]) -> str:
    styled = cli.out.styled
    width = cli.out.width if cli.out.is_terminal else 200
    prefix = _shortened(row.prefix, max(4, (width - 36) // 2)) if cli.out.is_terminal else row.prefix
    if row.entry is None:
        return f"{styled(prefix, 'dim')}{row.glyph} " + styled(f"{row.folded} entries", "dim")
    role = role_of(row.entry)
    notes = [f"[{one_line(name, 30)}]" for name in row.labels]
    notes += [f"fork {short(fork.id)}" for fork in forks.get(row.entry.id, ())]
    if row.is_leaf:
        notes.append("<- leaf" if cli.out.is_plain_ascii else "← leaf")
    lead = f"{row.glyph} {short(row.entry.id)} {role:<9} "
    tail = (" " + " ".join(notes)) if notes else ""
    text = fit(gist(row.entry, width), max(_NARROWEST_TEXT, width - len(prefix) - cell_width(lead) - cell_width(tail)))
    body = styled(lead, _STYLES.get(role, "yellow") if row.is_active else "dim") + text
    return styled(prefix, "dim") + body + styled(tail, "bold")


def _shortened(prefix: str, width: int) -> str:
    """Cut a deep indentation on the left, so that there is room for the entry."""
    return prefix if len(prefix) <= width else "…" + prefix[len(prefix) - width + 1 :]
