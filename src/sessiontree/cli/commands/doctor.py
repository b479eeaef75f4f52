"""doctor, config, completion, demo."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from sessiontree.cli.commands.append import DryRun
from sessiontree.cli.context import CliContext
from sessiontree.cli.exit_codes import DAMAGED
from sessiontree.model.sanitize import one_line
from sessiontree.stores.queries import Finding

__all__ = ["EXAMPLES", "doctor"]


EXAMPLES = {
    "doctor": """Examples:

\b
  sessiontree doctor
  sessiontree doctor --repair --dry-run
  sessiontree doctor --json""",
}


def doctor(
    ctx: typer.Context,
    repair: Annotated[
        bool, typer.Option("--repair", help="Mend what can be mended; what is cut is kept aside.")
    ] = False,
    dry_run: DryRun = False,
) -> None:
    """Check the whole store: checksums, chains, counters, reflogs. Exit code 3 if something is not as it should be.

    --repair cuts torn lines out of JSONL files and keeps them aside, makes indexes, ids and heads of SQLite files anew,
    and throws the index of the search away, which the next search fills again. What else is damaged stays as it is:
    `copy` brings what is readable into a new store.
    """
    world: CliContext = ctx.obj
    findings = _check(world)
    if repair and not dry_run:
        with world.progress("repairing the store"):
            _repair(world, is_needed=bool(findings))
        findings = _check(world) if findings else []
    if world.out.is_json:
        world.out.json(store=world.location.url, findings=findings)
    else:
        _print(world, findings, repair=repair and dry_run)
    if findings:
        raise typer.Exit(DAMAGED)


def _check(world: CliContext) -> list[Finding]:
    with world.progress("checking the store") as progress:
        return world.journal.check(progress=progress)


def _repair(world: CliContext, *, is_needed: bool) -> None:
    backend: Any = getattr(world.journal.store, "backend", None)
    if not hasattr(backend, "repair"):
        if is_needed:
            world.out.warn(
                "this kind of store cannot be repaired in place; `sessiontree copy` what is readable into a new one"
            )
        return
    for mended in backend.repair():
        world.out.remark(f"mended: {mended.place} at byte {mended.offset}: {mended.problem}")


def _print(world: CliContext, findings: list[Finding], *, repair: bool) -> None:
    for finding in findings:
        where = f"{finding.place}:{finding.offset}" if finding.offset else finding.place
        about = " ".join(filter(None, (finding.thread_id, finding.entry_id)))
        can = "repairable" if finding.is_repairable else "not repairable"
        cells = (finding.kind, where, about, finding.problem, can)
        world.out.line("\t".join(one_line(cell, 500) for cell in cells))
    if findings:
        world.out.remark(f"{len(findings)} findings" + ("; --repair would mend what is repairable" if repair else ""))
    else:
        world.out.remark("everything is as it should be")
