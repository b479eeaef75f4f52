"""export, import, copy."""

from __future__ import annotations

from typing import Annotated

import typer

from sessiontree.cli.commands.append import DryRun
from sessiontree.cli.context import CliContext

__all__ = ["EXAMPLES", "copy"]


EXAMPLES = {
    "copy": """Examples:

\b
  sessiontree copy sqlite:///copy.db
  sessiontree copy jsonl:///folder --store journal.db
  sessiontree copy postgresql://host/database --dry-run""",
}


def copy(
    ctx: typer.Context,
    target: Annotated[str, typer.Argument(help="The store to copy into: a path or an address of any kind.")],
    dry_run: DryRun = False,
) -> None:
    """Copy the whole store into another one of any kind, and compare every content hash afterwards.

    It can be repeated: what is there already is not written again. Exit code 4 if the target holds something else
    under the same id.
    """
    from sessiontree.transfer.copy import CopyReport, copy_store  # noqa: PLC0415  only here

    world: CliContext = ctx.obj
    total = world.journal.stats()
    if dry_run:
        world.out.plan(f"would copy {total.threads} threads, {total.entries} entries into {target}")
        return
    with world.progress("copying entries") as advance:

        def tell(report: CopyReport) -> None:
            advance(report.entries, total.entries)

        report = copy_store(world.journal, target, progress=tell)
    if world.out.is_json:
        world.out.json(report=report)
    else:
        world.out.remark(f"{report.threads} threads, {report.entries} entries are there; {report.copied} were new")
