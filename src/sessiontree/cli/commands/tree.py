"""tree, log."""

from __future__ import annotations

from typing import Annotated

import typer

from sessiontree.cli.addresses import place_of, short, thread_for
from sessiontree.cli.context import CliContext
from sessiontree.cli.output import cell_width, fit
from sessiontree.cli.render.text import clock_time, gist, is_bookkeeping, role_of
from sessiontree.cli.render.tree import ASCII, Row, rows_of
from sessiontree.model import Thread
from sessiontree.model.sanitize import one_line

__all__ = ["EXAMPLES", "log", "tree"]


EXAMPLES = {
    "tree": """Examples:

\b
  sessiontree tree @
  sessiontree tree 3fa9c0de --no-fold
  sessiontree tree 3fa9c0de --all --json""",
    "log": """Examples:

\b
  sessiontree log @ -n 10
  sessiontree log @ --graph
  sessiontree log 3fa9c0de:good""",
}

_STYLES = {"user": "cyan", "assistant": "green", "tool": "magenta", "system": "blue"}
_LEAST_TEXT = 8
_WIDE = 70

NoPager = Annotated[bool, typer.Option("--no-pager", help="Do not page.")]


def tree(
    ctx: typer.Context,
    thread: Annotated[str | None, typer.Argument(help="The thread.", metavar="THREAD")] = None,
    no_fold: Annotated[bool, typer.Option("--no-fold", help="Show long stretches entry by entry.")] = False,
    everything: Annotated[bool, typer.Option("--all", "-a", help="Turn markers, usage and labels as well.")] = False,
    no_pager: NoPager = False,
) -> None:
    """Draw all branches of a thread: the active path runs straight down, others hang from where they left it.

    \b
    ● active path   ○ other branch   ◆ compaction   ✗ failed turn   ◼ checkpoint   ⋮ folded entries
    """
    world: CliContext = ctx.obj
    found = thread_for(world, thread)
    _draw(world, found, is_folded=not no_fold, shows_all=everything, is_paged=not no_pager)


def log(
    ctx: typer.Context,
    address: Annotated[str | None, typer.Argument(help="A thread, or the entry to start from.")] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="How many entries.")] = 50,
    graph: Annotated[bool, typer.Option("--graph", help="Draw branches, as `tree` does.")] = False,
    everything: Annotated[bool, typer.Option("--all", "-a", help="Turn markers, usage and labels as well.")] = False,
    no_pager: NoPager = False,
) -> None:
    """List the entries on a path, newest first.

    In a pipe: id, time, role, text, separated by tabs.
    """
    world: CliContext = ctx.obj
    if graph:
        found = thread_for(world, address)
        _draw(world, found, is_folded=True, shows_all=everything, is_paged=not no_pager)
        return
    place = place_of(world.journal, address or thread_for(world, None).id)
    path = world.journal.path(place.thread.id, place.entry_id)
    shown = [entry for entry in reversed(path) if everything or not is_bookkeeping(entry)][:limit]
    if world.out.is_json:
        world.out.json(thread=place.thread, entries=shown)
        return

    def write() -> None:
        for entry in shown:
            if not world.out.is_terminal:
                cells = (entry.id, entry.created_at.isoformat(), role_of(entry), gist(entry, 2000))
                world.out.line("\t".join(cells))
                continue
            when = f"  {clock_time(entry.created_at)}" if world.out.width >= _WIDE else ""
            lead = f"{short(entry.id)}{when}  {role_of(entry):<10} "
            text = gist(entry, max(_LEAST_TEXT, world.out.width - len(lead)))
            world.out.line(world.out.styled(lead, _STYLES.get(role_of(entry), "")) + text)

    world.out.page(write, is_wanted=not no_pager)


def _draw(world: CliContext, thread: Thread, *, is_folded: bool, shows_all: bool, is_paged: bool) -> None:
    journal = world.journal
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
        glyphs=ASCII if world.out.is_plain_ascii else None,
        is_folded=is_folded,
        shows_all=shows_all,
    )
    if world.out.is_json:
        world.out.json(thread=thread, rows=list(rows))
        return

    def write() -> None:
        title = one_line(thread.title or "(no title)", max(_LEAST_TEXT, world.out.width - 12))
        world.out.line(f"{world.out.styled(short(thread.id), 'yellow')}  {world.out.styled(title, 'bold')}")
        for row in rows:
            world.out.line(_line(world, row, forks))

    world.out.page(write, is_wanted=is_paged)


def _line(world: CliContext, row: Row, forks: dict[str, list[Thread]]) -> str:
    styled = world.out.styled
    room = world.out.width if world.out.is_terminal else 200
    prefix = _on_screen(row.prefix, max(4, (room - 36) // 2)) if world.out.is_terminal else row.prefix
    if row.entry is None:
        return f"{styled(prefix, 'dim')}{row.glyph} " + styled(f"{row.folded} entries", "dim")
    role = role_of(row.entry)
    notes = [f"[{one_line(name, 30)}]" for name in row.labels]
    notes += [f"fork {short(fork.id)}" for fork in forks.get(row.entry.id, ())]
    if row.is_leaf:
        notes.append("<- leaf" if world.out.is_plain_ascii else "← leaf")
    lead = f"{row.glyph} {short(row.entry.id)} {role:<9} "
    tail = (" " + " ".join(notes)) if notes else ""
    text = fit(gist(row.entry, room), max(_LEAST_TEXT, room - len(prefix) - cell_width(lead) - cell_width(tail)))
    body = styled(lead, _STYLES.get(role, "yellow") if row.is_active else "dim") + text
    return styled(prefix, "dim") + body + styled(tail, "bold")


def _on_screen(prefix: str, room: int) -> str:
    """Of a deep indent the end, so that there is room for the entry."""
    return prefix if len(prefix) <= room else "…" + prefix[len(prefix) - room + 1 :]
