"""The commands tree and log."""

from __future__ import annotations

from itertools import chain, islice

import click

from sessiontree.cli.addresses import address_or_pick, resolve_thread, thread_or_pick
from sessiontree.cli.context import CliContext
from sessiontree.cli.declare import (
    all_entries_option,
    argument,
    command,
    count_option,
    no_pager_option,
    thread_argument,
)
from sessiontree.cli.output import LISTS
from sessiontree.cli.screen.graph import graph_lines, log_lines
from sessiontree.cli.screen.lines import DIM, ID, Line
from sessiontree.cli.screen.rows import ThreadView, entry_line
from sessiontree.cli.screen.tree import TreeFilter, tree_lines
from sessiontree.cli.screen.turn_table import turn_table_lines
from sessiontree.cli.times import nanoseconds
from sessiontree.cli.views import head_of, view_of
from sessiontree.model import Entry, Thread
from sessiontree.render.branches import Branches
from sessiontree.render.cells import pad
from sessiontree.render.entries import role_of, words_of
from sessiontree.render.figures import count, plural
from sessiontree.render.times import iso
from sessiontree.render.turns import is_bookkeeping, is_prompt

__all__ = ["log", "tree"]


_SMALL = 200
"""A thread with more entries is drawn as a table, one row for each message of the user."""


@command(
    "tree",
    examples=[
        "sessiontree tree @",
        "sessiontree tree 3a19 --full",
        "sessiontree tree 3a19 --failed --since 2d",
        "sessiontree tree 3a19 --all --json",
    ],
)
@thread_argument
@click.option("--full", is_flag=True, help="Fold nothing, also in a large thread.")
@click.option("--user", is_flag=True, help="Only what users said.")
@click.option("--no-tools", is_flag=True, help="Only what was said, without steps.")
@click.option("--labeled", is_flag=True, help="Only entries with a label.")
@click.option("--failed", is_flag=True, help="Only steps that failed.")
@click.option("--since", default="", metavar="TIME", help="Only entries since then: a date, or an age such as 2d.")
@click.option(
    "--depth",
    type=click.IntRange(min=0),
    metavar="N",
    help="Only branches up to this depth; 0 is the active path alone.",
)
@all_entries_option
@no_pager_option
def tree(
    cli: CliContext,
    *,
    thread: str | None,
    full: bool,
    user: bool,
    no_tools: bool,
    labeled: bool,
    failed: bool,
    since: str,
    depth: int | None,
    everything: bool,
    no_pager: bool,
) -> None:
    """Draw all branches of a thread: the active path runs straight down, the others are indented where they start.

    A thread with more than 200 entries is a table: one row for each message of the user.

    \b
    ❯ user   ● answer on the active path   ○ on another branch   ┆ folded steps   ≈ compaction   ! cut off
    """
    found = thread_or_pick(cli, thread, "tree")
    if cli.out.is_json:
        _print_json(cli, found)
        return
    view = view_of(cli, found)
    keep = _filter(cli, view, is_user=user, is_talk=no_tools, is_labeled=labeled, is_failed=failed, since=since)
    is_small = sum(not is_bookkeeping(entry) for entry in view.entries) <= _SMALL
    if is_small or full or everything or keep is not None or depth is not None:
        is_folded = not (full or everything or failed)
        body = tree_lines(view, is_folded=is_folded, shows_all=everything, keep=keep, depth=depth)
        cli.out.draw_paged(chain(head_of(cli, view), body), is_enabled=not no_pager)
        return
    lines = chain(head_of(cli, view), turn_table_lines(view), _count_line(cli, view))
    cli.out.draw_paged(lines, is_enabled=not no_pager)


def _count_line(cli: CliContext, view: ThreadView) -> list[Line]:
    """The last line below a table: how much there is, and how to open one of its turns."""
    prompts = [entry for entry in view.entries if is_prompt(entry)]
    entries = sum(not is_bookkeeping(entry) for entry in view.entries)
    line = Line((f"{plural(len(prompts), 'message')} of yours, {count(entries)} entries", DIM))
    if prompts:
        typed = cli.out.command(f"sessiontree show {cli.typed(view.thread.id, prompts[-1].id)}")
        command = Line((" · ", DIM), typed, (" opens a turn", DIM))
        if line.width + command.width <= view.width:
            line.extend(command)
    return [Line(), line.cut(view.width)]


def _filter(
    cli: CliContext, view: ThreadView, *, is_user: bool, is_talk: bool, is_labeled: bool, is_failed: bool, since: str
) -> TreeFilter | None:
    start = nanoseconds(cli, "--since", since) if since else 0
    if not (is_user or is_talk or is_labeled or is_failed or since):
        return None

    def keep(entry: Entry) -> bool:
        if entry.created_ns < start:
            return False
        if is_user and not is_prompt(entry):
            return False
        if is_talk and (entry.message is None or entry.message.role not in {"user", "assistant"}):
            return False
        if is_labeled and entry.id not in view.labels:
            return False
        return not is_failed or any(gist.is_failed for gist in view.gists(entry))

    return keep


def _print_json(cli: CliContext, thread: Thread) -> None:
    entries = cli.journal.entries(thread.id)
    branches = Branches(entries, thread.leaf)
    rows = [
        {"entry": entry, "depth": run.depth, "is_active": run.is_active, "is_head": entry.id == branches.head}
        for run in branches.runs()
        for entry in run.entries
    ]
    cli.out.json(thread=thread, labels=cli.journal.labels(thread.id), rows=rows)


@command(
    "log",
    examples=[
        "sessiontree log @ -n 10",
        "sessiontree log @ --graph",
        "sessiontree log 3a19:good",
    ],
)
@argument("address", "A thread, or the entry to start from.", required=False)
@count_option("--limit", "-n", default=50, about="List at most N entries.")
@click.option("--graph", is_flag=True, help="Draw all branches, newest first.")
@click.option("--moves", is_flag=True, help="List the moves of the head instead.")
@all_entries_option
@no_pager_option
def log(
    cli: CliContext, *, address: str | None, limit: int, graph: bool, moves: bool, everything: bool, no_pager: bool
) -> None:
    """List the entries of a path, newest first; a tool call stands together with its result.

    In a pipe: id, parent, time, role and text, separated by tabs.
    """
    found = address_or_pick(cli, address, "log")
    if moves:
        _print_moves(cli, resolve_thread(cli, found.thread.id), limit)
        return
    options = " -a" * everything
    if graph and cli.out.is_json:
        _print_json(cli, found.thread)
        return
    if graph:
        view = view_of(cli, found.thread)
        rest = f"{options} --graph {cli.typed(found.thread.id)}"
        _draw(cli, list(graph_lines(view, shows_all=everything)), limit, rest, is_paged=not no_pager)
        return
    path = cli.journal.path(found.thread.id, found.entry_id)
    shown = [entry for entry in path if everything or not is_bookkeeping(entry)]
    if cli.out.is_json:
        cli.out.json(thread=found.thread, entries=shown[::-1][:limit])
    elif not cli.out.is_terminal:
        folder = found.thread.workspace
        for entry in shown[::-1][:limit]:
            cells = (entry.id, entry.parent or "", iso(entry.created_at), role_of(entry), words_of(entry, folder))
            cli.out.row(cells)
    else:
        view = view_of(cli, found.thread)
        entry_id = found.entry_id if found.entry_id != found.thread.leaf else None
        rest = f"{options} {cli.typed(found.thread.id, entry_id)}"
        _draw(cli, list(log_lines(view, shown, shows_all=everything)), limit, rest, is_paged=not no_pager)


def _draw(cli: CliContext, lines: list[Line], limit: int, rest: str, *, is_paged: bool) -> None:
    cli.out.draw_paged(islice(lines, limit), is_enabled=is_paged)
    if len(lines) > limit:
        cli.out.hint((f"{count(len(lines) - limit)} more:", f"sessiontree log -n {len(lines)}{rest}"))


def _print_moves(cli: CliContext, thread: Thread, limit: int) -> None:
    """List the moves of the head, newest first."""
    moves = cli.journal.reflog(thread.id)[::-1][:limit]
    if cli.out.is_json:
        cli.out.json(thread=thread, moves=moves)
    elif not cli.out.is_terminal:
        for move in moves:
            cli.out.row((move.number, iso(move.at), move.reason, move.from_entry or "", move.to_entry or ""))
    else:
        view = view_of(cli, thread)
        by_id = {entry.id: entry for entry in view.entries}
        widest = max((len(move.reason) for move in moves), default=0)
        for back, move in enumerate(moves, start=1):
            line = Line((f"@{{-{back}}}", DIM), f"  {pad(move.reason, widest)}  ")
            line.add(view.ids[move.from_entry] if move.from_entry else "start", ID).add(" → ", DIM)
            line.add(view.ids[move.to_entry] if move.to_entry else "start", ID).add("  ")
            if move.to_entry in by_id:
                line.extend(entry_line(view, by_id[move.to_entry], is_active=True))
            cli.out.draw([line.cut(min(cli.out.width, LISTS))])
