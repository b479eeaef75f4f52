"""The command prune."""

from __future__ import annotations

import click

from sessiontree.cli.commands.rm import confirm_deletion, list_to_delete
from sessiontree.cli.context import CliContext
from sessiontree.cli.declare import command, dry_run_option, yes_option
from sessiontree.cli.exit_codes import UsageError
from sessiontree.cli.sizes import size_in_bytes
from sessiontree.cli.times import nanoseconds
from sessiontree.model.retention import Expired, Retention, RetentionReport
from sessiontree.render.figures import plural, size

__all__ = ["prune"]


@command(
    "prune",
    examples=[
        "sessiontree prune --older-than 90d --dry-run",
        "sessiontree prune --older-than 2026-01-01 --yes",
        "sessiontree prune --older-than 1d --empty --yes",
        "sessiontree prune --max-size 2GB --all --yes",
        "sessiontree prune --keep 100 --tag nightly --all --yes",
    ],
)
@click.option("--older-than", metavar="TIME", help="Threads not changed since then: a date, or an age such as 90d.")
@click.option("--keep", type=click.IntRange(min=0), metavar="N", help="Keep the N that changed last of these threads.")
@click.option(
    "--max-size", metavar="SIZE", help="Delete the oldest of these until the store takes no more: 500MB, 2GB."
)
@click.option("tags", "--tag", multiple=True, metavar="TAG", help="Only threads with this tag; repeat it for several.")
@click.option("--workspace", metavar="FOLDER", help="Only threads of this workspace.")
@click.option("everything", "--all", "-a", is_flag=True, help="Include threads that are not archived.")
@click.option("empty", "--empty", is_flag=True, help="Only threads without a message, archived or not.")
@click.option("labelled", "--labelled", is_flag=True, help="Include threads with labels.")
@yes_option
@dry_run_option
def prune(
    cli: CliContext,
    *,
    older_than: str | None,
    keep: int | None,
    max_size: str | None,
    tags: tuple[str, ...],
    workspace: str | None,
    everything: bool,
    empty: bool,
    labelled: bool,
    yes: bool,
    dry_run: bool,
) -> None:
    """Delete archived threads by age, number or size, permanently, and give the room back to the disk.

    At least one of --older-than, --keep and --max-size says what may go; the other options narrow it down. Threads with
    labels, or with a turn that is running, stay. A dry run shows how many bytes the entries of each thread take.
    """
    if older_than is None and keep is None and max_size is None:
        raise UsageError("Say what may go: --older-than, --keep or --max-size.")
    retention = Retention(
        updated_before_ns=None if older_than is None else nanoseconds(cli, "--older-than", older_than),
        tags=tags,
        workspace=workspace,
        is_archived=None if everything or empty else True,
        is_empty=empty or None,
        keep_newest=keep or 0,
        max_bytes=None if max_size is None else size_in_bytes("--max-size", max_size),
        includes_labelled=labelled,
    )
    expired = cli.journal.find_expired(retention)
    if not expired:
        _report_nothing(cli)
        return
    if not cli.out.is_json and not cli.is_quiet:
        list_to_delete(cli, [one.thread for one in expired], sizes={one.thread.id: one.bytes for one in expired})
        cli.out.info(_sum(expired))
    if dry_run:
        if cli.out.is_json:
            cli.out.json(is_dry_run=True, expired=expired, bytes=sum(one.bytes for one in expired))
        return
    if not yes:
        confirm_deletion(cli, [one.thread for one in expired])
    with cli.progress("deleting") as progress:
        report = cli.journal.delete_expired(retention, expired, progress=progress)
    _report(cli, report)


def _sum(expired: tuple[Expired, ...]) -> str:
    return f"{plural(len(expired), 'thread')}, {size(sum(one.bytes for one in expired))} in entries"


def _report_nothing(cli: CliContext) -> None:
    if cli.out.is_json:
        cli.out.json(report=RetentionReport())
    else:
        cli.out.info("nothing to prune")


def _report(cli: CliContext, report: RetentionReport) -> None:
    if cli.out.is_json:
        cli.out.json(report=report)
        return
    cli.out.done(f"deleted {_sum(report.expired)}; the files are {size(max(0, report.freed_bytes))} smaller")
    if report.changed:
        cli.out.info(
            f"kept {plural(len(report.changed), 'thread')} that changed meanwhile: {', '.join(report.changed)}"
        )
