"""The commands backup and restore."""

from __future__ import annotations

from datetime import UTC
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sessiontree.cli.context import CliContext
from sessiontree.cli.declare import FilePath, StoreAddress, argument, command, dry_run_option
from sessiontree.cli.exit_codes import DAMAGED
from sessiontree.cli.screen.lines import DIM, ID, Line
from sessiontree.model import moment
from sessiontree.render.figures import plural, size, threads_and_records
from sessiontree.render.times import iso, when

if TYPE_CHECKING:
    from sessiontree.journal.backups import Backup

__all__ = ["backup", "restore"]


@command(
    "backup",
    examples=[
        "sessiontree backup /mnt/backups/journal",
        "sessiontree backup /mnt/backups/journal --keep 30 --quiet",
        "sessiontree backup /mnt/backups/journal --list",
        "sessiontree backup /mnt/backups/journal --verify",
    ],
)
@argument("folder", "The folder of the backups; it is created if needed.", type=FilePath())
@click.option("--keep", type=click.IntRange(min=1), metavar="N", help="Remove all but the last N backups afterwards.")
@click.option("is_listed", "--list", is_flag=True, help="List the backups in the folder, and make none.")
@click.option("is_verified", "--verify", is_flag=True, help="Check all backups in the folder, and make none.")
def backup(cli: CliContext, *, folder: Path, keep: int | None, is_listed: bool, is_verified: bool) -> None:
    """Back up the store into a folder, while it is being used.

    The folder holds any number of backups of one store; each copies only what the earlier ones do not have, and checks what it
    uses of them. An interrupted backup is completed by the next one. --verify reads every byte of all backups and exits
    with code 3 if one is not what was written.
    """
    if is_verified:
        _verify(cli, folder)
    elif is_listed:
        _list(cli, folder)
    else:
        journal = cli.open_existing()
        with cli.progress("backing up", size) as progress:
            report = journal.backup(folder, keep=keep, progress=progress)
        if cli.out.is_json:
            cli.out.json(report=report)
            return
        removed = f"; removed {plural(len(report.removed), 'older backup')}" if report.removed else ""
        cli.out.done(f"{report.id}: {size(report.bytes)}, of which {size(report.copied_bytes)} were copied{removed}")


def _list(cli: CliContext, folder: Path) -> None:
    from sessiontree.journal.backups import list_backups  # noqa: PLC0415  slow to load

    found = list_backups(folder)
    if cli.out.is_json:
        cli.out.json(backups=found)
        return
    for one in found:
        if cli.out.is_terminal:
            cli.out.draw(_drawn(cli, one))
        else:
            cli.out.row(_row(one))
    if not found:
        cli.out.info("no backups")


def _drawn(cli: CliContext, one: Backup) -> list[Line]:
    """A backup in one line; on a narrow screen its facts stand below its id, which is not cut."""
    facts = f"  {when(moment(one.created_ns), cli.now)} · {size(one.bytes)} · {one.kind}"
    line = Line((one.id, ID)).add(facts, DIM)
    return [line] if line.width <= cli.out.width else [Line((one.id, ID)).cut(cli.out.width), Line((facts, DIM))]


def _row(one: Backup) -> tuple[str, ...]:
    return one.id, iso(moment(one.created_ns).astimezone(UTC)), one.kind, size(one.bytes), one.place


def _verify(cli: CliContext, folder: Path) -> None:
    from sessiontree.journal.backups import backup_ids, verify_backup  # noqa: PLC0415  slow to load

    problems: dict[str, list[str]] = {}
    found = backup_ids(folder)
    for backup_id in found:
        with cli.progress(f"verifying {backup_id}") as progress:
            problems[backup_id] = verify_backup(folder, backup_id, progress=progress)
    if cli.out.is_json:
        cli.out.json(problems=problems)
    else:
        for backup_id, found_problems in problems.items():
            for problem in found_problems:
                cli.out.row((backup_id, problem))
    if any(problems.values()):
        raise click.exceptions.Exit(DAMAGED)
    cli.out.done(f"{plural(len(found), 'backup')}: every hash fits")


@command(
    "restore",
    examples=[
        "sessiontree restore /mnt/backups/journal journal.db",
        "sessiontree restore /mnt/backups/journal old.db --backup 20261118T021500.000000Z-3b6ac2d1f00e4c11",
        "sessiontree restore /mnt/backups/journal postgresql://host/database",
    ],
)
@argument("folder", "The folder of the backups.", type=FilePath())
@argument("target", "The store to make: a path or a URL where there is none.", type=StoreAddress())
@click.option("backup_id", "--backup", metavar="ID", help="The backup to restore; the last one if not given.")
@dry_run_option
def restore(cli: CliContext, *, folder: Path, target: str, backup_id: str | None, dry_run: bool) -> None:
    """Make a store of a backup again, of the same or another kind.

    Every byte is checked against the hashes of the backup, then the store is checked as by `doctor`. Nothing is overwritten:
    a target that exists is refused. Exits with code 3 if the store was damaged when it was backed up.
    """
    from sessiontree.journal.backups import find_backup  # noqa: PLC0415  slow to load
    from sessiontree.transfer.restore import restore_backup  # noqa: PLC0415  slow to load

    if dry_run:
        found = find_backup(folder, backup_id)
        cli.out.plan(f"would restore {found.id}, {size(found.bytes)}, into {target}")
        return
    with cli.progress("restoring", size) as progress:
        report = restore_backup(folder, target, backup_id=backup_id, progress=progress)
    if cli.out.is_json:
        cli.out.json(report=report)
    else:
        for finding in report.findings:
            cli.out.warn(finding)
        counts = threads_and_records(report.threads, report.entries)
        cli.out.done(f"{report.backup.id}: {counts} in {target}")
    if report.findings:
        raise click.exceptions.Exit(DAMAGED)
