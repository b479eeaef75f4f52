"""The command prune."""

from __future__ import annotations

import click

from sessiontree.cli.commands.rm import delete_threads
from sessiontree.cli.context import CliContext
from sessiontree.cli.declare import command, dry_run_option, yes_option
from sessiontree.cli.times import nanoseconds
from sessiontree.model import ThreadQuery

__all__ = ["prune"]


@command(
    "prune",
    examples=[
        "sessiontree prune --older-than 90d --dry-run",
        "sessiontree prune --older-than 2026-01-01 --yes",
        "sessiontree prune --older-than 1d --empty --yes",
    ],
)
@click.option(
    "--older-than",
    required=True,
    metavar="TIME",
    help="Only threads not changed since then: a date, or an age such as 90d.",
)
@click.option("everything", "--all", "-a", is_flag=True, help="Include threads that are not archived.")
@click.option("empty", "--empty", is_flag=True, help="Only threads without a message, archived or not.")
@yes_option
@dry_run_option
def prune(cli: CliContext, *, older_than: str, everything: bool, empty: bool, yes: bool, dry_run: bool) -> None:
    """Delete archived threads that have not changed for a while, permanently."""
    before = nanoseconds(cli, "--older-than", older_than)
    is_archived = None if everything or empty else True
    old = ThreadQuery(updated_before_ns=before, is_archived=is_archived, is_empty=empty or None, limit=1000)
    found = [thread for thread in cli.journal.iter_threads(old) if not thread.is_register]
    if not found:
        cli.out.info("nothing to prune")
        return
    delete_threads(cli, found, is_confirmed=yes, is_dry_run=dry_run, expect_match=old)
