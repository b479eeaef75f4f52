"""The command archive."""

from __future__ import annotations

import click

from sessiontree.cli.addresses import short, thread_or_pick
from sessiontree.cli.context import CliContext
from sessiontree.cli.declare import command, dry_run_option, thread_argument
from sessiontree.model.sanitize import one_line

__all__ = ["archive"]


@command("archive", examples=["sessiontree archive 3fa9c0de", "sessiontree archive 3fa9c0de --undo"])
@thread_argument
@click.option("--undo", is_flag=True, help="Bring the thread back.")
@dry_run_option
def archive(cli: CliContext, *, thread: str | None, undo: bool, dry_run: bool) -> None:
    """Archive a thread: lists omit it, search and addresses still find it. --undo brings it back."""
    found = thread_or_pick(cli, thread)
    name = f"{short(found.id)} ({one_line(found.title or 'no title', 60)})"
    if dry_run:
        cli.out.plan(f"would {'bring back' if undo else 'archive'} {name}")
        return
    changed = cli.journal.update_thread(found.id, is_archived=not undo)
    if cli.out.is_json:
        cli.out.json(thread=changed)
    else:
        cli.out.info(f"{name} is {'back' if undo else 'archived; --undo brings it back'}")
