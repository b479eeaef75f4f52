"""lease, archive, rm, prune."""

from __future__ import annotations

from typing import Annotated

import typer

from sessiontree.cli.addresses import thread_for
from sessiontree.cli.commands.append import DryRun
from sessiontree.cli.commands.rm import _named
from sessiontree.cli.context import CliContext

__all__ = ["EXAMPLES", "archive"]


EXAMPLES = {
    "archive": """Examples:

\b
  sessiontree archive 3fa9c0de
  sessiontree archive 3fa9c0de --undo""",
}


def archive(
    ctx: typer.Context,
    thread: Annotated[str | None, typer.Argument(help="The thread.", metavar="THREAD")] = None,
    undo: Annotated[bool, typer.Option("--undo", help="Bring it back.")] = False,
    dry_run: DryRun = False,
) -> None:
    """Put a thread away: lists leave it out, search and addresses still find it. --undo brings it back."""
    world: CliContext = ctx.obj
    found = thread_for(world, thread)
    if dry_run:
        world.out.plan(f"would {'bring back' if undo else 'archive'} {_named(found)}")
        return
    changed = world.journal.update_thread(found.id, is_archived=not undo)
    if world.out.is_json:
        world.out.json(thread=changed)
    else:
        world.out.remark(f"{_named(found)} is {'back' if undo else 'archived; --undo brings it back'}")
