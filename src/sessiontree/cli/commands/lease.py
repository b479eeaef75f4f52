"""lease, archive, rm, prune."""

from __future__ import annotations

from typing import Annotated

import typer

from sessiontree.cli.addresses import short, thread_for
from sessiontree.cli.commands.append import DryRun
from sessiontree.cli.context import CliContext
from sessiontree.cli.exit_codes import UsageError
from sessiontree.errors import ActiveTurnError
from sessiontree.model.sanitize import one_line

__all__ = ["EXAMPLES", "lease"]


EXAMPLES = {
    "lease": """Examples:

\b
  sessiontree lease @
  sessiontree lease 3fa9c0de --acquire worker-1 --ttl 120
  sessiontree lease 3fa9c0de --release
  sessiontree lease 3fa9c0de --clear-expired""",
}


def lease(
    ctx: typer.Context,
    thread: Annotated[str | None, typer.Argument(help="The thread.", metavar="THREAD")] = None,
    acquire: Annotated[str | None, typer.Option(help="Take the lease for this owner.", metavar="OWNER")] = None,
    ttl: Annotated[float, typer.Option(help="How many seconds it lasts.")] = 60.0,
    release: Annotated[bool, typer.Option("--release", help="Give the lease in force back, whoever holds it.")] = False,
    clear_expired: Annotated[bool, typer.Option("--clear-expired", help="Take an expired lease away.")] = False,
    dry_run: DryRun = False,
) -> None:
    """Show who may run a turn on a thread, take that right, or give it back. Exit code 4 while another one holds it."""
    world: CliContext = ctx.obj
    if acquire == "":
        raise UsageError("--acquire is empty; name the owner that takes the lease")
    found = thread_for(world, thread)
    held = world.journal.active_lease(found.id)
    if dry_run:
        if acquire is not None and held is not None:
            raise ActiveTurnError(found.id, held.owner, held.turn_id, held.expires_ns)
        world.out.plan(f"would change the lease of {short(found.id)}; now: {held.owner if held else 'nobody'}")
        return
    if acquire is not None:
        held = world.journal.acquire_lease(found.id, owner=acquire, ttl_seconds=ttl)
    elif release and held is not None:
        world.journal.release_lease(held)
        held = None
    elif clear_expired:
        world.journal.clear_expired_lease(found.id)
    if world.out.is_json:
        world.out.json(lease=held)
    elif held is None:
        world.out.remark(f"nobody holds the lease of {short(found.id)}")
    else:
        world.out.line(
            f"{one_line(held.owner, 200)}\t{one_line(held.turn_id, 200)}\t{held.token}\t{held.expires_at.isoformat()}"
        )
