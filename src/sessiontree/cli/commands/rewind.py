"""rewind, undo, redo."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, cast

import typer

from sessiontree.cli.addresses import place_of, short, thread_for
from sessiontree.cli.commands.append import DryRun
from sessiontree.cli.context import CliContext
from sessiontree.cli.exit_codes import UsageError
from sessiontree.cli.render.text import gist, role_of
from sessiontree.model import NextMove, Thread
from sessiontree.workspace.ignore import Conflicts

__all__ = ["EXAMPLES", "redo", "rewind", "undo"]


EXAMPLES = {
    "rewind": """Examples:

\b
  sessiontree rewind @~2            two entries back
  sessiontree rewind 3fa9c0de:good
  sessiontree rewind 3fa9c0de:good --files . --dry-run
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
    files: Annotated[
        Path | None, typer.Option(help="A folder that goes back to the entry's checkpoint too; both move, or neither.")
    ] = None,
    conflicts: Annotated[str, typer.Option(help="With --files: stop, force or keep_mine.")] = "stop",
    dry_run: DryRun = False,
) -> None:
    """Go back to an entry: the next message hangs from it. Nothing is deleted, and `undo` comes back."""
    world: CliContext = ctx.obj
    place = place_of(world.journal, address)
    if conflicts not in {"stop", "force", "keep_mine"}:
        raise UsageError(f"--conflicts {conflicts} is none of stop, force and keep_mine")
    if files is not None and place.entry_id is not None:
        _rewind_files(world, place.thread, place.entry_id, files, cast(Conflicts, conflicts), is_dry=dry_run)
        return
    if dry_run:
        world.out.plan(f"would move the leaf of {short(place.thread.id)} to {short(place.entry_id or 'the start')}")
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
    world: CliContext = ctx.obj
    before = thread_for(world, thread)
    if dry_run:
        _plan(world, before, world.journal.undo(before.id, dry_run=True))
        return
    _tell(world, world.journal.undo(before.id), before)


def redo(
    ctx: typer.Context,
    thread: Annotated[str | None, typer.Argument(help="The thread.", metavar="THREAD")] = None,
    dry_run: DryRun = False,
) -> None:
    """Take the last undo back."""
    world: CliContext = ctx.obj
    before = thread_for(world, thread)
    if dry_run:
        _plan(world, before, world.journal.redo(before.id, dry_run=True))
        return
    _tell(world, world.journal.redo(before.id), before)


def _rewind_files(
    world: CliContext, thread: Thread, entry_id: str, folder: Path, conflicts: Conflicts, *, is_dry: bool
) -> None:
    plan = world.journal.workspace.plan(thread.id, entry_id, folder, conflicts=conflicts)
    if world.out.is_json and is_dry:
        world.out.json(plan=plan)
        return
    for step in plan.steps:
        world.out.remark(f"{step.kind} {step.path}")
    if not is_dry:
        _tell(world, world.journal.rewind(thread.id, entry_id, files=folder, conflicts=conflicts), thread)


def _plan(world: CliContext, thread: Thread, found: NextMove) -> None:
    """Where an undo or a redo would go, and which folder would go with it."""
    text = f"would take the {found.move.reason} of {short(thread.id)} back: "
    if found.move.from_entry is None:
        world.out.plan(f"{text}its leaf would be before the first entry")
        return
    entry = world.journal.entry(thread.id, found.move.from_entry)
    files = f", and the files of {found.checkpoint.root} would go with it" if found.checkpoint else ""
    world.out.plan(f"{text}its leaf would be {short(entry.id)} ({role_of(entry)}: {gist(entry, 50)}){files}")


def _tell(world: CliContext, after: Thread, before: Thread) -> None:
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
