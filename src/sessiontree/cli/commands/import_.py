"""export, import, copy."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from msgspec.structs import replace

from sessiontree.cli.commands.append import DryRun
from sessiontree.cli.context import CliContext
from sessiontree.cli.exit_codes import DAMAGED, UsageError
from sessiontree.errors import NotFoundError

if TYPE_CHECKING:
    from sessiontree.journal import Journal
    from sessiontree.transfer.formats import ImportReport

__all__ = ["EXAMPLES", "import_"]


EXAMPLES = {
    "import": """Examples:

\b
  sessiontree import talk.jsonl
  sessiontree import ~/.floret/threads --dry-run
  sessiontree import sessions.db --from zimaos --prefix old-""",
}


def import_(
    ctx: typer.Context,
    source: Annotated[Path, typer.Argument(help="The file or folder that the sessions are in.")],
    format: Annotated[str, typer.Option("--from", help="The format; found out by itself when left out.")] = "",
    prefix: Annotated[str, typer.Option(help="Put this in front of every thread id.")] = "",
    dry_run: DryRun = False,
) -> None:
    """Bring sessions of another program in. Repeating it adds only what is new; the source is never touched.

    Formats: native (our own JSON and JSONL), floret, ggcode, zimaos, openrouter, pi, picoclaw. What cannot be read is
    named, the rest comes in; exit code 3 if anything was damaged.
    """
    from sessiontree.journal.opening import open as open_journal  # noqa: PLC0415
    from sessiontree.transfer.formats import detect, import_sessions  # noqa: PLC0415  only here

    world: CliContext = ctx.obj
    if not source.exists():
        raise UsageError(f"{source} does not exist; name the file or folder that the sessions are in")
    if not format and detect(source) is None:
        raise UsageError(f"{source} is in no format that is known here; if you know it, say --from")
    journal = open_journal("memory:") if dry_run else world.journal
    with world.progress("importing bytes") as progress:
        report = import_sessions(journal, source, format=format or None, prefix=prefix, progress=progress)
    if dry_run:
        report = _compared(world.journal, journal, report)
        journal.close()
    if world.out.is_json:
        world.out.json(report=report)
    else:
        for note in report.notes:
            world.out.warn(f"{note.kind}: {note.place} at byte {note.offset}: {note.problem}")
        would = "would be " if dry_run else ""
        world.out.remark(
            f"{report.format}: {len(report.threads)} threads, {report.created} new; "
            f"{report.entries_added} entries {would}added, {report.entries_known} known, {len(report.damage)} damaged"
        )
    if report.damage:
        raise typer.Exit(DAMAGED)


def _compared(journal: Journal, rehearsal: Journal, report: ImportReport) -> ImportReport:
    """The report of a rehearsal in an empty store, as it would be for a store that knows some of it already."""
    created = known = 0
    for thread_id in report.threads:
        try:
            there = {entry.id for entry in journal.entries(thread_id)}
        except NotFoundError:
            created += 1
            continue
        own = (entry for entry in rehearsal.entries(thread_id) if entry.thread_id == thread_id)
        known += sum(entry.id in there for entry in own)
    added, known = report.entries_added - known, report.entries_known + known
    return replace(report, created=created, entries_added=added, entries_known=known)
