"""The command import."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec.structs import replace

from sessiontree.cli.context import CliContext, is_missing
from sessiontree.cli.declare import FilePath, argument, command, dry_run_option
from sessiontree.cli.exit_codes import DAMAGED, UsageError
from sessiontree.errors import NotFoundError
from sessiontree.journal.opening import open as open_journal

if TYPE_CHECKING:
    from sessiontree.journal import Journal
    from sessiontree.transfer.formats import ImportReport

__all__ = ["import_"]


@command(
    "import",
    examples=[
        "sessiontree import talk.jsonl",
        "sessiontree import ~/.floret/threads --dry-run",
        "sessiontree import sessions.db --from zimaos --prefix old-",
    ],
)
@argument("source", "The file or folder with the sessions.", type=FilePath())
@click.option("format_name", "--from", default="", metavar="FORMAT", help="The format; detected if omitted.")
@click.option("--prefix", default="", help="Put this before every thread id.")
@dry_run_option
def import_(cli: CliContext, *, source: Path, format_name: str, prefix: str, dry_run: bool) -> None:
    """Import the sessions of another program. Repeating it adds only what is new; the source is not changed.

    Formats: native (our own JSON and JSONL), floret, ggcode, zimaos, openrouter, pi, picoclaw. What cannot be read is
    reported, and the rest is imported; exits with code 3 if anything was damaged.
    """
    from sessiontree.transfer.formats import detect, import_sessions  # noqa: PLC0415  slow to load

    if not source.exists():
        raise UsageError(f"{source} does not exist; name the file or folder with the sessions")
    if not format_name and detect(source) is None:
        raise UsageError(f"the format of {source} was not recognised; name it with --from")
    journal = open_journal("memory:") if dry_run else cli.create_journal()
    with cli.progress("importing bytes") as progress:
        report = import_sessions(journal, source, format=format_name or None, prefix=prefix, progress=progress)
    if dry_run:
        if not is_missing(cli.location.url):
            report = _adjusted(report, rehearsal=journal, journal=cli.journal)
        journal.close()
    if cli.out.is_json:
        cli.out.json(report=report)
    else:
        _print(cli, report, is_dry_run=dry_run)
    if report.damage:
        raise click.exceptions.Exit(DAMAGED)


def _print(cli: CliContext, report: ImportReport, *, is_dry_run: bool) -> None:
    for note in report.notes:
        cli.out.warn(f"{note.kind}: {note.place} at byte {note.offset}: {note.problem}")
    would = "would be " if is_dry_run else ""
    cli.out.info(
        f"{report.format}: {len(report.threads)} threads, {report.created} new; "
        f"{report.entries_added} entries {would}added, {report.entries_known} known, {len(report.damage)} damaged"
    )


def _adjusted(report: ImportReport, *, rehearsal: Journal, journal: Journal) -> ImportReport:
    """The report of an import into an empty store, changed to what it would be in a store that has some of it."""
    created = known = 0
    for thread_id in report.threads:
        try:
            present = {entry.id for entry in journal.entries(thread_id)}
        except NotFoundError:
            created += 1
            continue
        own = (entry for entry in rehearsal.entries(thread_id) if entry.thread_id == thread_id)
        known += sum(entry.id in present for entry in own)
    added, known = report.entries_added - known, report.entries_known + known
    return replace(report, created=created, entries_added=added, entries_known=known)
