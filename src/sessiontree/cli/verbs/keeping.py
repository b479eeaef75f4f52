"""lease, archive, rm, prune."""

from __future__ import annotations

import sys
from datetime import datetime
from typing import Annotated

import typer

from sessiontree.cli.addresses import short, thread_of
from sessiontree.cli.exits import UsageError
from sessiontree.cli.output import Column
from sessiontree.cli.picking import thread_for
from sessiontree.cli.times import ago, nanoseconds
from sessiontree.cli.verbs.writing import DryRun
from sessiontree.cli.world import World
from sessiontree.commands import Deleted
from sessiontree.errors import ActiveTurnError
from sessiontree.harmless import one_line
from sessiontree.model import Thread

__all__ = ["EXAMPLES", "archive", "lease", "prune", "rm"]

EXAMPLES = {
    "lease": """Examples:

\b
  sessiontree lease @
  sessiontree lease 3fa9c0de --acquire worker-1 --ttl 120
  sessiontree lease 3fa9c0de --release
  sessiontree lease 3fa9c0de --clear-expired""",
    "archive": """Examples:

\b
  sessiontree archive 3fa9c0de
  sessiontree archive 3fa9c0de --undo""",
    "rm": """Examples:

\b
  sessiontree rm 3fa9c0de --dry-run
  sessiontree rm 3fa9c0de 77b1e2aa --yes""",
    "prune": """Examples:

\b
  sessiontree prune --older-than 90d --dry-run
  sessiontree prune --older-than 2026-01-01 --yes""",
}

Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


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
    world: World = ctx.obj
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


def archive(
    ctx: typer.Context,
    thread: Annotated[str | None, typer.Argument(help="The thread.", metavar="THREAD")] = None,
    undo: Annotated[bool, typer.Option("--undo", help="Bring it back.")] = False,
    dry_run: DryRun = False,
) -> None:
    """Put a thread away: lists leave it out, search and addresses still find it. --undo brings it back."""
    world: World = ctx.obj
    found = thread_for(world, thread)
    if dry_run:
        world.out.plan(f"would {'bring back' if undo else 'archive'} {_named(found)}")
        return
    changed = world.journal.update_thread(found.id, is_archived=not undo)
    if world.out.is_json:
        world.out.json(thread=changed)
    else:
        world.out.remark(f"{_named(found)} is {'back' if undo else 'archived; --undo brings it back'}")


def rm(
    ctx: typer.Context,
    threads: Annotated[list[str], typer.Argument(help="The threads.", metavar="THREAD...")],
    yes: Yes = False,
    dry_run: DryRun = False,
) -> None:
    """Delete threads for good: this cannot be undone. Entries that a fork still shows stay with the fork.

    To put a thread away and be able to bring it back, use `archive`.
    """
    world: World = ctx.obj
    found = {thread.id: thread for thread in (thread_of(world.journal, address) for address in threads)}
    _delete(world, list(found.values()), is_sure=yes, is_dry=dry_run)


def prune(
    ctx: typer.Context,
    older_than: Annotated[str, typer.Option(help="Not changed since: a date, or an age such as 90d.")],
    everything: Annotated[bool, typer.Option("--all", "-a", help="Threads that are not archived as well.")] = False,
    yes: Yes = False,
    dry_run: DryRun = False,
) -> None:
    """Delete archived threads that nobody changed for a while, for good."""
    world: World = ctx.obj
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


def _delete(world: World, threads: list[Thread], *, is_sure: bool, is_dry: bool) -> None:
    _name_what_goes(world, threads)
    if is_dry:
        if world.out.is_json:
            world.out.json(is_dry_run=True, threads=threads)
        return
    if not is_sure:
        _ask(world, f"delete {len(threads)} thread{'s' * (len(threads) != 1)} for good?")
    reports: list[Deleted] = []
    with world.progress("deleting") as progress:
        for number, thread in enumerate(threads, start=1):
            reports.append(world.journal.delete_thread(thread.id))
            progress(number, len(threads))
    if world.out.is_json:
        world.out.json(deleted=reports)
        return
    removed = sum(report.entries_removed for report in reports)
    kept = sum(report.entries_kept for report in reports)
    world.out.remark(
        f"deleted {len(reports)} threads, {removed} entries" + (f"; {kept} stay with forks" if kept else "")
    )


def _name_what_goes(world: World, threads: list[Thread]) -> None:
    if world.out.is_json or world.is_quiet:
        return
    now = datetime.now().astimezone()
    columns = (
        Column(name="id", style="yellow"),
        Column(name="changed"),
        Column(name="entries", is_number=True),
        Column(name="title", weight=1),
    )
    rows = [
        [short(t.id) if world.out.is_terminal else t.id, ago(t.updated_at, now), str(t.entries), t.title]
        for t in threads
    ]
    world.out.table(columns, rows)


def _ask(world: World, question: str) -> None:
    if not world.can_ask:
        raise UsageError(f"{question} Nobody is there to answer; say --yes to do it, --dry-run to look")
    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
        raise UsageError("nothing was deleted")


def _named(thread: Thread) -> str:
    return f"{short(thread.id)} ({one_line(thread.title or 'no title', 60)})"
