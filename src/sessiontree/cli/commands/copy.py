"""The command copy."""

from __future__ import annotations

from sessiontree.cli.context import CliContext
from sessiontree.cli.declare import StoreAddress, argument, command, dry_run_option
from sessiontree.render.figures import count, threads_and_records

__all__ = ["copy"]


@command(
    "copy",
    examples=[
        "sessiontree copy sqlite:///copy.db",
        "sessiontree copy jsonl:///folder --store journal.db",
        "sessiontree copy postgresql://host/database --dry-run",
    ],
)
@argument("target", "The store to copy into: a path or a URL.", type=StoreAddress())
@dry_run_option
def copy(cli: CliContext, *, target: str, dry_run: bool) -> None:
    """Copy the whole store into another store of any kind, then compare all content hashes.

    Can be repeated: what the target already has is not written again. Exits with code 4 if the target has something
    else under the same id.
    """
    from sessiontree.transfer.copy import CopyReport, copy_store  # noqa: PLC0415  slow to load

    total = cli.journal.stats()
    if dry_run:
        cli.out.plan(f"would copy {threads_and_records(total.threads, total.entries)} into {target}")
        return
    with cli.progress("copying records") as progress:

        def advance(report: CopyReport) -> None:
            progress(report.entries, total.entries)

        report = copy_store(cli.journal, target, progress=advance)
    if cli.out.is_json:
        cli.out.json(report=report)
    else:
        cli.out.done(f"{threads_and_records(report.threads, report.entries)} in the target; {count(report.copied)} new")
