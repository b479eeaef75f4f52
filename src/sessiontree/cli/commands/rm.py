"""The command rm."""

from __future__ import annotations

import sys
from datetime import datetime

from sessiontree.cli.addresses import resolve_thread, short
from sessiontree.cli.context import CliContext
from sessiontree.cli.declare import argument, command, dry_run_option, yes_option
from sessiontree.cli.exit_codes import UsageError
from sessiontree.cli.output import Column
from sessiontree.cli.render.text import ago
from sessiontree.errors import ThreadChangedError
from sessiontree.model import Thread, ThreadQuery

__all__ = ["delete_threads", "rm"]


_COLUMNS = (
    Column(name="id", style="yellow"),
    Column(name="changed"),
    Column(name="entries", is_number=True),
    Column(name="title", weight=1),
)


@command("rm", examples=["sessiontree rm 3fa9c0de --dry-run", "sessiontree rm 3fa9c0de 77b1e2aa --yes"])
@argument("thread", "The threads.", nargs=-1, required=True)
@yes_option
@dry_run_option
def rm(cli: CliContext, *, thread: tuple[str, ...], yes: bool, dry_run: bool) -> None:
    """Delete threads permanently. Entries that a fork shares stay with the fork.

    To put a thread aside so that it can be brought back, use `archive`.
    """
    found = {thread.id: thread for thread in (resolve_thread(cli.journal, address) for address in thread)}
    delete_threads(cli, list(found.values()), is_confirmed=yes, is_dry_run=dry_run)


def delete_threads(
    cli: CliContext,
    threads: list[Thread],
    *,
    is_confirmed: bool,
    is_dry_run: bool,
    expect_match: ThreadQuery | None = None,
) -> None:
    """List the threads, ask for confirmation if it was not given, and delete those that still match."""
    if not cli.out.is_json and not cli.is_quiet:
        _list(cli, threads)
    if is_dry_run:
        if cli.out.is_json:
            cli.out.json(is_dry_run=True, threads=threads)
        return
    if not is_confirmed:
        _confirm(cli, f"delete {len(threads)} thread{'s' * (len(threads) != 1)} permanently?")
    reports = []
    changed: list[str] = []
    with cli.progress("deleting") as progress:
        for number, thread in enumerate(threads, start=1):
            try:
                reports.append(cli.journal.delete_thread(thread.id, expect_match=expect_match))
            except ThreadChangedError:
                changed.append(thread.id)
            progress(number, len(threads))
    if cli.out.is_json:
        cli.out.json(deleted=reports, changed=changed)
        return
    removed = sum(report.entries_removed for report in reports)
    kept = sum(report.entries_kept for report in reports)
    cli.out.info(f"deleted {len(reports)} threads, {removed} entries" + (f"; {kept} stay with forks" if kept else ""))
    if changed:
        cli.out.info(f"kept {len(changed)} threads that changed meanwhile: {', '.join(changed)}")


def _list(cli: CliContext, threads: list[Thread]) -> None:
    now = datetime.now().astimezone()
    rows = [
        [short(t.id) if cli.out.is_terminal else t.id, ago(t.updated_at, now), str(t.entries), t.title] for t in threads
    ]
    cli.out.table(_COLUMNS, rows)


def _confirm(cli: CliContext, question: str) -> None:
    if not cli.can_ask:
        raise UsageError(f"{question} This is not a terminal: confirm with --yes, or use --dry-run to see the effect")
    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
        raise UsageError("nothing was deleted")
