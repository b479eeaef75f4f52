"""The command tail."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator

import click

from sessiontree.cli.addresses import thread_or_pick
from sessiontree.cli.context import CliContext
from sessiontree.cli.declare import all_entries_option, command, count_option, thread_argument
from sessiontree.cli.exit_codes import UsageError
from sessiontree.cli.output import SCHEMA_VERSION, as_json
from sessiontree.cli.screen.lines import DIM, Line
from sessiontree.cli.screen.rows import entry_line
from sessiontree.cli.views import build_view
from sessiontree.model import Entry, Thread
from sessiontree.render.entries import role_of, words_of
from sessiontree.render.times import clock, iso
from sessiontree.render.turns import is_bookkeeping

__all__ = ["tail"]


@command(
    "tail",
    examples=[
        "sessiontree tail @",
        "sessiontree tail 3a19 -n 0 --json | jq --unbuffered .entry",
        "sessiontree tail @ --for 30",
    ],
)
@thread_argument
@count_option("--lines", "-n", default=10, minimum=0, about="Start with the last N entries.")
@click.option(
    "seconds",
    "--for",
    type=click.FloatRange(min=0),
    default=0,
    metavar="SECONDS",
    help="Stop after so many seconds without a new entry; 0 means never.",
)
@all_entries_option
def tail(cli: CliContext, *, thread: str | None, lines: int, seconds: float, everything: bool) -> None:
    """Follow a thread while any process writes to it, until Ctrl-C. With --json, print one object per line.

    When the thread continues from an earlier entry, a message names that entry.
    """
    if math.isnan(seconds):
        raise UsageError("--for must be a number of seconds.")
    found = thread_or_pick(cli, thread, "tail")
    previous: Entry | None = None
    for entry in _follow(cli, found, lines, seconds or None):
        if previous is not None and entry.parent != previous.id:
            cli.out.info(f"-- back to {cli.entries(found.id)[entry.parent] if entry.parent else 'the start'}")
        previous = entry
        if everything or not is_bookkeeping(entry):
            _print(cli, found, entry)


def _follow(cli: CliContext, thread: Thread, lines: int, timeout: float | None) -> Iterator[Entry]:
    """The last entries, then new ones. The watch starts before the read, so that no entry is missed."""
    new = cli.journal.watch(thread.id, timeout=timeout)
    last = cli.journal.path(thread.id, limit=lines) if lines else []
    seen = {entry.id for entry in last}
    yield from last
    yield from (entry for entry in new if entry.id not in seen)


def _print(cli: CliContext, thread: Thread, entry: Entry) -> None:
    if cli.out.is_json:
        cli.out.line(as_json({"schema_version": SCHEMA_VERSION, "entry": entry}).decode())
    elif cli.out.is_terminal:
        view = build_view(cli, thread, [entry], width=cli.out.width)
        line = Line((f"{clock(entry.created_at, cli.now)}  ", DIM)).extend(entry_line(view, entry, is_active=True))
        cli.out.draw([line.cut(cli.out.width)])
    else:
        cli.out.row((entry.id, iso(entry.created_at), role_of(entry), words_of(entry, thread.workspace)))
    sys.stdout.flush()
