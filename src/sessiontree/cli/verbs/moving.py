"""rewind, undo, redo."""

from __future__ import annotations

from typing import Annotated

import typer

from sessiontree.cli.addresses import place_of, short
from sessiontree.cli.picking import thread_for
from sessiontree.cli.render.gist import gist, role_of
from sessiontree.cli.verbs.writing import DryRun
from sessiontree.cli.world import World
from sessiontree.model import Thread

__all__ = ["EXAMPLES", "redo", "rewind", "undo"]

EXAMPLES = {
    "rewind": """Examples:

\b
  sessiontree rewind @~2            two entries back
  sessiontree rewind 3fa9c0de:good
  sessiontree undo @                come back""",
    "undo": """Examples:

\b
  sessiontree undo @
  sessiontree undo 3fa9c0de --dry-run""",
    "redo": """Examples:

\b
  sessiontree redo @""",
}


def rewind(
    ctx: typer.Context,
    address: Annotated[str, typer.Argument(help="The entry that becomes the leaf.")],
    dry_run: DryRun = False,
) -> None:
    """Go back to an entry: the next message hangs from it. Nothing is deleted, and `undo` comes back."""
    world: World = ctx.obj
    place = place_of(world.journal, address)
    if dry_run:
        world.out.remark(f"would move the leaf of {short(place.thread.id)} to {short(place.entry_id or 'the start')}")
        return
    if place.entry_id is None:
        moved = world.journal.reset(place.thread.id)
    else:
        moved = world.journal.rewind(place.thread.id, place.entry_id)
    _tell(world, moved, place.thread)


def undo(
    ctx: typer.Context,
    thread: Annotated[str | None, typer.Argument(help="The thread.", metavar="THREAD")] = None,
    dry_run: DryRun = False,
) -> None:
    """Take the last move of the leaf back: a rewind, a reset, a retry. Appended entries are never undone."""
    world: World = ctx.obj
    before = thread_for(world, thread)
    if dry_run:
        world.out.remark(f"would take the last move of {short(before.id)} back")
        return
    _tell(world, world.journal.undo(before.id), before)


def redo(
    ctx: typer.Context,
    thread: Annotated[str | None, typer.Argument(help="The thread.", metavar="THREAD")] = None,
    dry_run: DryRun = False,
) -> None:
    """Take the last undo back."""
    world: World = ctx.obj
    before = thread_for(world, thread)
    if dry_run:
        world.out.remark(f"would take the last undo of {short(before.id)} back")
        return
    _tell(world, world.journal.redo(before.id), before)


def _tell(world: World, after: Thread, before: Thread) -> None:
    if world.out.is_json:
        world.out.json(thread=after)
        return
    if after.leaf is None:
        world.out.remark(f"{short(after.id)} is at its beginning")
        return
    entry = world.journal.entry(after.id, after.leaf)
    world.out.remark(f"{short(after.id)} is at {short(entry.id)} ({role_of(entry)}: {gist(entry, 50)})")
    if before.leaf:
        world.out.remark(f"the old place is still there: {short(after.id)}:{short(before.leaf)}, or undo")
