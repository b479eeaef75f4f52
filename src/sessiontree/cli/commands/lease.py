"""The command lease."""

from __future__ import annotations

import click

from sessiontree.cli.addresses import thread_or_pick
from sessiontree.cli.context import CliContext
from sessiontree.cli.declare import command, dry_run_option, thread_argument
from sessiontree.cli.exit_codes import UsageError
from sessiontree.cli.screen.lines import DIM, GOOD, Line, paragraph
from sessiontree.errors import ActiveTurnError
from sessiontree.model import Lease, Thread
from sessiontree.model.sanitize import one_line
from sessiontree.render.times import clock, short_day

__all__ = ["lease"]


@command(
    "lease",
    examples=[
        "sessiontree lease @",
        "sessiontree lease 3a19 --acquire worker-1 --ttl 120",
        "sessiontree lease 3a19 --release",
        "sessiontree lease 3a19 --clear-expired",
    ],
)
@thread_argument
@click.option("--acquire", metavar="OWNER", help="Acquire the lease for this owner.")
@click.option("--ttl", type=float, default=60.0, show_default=True, metavar="SECONDS", help="How long the lease lasts.")
@click.option("--release", is_flag=True, help="Release the active lease, regardless of its owner.")
@click.option("--clear-expired", is_flag=True, help="Remove an expired lease.")
@dry_run_option
def lease(
    cli: CliContext,
    *,
    thread: str | None,
    acquire: str | None,
    ttl: float,
    release: bool,
    clear_expired: bool,
    dry_run: bool,
) -> None:
    """Show, acquire or release the lease of a thread: the right to run a turn on it.

    Exits with code 4 while another owner has the lease.
    """
    if acquire == "":
        raise UsageError("--acquire is empty; name the owner of the lease.")
    found = thread_or_pick(cli, thread, "lease")
    active = cli.journal.active_lease(found.id)
    if dry_run:
        if acquire is not None and active is not None:
            raise ActiveTurnError(found.id, active.owner, active.turn_id, active.expires_ns)
        owner = active.owner if active else "none"
        cli.out.plan(f"would change the lease of {cli.threads[found.id]}; current owner: {owner}")
        return
    if acquire is not None:
        active = cli.journal.acquire_lease(found.id, owner=acquire, ttl_seconds=ttl)
    elif release and active is not None:
        cli.journal.release_lease(active)
        active = None
    elif clear_expired:
        cli.journal.clear_expired_lease(found.id)
    if cli.out.is_json:
        cli.out.json(lease=active)
    elif active is None:
        cli.out.info(f"thread {cli.threads[found.id]} has no active lease")
    elif cli.out.is_terminal:
        _draw(cli, found, active)
    else:
        cli.out.row((active.owner, active.turn_id, active.token, active.expires_at.isoformat()))


def _draw(cli: CliContext, thread: Thread, active: Lease) -> None:
    width = cli.out.width
    words = f"{one_line(active.owner, 200)} runs a turn in {cli.threads[thread.id]}"
    day = short_day(active.expires_at.astimezone(cli.now.tzinfo).date())
    facts = f"until {day}, {clock(active.expires_at, cli.now)} · turn {active.turn_id} · token {active.token}"
    cli.out.draw([Line(("▶ ", GOOD), words).cut(width), *paragraph(facts, width, DIM, lead="  ")])
