"""The command tail."""

from __future__ import annotations

import math
import sys
from collections import deque
from collections.abc import Iterable, Iterator

import click

from sessiontree.cli.addresses import thread_or_pick
from sessiontree.cli.context import CliContext
from sessiontree.cli.declare import all_entries_option, command, count_option, thread_argument
from sessiontree.cli.exit_codes import UsageError
from sessiontree.cli.output import SCHEMA_VERSION, as_json
from sessiontree.cli.screen.lines import DIM, FAILURE, TOOL, Line
from sessiontree.cli.screen.rows import ThreadView, entry_line, outcome_line
from sessiontree.cli.views import build_view
from sessiontree.model import Entry, Thread
from sessiontree.render.entries import role_of, words_of
from sessiontree.render.gists import gist_of
from sessiontree.render.times import clock, iso
from sessiontree.render.turns import is_bookkeeping

__all__ = ["tail"]


_REMEMBERED = 200
"""In how many entries the call of a result is looked for."""


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
    recent = deque(cli.journal.path(found.id, limit=_REMEMBERED), maxlen=_REMEMBERED)
    for entry in _follow(cli, found, lines, seconds or None):
        if previous is not None and entry.parent != previous.id:
            cli.out.info(f"-- back to {cli.entries(found.id)[entry.parent] if entry.parent else 'the start'}")
        previous = entry
        recent.append(entry)
        if everything or not is_bookkeeping(entry):
            _print(cli, found, entry, recent)


def _follow(cli: CliContext, thread: Thread, lines: int, timeout: float | None) -> Iterator[Entry]:
    """The last entries, then new ones. The watch starts before the read, so that no entry is missed."""
    new = cli.journal.watch(thread.id, timeout=timeout)
    last = cli.journal.path(thread.id, limit=lines) if lines else []
    seen = {entry.id for entry in last}
    yield from last
    yield from (entry for entry in new if entry.id not in seen)


def _print(cli: CliContext, thread: Thread, entry: Entry, recent: Iterable[Entry]) -> None:
    if cli.out.is_json:
        cli.out.line(as_json({"schema_version": SCHEMA_VERSION, "entry": entry}).decode())
    elif cli.out.is_terminal:
        time = Line((f"{clock(entry.created_at, cli.now)}  ", DIM))
        cli.out.draw([time.extend(_line(build_view(cli, thread, list(recent), width=cli.out.width), entry))])
    else:
        cli.out.row((entry.id, iso(entry.created_at), role_of(entry), words_of(entry, thread.workspace)))
    sys.stdout.flush()


def _line(view: ThreadView, entry: Entry) -> Line:
    """An entry when it comes: of a call what it does, of a result what came of its call."""
    calls = {call.id: call for other in view.entries if other.message is not None for call in other.message.tool_calls}
    made = [gist_of(call, None, view.folder) for call in entry.message.tool_calls] if entry.message is not None else []
    results = entry.message.tool_results if entry.message is not None else ()
    answered = [gist_of(calls[result.call_id], result, view.folder) for result in results if result.call_id in calls]
    if answered:
        line = Line(("╰ ", DIM), (answered[0].name, FAILURE if answered[0].is_failed else TOOL))
        line.extend(outcome_line(answered[0]))
    elif made and entry.message is not None and not entry.message.text.strip():
        line = Line(("• ", DIM), (made[0].name, TOOL), f"  {made[0].object}")
    else:
        line = entry_line(view, entry, is_active=True)
    more = max(len(answered), len(made)) - 1
    return line.add(f"  and {more} more" if more > 0 else "", DIM).cut(view.width - len("00:00  "))
