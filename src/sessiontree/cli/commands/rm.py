"""The command rm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sessiontree.cli.addresses import resolve_thread, thread_or_pick
from sessiontree.cli.context import CliContext
from sessiontree.cli.declare import argument, command, dry_run_option, yes_option
from sessiontree.cli.exit_codes import UsageError
from sessiontree.cli.screen.lines import ATTENTION, ID, Line, paragraph
from sessiontree.cli.screen.threads import list_lines
from sessiontree.cli.summaries import summaries
from sessiontree.model import Thread
from sessiontree.render.figures import plural
from sessiontree.render.threads import ThreadSummary
from sessiontree.render.times import iso

__all__ = ["confirm_deletion", "list_to_delete", "rm"]


@command("rm", examples=["sessiontree rm 3a19 --dry-run", "sessiontree rm 3a19 77b1 --yes"])
@argument("thread", "The threads.", nargs=-1)
@yes_option
@dry_run_option
def rm(cli: CliContext, *, thread: tuple[str, ...], yes: bool, dry_run: bool) -> None:
    """Delete threads permanently. Entries that a fork shares stay with the fork.

    To put a thread aside so that it can be brought back, use `archive`.
    """
    chosen = [resolve_thread(cli, address) for address in thread] or [thread_or_pick(cli, None, "rm")]
    found = {one.id: one for one in chosen}
    _delete(cli, list(found.values()), is_confirmed=yes, is_dry_run=dry_run)


def _delete(cli: CliContext, threads: list[Thread], *, is_confirmed: bool, is_dry_run: bool) -> None:
    if not cli.out.is_json and not cli.is_quiet:
        list_to_delete(cli, threads)
    if is_dry_run:
        if cli.out.is_json:
            cli.out.json(is_dry_run=True, threads=threads)
        else:
            cli.out.info("nothing was deleted: this is a dry run")
        return
    if not is_confirmed:
        confirm_deletion(cli, threads)
    reports = []
    with cli.progress("deleting") as progress:
        for number, thread in enumerate(threads, start=1):
            reports.append(cli.journal.delete_thread(thread.id))
            progress(number, len(threads))
    if cli.out.is_json:
        cli.out.json(deleted=reports)
        return
    removed = sum(report.entries_removed for report in reports)
    kept = sum(report.entries_kept for report in reports)
    words = f"deleted {plural(len(reports), 'thread')}, {plural(removed, 'entry', 'entries')}"
    cli.out.done(words + (f"; {kept} stay with forks" if kept else ""))


def list_to_delete(cli: CliContext, threads: Sequence[Thread], sizes: Mapping[str, int] | None = None) -> None:
    """List the threads; in a pipe with the bytes of their entries, if they are known."""
    if not cli.out.is_terminal:
        for thread in threads:
            known = () if sizes is None else (sizes[thread.id],)
            cli.out.row((thread.id, iso(thread.updated_at), thread.entries, *known, thread.title))
        return
    rows = summaries(cli, threads)
    if len(rows) > 1:
        cli.out.draw(list_lines(rows, cli.threads, cli.now, cli.out.width))
    else:
        cli.out.draw(_one(cli, rows[0]))


def _one(cli: CliContext, row: ThreadSummary) -> list[Line]:
    head = Line(("! ", ATTENTION), (cli.threads[row.thread.id], ID), "  ", row.title).cut(cli.out.width)
    facts = [plural(row.entries, "entry", "entries")]
    if row.branches is not None and row.branches > 1:
        facts.append(f"{row.branches} branches")
    words = f"{', '.join(facts)} go for good; there is no undo for this."
    return [head, *paragraph(words, cli.out.width, lead="  ")]


def confirm_deletion(cli: CliContext, threads: Sequence[Thread]) -> None:
    """Ask whether the threads shall be deleted; raise UsageError if not."""
    what = "it" if len(threads) == 1 else f"{len(threads)} threads"
    if not cli.can_ask:
        raise UsageError(
            f"Delete {plural(len(threads), 'thread')} permanently? This is not a terminal: "
            "confirm with --yes, or use --dry-run to see the effect."
        )
    if not cli.confirms(f"Delete {what}?", default=False):
        name = cli.typed(threads[0].id)
        cli.declined("Nothing was deleted.", ("put it away instead:", f"sessiontree archive {name}"))
