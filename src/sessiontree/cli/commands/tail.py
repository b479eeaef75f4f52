"""The command tail."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator

import click

from sessiontree.cli.addresses import short, thread_or_pick
from sessiontree.cli.context import CliContext
from sessiontree.cli.declare import all_entries_option, command, count_option, thread_argument
from sessiontree.cli.exit_codes import UsageError
from sessiontree.cli.output import SCHEMA_VERSION, as_json
from sessiontree.cli.render.text import gist, is_bookkeeping, role_of
from sessiontree.model import Entry, Thread

__all__ = ["tail"]


@command(
    "tail",
    examples=[
        "sessiontree tail @",
        "sessiontree tail 3fa9c0de -n 0 --json | jq --unbuffered .entry",
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
        raise UsageError("--for must be a number of seconds")
    found = thread_or_pick(cli, thread)
    previous: Entry | None = None
    for entry in _follow(cli, found, lines, seconds or None):
        if previous is not None and entry.parent != previous.id:
            cli.out.info(f"-- back to {short(entry.parent or 'the start')}")
        previous = entry
        if everything or not is_bookkeeping(entry):
            _print(cli, entry)


def _follow(cli: CliContext, thread: Thread, lines: int, timeout: float | None) -> Iterator[Entry]:
    """The last entries, then new ones. The watch starts before the read, so that no entry is missed."""
    new = cli.journal.watch(thread.id, timeout=timeout)
    last = cli.journal.path(thread.id, limit=lines) if lines else []
    seen = {entry.id for entry in last}
    yield from last
    yield from (entry for entry in new if entry.id not in seen)


def _print(cli: CliContext, entry: Entry) -> None:
    if cli.out.is_json:
        cli.out.line(as_json({"schema_version": SCHEMA_VERSION, "entry": entry}).decode())
    else:
        lead = f"{short(entry.id)} {role_of(entry):<9} "
        width = cli.out.width if cli.out.is_terminal else 2000
        cli.out.line(cli.out.styled(lead, "cyan") + gist(entry, max(16, width - len(lead))))
    sys.stdout.flush()
