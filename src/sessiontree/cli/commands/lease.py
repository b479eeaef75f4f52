"""The command lease."""

from __future__ import annotations

import click

from sessiontree.cli.addresses import thread_or_pick
from sessiontree.cli.context import CliContext
from sessiontree.cli.declare import command, dry_run_option, thread_argument
from sessiontree.cli.exit_codes import UsageError
from sessiontree.errors import ActiveTurnError

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
    else:
        cli.out.row((active.owner, active.turn_id, active.token, active.expires_at.isoformat()))
