"""The command archive."""

from __future__ import annotations

import click

from sessiontree.cli.addresses import thread_or_pick
from sessiontree.cli.context import CliContext
from sessiontree.cli.declare import command, dry_run_option, thread_argument
from sessiontree.cli.summaries import title

__all__ = ["archive"]


@command("archive", examples=["sessiontree archive 3a19", "sessiontree archive 3a19 --undo"])
@thread_argument
@click.option("--undo", is_flag=True, help="Bring the thread back.")
@dry_run_option
def archive(cli: CliContext, *, thread: str | None, undo: bool, dry_run: bool) -> None:
    """Archive a thread: lists omit it, search and addresses still find it. --undo brings it back."""
    found = thread_or_pick(cli, thread, "archive")
    name = f"{cli.threads[found.id]} ({title(cli, found)})"
    if dry_run:
        cli.out.plan(f"would {'bring back' if undo else 'archive'} {name}")
        return
    changed = cli.journal.update_thread(found.id, is_archived=not undo)
    if cli.out.is_json:
        cli.out.json(thread=changed)
    else:
        cli.out.done(f"{name} is {'back' if undo else 'archived'}")
        if not undo:
            cli.out.hint(("  back again:", f"sessiontree archive --undo {cli.typed(found.id)}"))
