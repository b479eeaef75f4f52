"""lease, archive, rm, prune."""

from __future__ import annotations

import sys
from datetime import datetime
from typing import Annotated

import typer

from sessiontree.cli.addresses import short, thread_of
from sessiontree.cli.commands.append import DryRun
from sessiontree.cli.context import CliContext
from sessiontree.cli.exit_codes import UsageError
from sessiontree.cli.output import Column
from sessiontree.cli.render.text import ago
from sessiontree.model import Thread
from sessiontree.model.sanitize import one_line
from sessiontree.stores.commands import Deleted

__all__ = ["EXAMPLES", "rm"]


EXAMPLES = {
    "rm": """Examples:

\b
  sessiontree rm 3fa9c0de --dry-run
  sessiontree rm 3fa9c0de 77b1e2aa --yes""",
}

Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


def rm(
    ctx: typer.Context,
    threads: Annotated[list[str], typer.Argument(help="The threads.", metavar="THREAD...")],
    yes: Yes = False,
    dry_run: DryRun = False,
) -> None:
    """Delete threads for good: this cannot be undone. Entries that a fork still shows stay with the fork.

    To put a thread away and be able to bring it back, use `archive`.
    """
    world: CliContext = ctx.obj
    found = {thread.id: thread for thread in (thread_of(world.journal, address) for address in threads)}
    _delete(world, list(found.values()), is_sure=yes, is_dry=dry_run)


def _delete(world: CliContext, threads: list[Thread], *, is_sure: bool, is_dry: bool) -> None:
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


def _name_what_goes(world: CliContext, threads: list[Thread]) -> None:
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


def _ask(world: CliContext, question: str) -> None:
    if not world.can_ask:
        raise UsageError(f"{question} Nobody is there to answer; say --yes to do it, --dry-run to look")
    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
        raise UsageError("nothing was deleted")


def _named(thread: Thread) -> str:
    return f"{short(thread.id)} ({one_line(thread.title or 'no title', 60)})"
