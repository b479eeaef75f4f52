"""lease, archive, rm, prune."""

from __future__ import annotations

from typing import Annotated

import typer

from sessiontree.cli.commands.append import DryRun
from sessiontree.cli.commands.rm import Yes, _delete
from sessiontree.cli.context import CliContext
from sessiontree.cli.render.text import nanoseconds
from sessiontree.model import Thread

__all__ = ["EXAMPLES", "prune"]


EXAMPLES = {
    "prune": """Examples:

\b
  sessiontree prune --older-than 90d --dry-run
  sessiontree prune --older-than 2026-01-01 --yes""",
}


def prune(
    ctx: typer.Context,
    older_than: Annotated[str, typer.Option(help="Not changed since: a date, or an age such as 90d.")],
    everything: Annotated[bool, typer.Option("--all", "-a", help="Threads that are not archived as well.")] = False,
    yes: Yes = False,
    dry_run: DryRun = False,
) -> None:
    """Delete archived threads that nobody changed for a while, for good."""
    world: CliContext = ctx.obj
    before = nanoseconds("--older-than", older_than)
    found: list[Thread] = []
    cursor: str | None = None
    while True:
        page = world.journal.list_threads(
            is_archived=None if everything else True, updated_before_ns=before, limit=500, cursor=cursor
        )
        found += page.threads
        cursor = page.cursor
        if cursor is None:
            break
    if not found:
        world.out.remark("nothing to prune")
        return
    _delete(world, found, is_sure=yes, is_dry=dry_run)
