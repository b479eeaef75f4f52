"""The command doctor."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from sessiontree.cli.context import CliContext
from sessiontree.cli.declare import command, dry_run_option
from sessiontree.cli.exit_codes import DAMAGED
from sessiontree.model.sanitize import one_line

if TYPE_CHECKING:
    from sessiontree import Finding

__all__ = ["doctor"]


@command(
    "doctor",
    examples=["sessiontree doctor", "sessiontree doctor --repair --dry-run", "sessiontree doctor --json"],
)
@click.option("--repair", is_flag=True, help="Repair what can be repaired; what is cut out of a file is kept.")
@dry_run_option
def doctor(cli: CliContext, *, repair: bool, dry_run: bool) -> None:
    """Check the whole store: checksums, chains, counters, reflogs. Exits with code 3 if there is damage.

    --repair moves torn lines of JSONL files aside, rebuilds the indexes, ids and heads of SQLite files, and discards the
    search index, which the next search rebuilds. Other damage stays: `copy` saves what is readable into a new store.
    """
    findings = _check(cli)
    if repair and not dry_run:
        _repair(cli)
        findings = _check(cli) if findings else []
    if cli.out.is_json:
        cli.out.json(store=cli.location.url, findings=findings)
    else:
        _print(cli, findings)
    if not findings:
        return
    if repair and not dry_run:
        cli.out.warn("the rest cannot be repaired in place; `sessiontree copy` saves what is readable into a new store")
    raise click.exceptions.Exit(DAMAGED)


def _check(cli: CliContext) -> list[Finding]:
    with cli.progress("checking the store") as progress:
        return cli.journal.check(progress=progress)


def _repair(cli: CliContext) -> None:
    with cli.progress("repairing the store"):
        repaired = cli.journal.repair()
    for finding in repaired:
        cli.out.info(f"repaired: {finding.place} at byte {finding.offset}: {finding.problem}")


def _print(cli: CliContext, findings: list[Finding]) -> None:
    for finding in findings:
        where = f"{finding.place}:{finding.offset}" if finding.offset else finding.place
        about = " ".join(filter(None, (finding.thread_id, finding.entry_id)))
        can = "repairable" if finding.is_repairable else "not repairable"
        cells = (finding.kind, where, about, finding.problem, can)
        cli.out.line("\t".join(one_line(cell, 500) for cell in cells))
    if not findings:
        cli.out.info("no problems found")
        return
    has_repairable = any(finding.is_repairable for finding in findings)
    count = "1 finding" if len(findings) == 1 else f"{len(findings)} findings"
    cli.out.info(count + ("; --repair repairs some or all of them" if has_repairable else ""))
