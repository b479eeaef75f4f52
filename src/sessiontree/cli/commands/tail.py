"""tail."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Annotated

import typer

from sessiontree.cli.addresses import short, thread_for
from sessiontree.cli.context import CliContext
from sessiontree.cli.exit_codes import UsageError
from sessiontree.cli.output import as_json
from sessiontree.cli.render.text import gist, is_bookkeeping, role_of
from sessiontree.model import Entry, Thread

__all__ = ["EXAMPLES", "tail"]


EXAMPLES = {
    "tail": """Examples:

\b
  sessiontree tail @
  sessiontree tail 3fa9c0de -n 0 --json | jq --unbuffered .entry
  sessiontree tail @ --for 30"""
}


def tail(
    ctx: typer.Context,
    thread: Annotated[str | None, typer.Argument(help="The thread.", metavar="THREAD")] = None,
    lines: Annotated[int, typer.Option("--lines", "-n", min=0, help="How many entries to start with.")] = 10,
    seconds: Annotated[float, typer.Option("--for", min=0, help="Stop when nothing came for so many seconds.")] = 0,
    everything: Annotated[bool, typer.Option("--all", "-a", help="Turn markers, usage and labels as well.")] = False,
) -> None:
    """Follow a thread live, whichever process writes to it, until Ctrl-C. With --json one object a line.

    When the thread went on from an earlier entry, a remark says from which.
    """
    world: CliContext = ctx.obj
    if math.isnan(seconds):
        raise UsageError("--for needs a number of seconds")
    found = thread_for(world, thread)
    before: Entry | None = None
    for entry in _stream(world, found, lines, seconds or None):
        if before is not None and entry.parent != before.id:
            world.out.remark(f"-- back to {short(entry.parent or 'the start')}")
        before = entry
        if not everything and is_bookkeeping(entry):
            continue
        if world.out.is_json:
            world.out.line(as_json({"schema_version": 1, "entry": entry}).decode())
        else:
            lead = f"{short(entry.id)} {role_of(entry):<9} "
            room = world.out.width if world.out.is_terminal else 2000
            world.out.line(world.out.styled(lead, "cyan") + gist(entry, max(16, room - len(lead))))
        _flush()


def _stream(world: CliContext, thread: Thread, lines: int, timeout: float | None) -> Iterator[Entry]:
    """What is there, then what comes; the watch starts first, so that nothing falls in between."""
    coming = world.journal.watch(thread.id, timeout=timeout)
    known = world.journal.path(thread.id, limit=lines) if lines else []
    seen = {entry.id for entry in known}
    yield from known
    yield from (entry for entry in coming if entry.id not in seen)


def _flush() -> None:
    import sys  # noqa: PLC0415

    sys.stdout.flush()
