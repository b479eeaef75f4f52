"""The command import."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC
from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec.structs import replace

from sessiontree.cli.context import CliContext, is_missing
from sessiontree.cli.declare import FilePath, argument, command, dry_run_option, yes_option
from sessiontree.cli.exit_codes import CONFLICT, DAMAGED, UsageError
from sessiontree.cli.last_import import remember_import
from sessiontree.cli.output import PROSE
from sessiontree.cli.screen.imports import found_lines, report_lines
from sessiontree.cli.screen.lines import DIM, paragraph
from sessiontree.cli.suggestions import did_you_mean, similar
from sessiontree.cli.summaries import title
from sessiontree.errors import NotFoundError
from sessiontree.journal.opening import open as open_journal
from sessiontree.render.figures import plural, size
from sessiontree.render.times import iso, moment_at

if TYPE_CHECKING:
    from sessiontree.journal import Journal
    from sessiontree.transfer.discovery import FoundSessions
    from sessiontree.transfer.formats import ImportReport

__all__ = ["import_"]


_SHORTEST_PAUSE = 1.0
_MOST_BUSY = 0.005
"""The part of the time that ``--watch`` may spend with looking at files that do not change."""
_ONE_LINE = 1_000_000
_HEAD = 64 * 1024


@command(
    "import",
    examples=[
        "sessiontree import                     everything that other tools keep on this machine",
        "sessiontree import --watch --yes       the same, and follow it",
        "sessiontree import ~/Downloads/chatgpt-export.zip",
        "sessiontree import ~/.claude/projects --dry-run",
        "sessiontree import sessions.db --from zimaos --prefix old-",
    ],
)
@argument(
    "source",
    "The file or folder with the sessions; without it, what is on this machine.",
    type=FilePath(),
    required=False,
)
@click.option("format_name", "--from", default="", metavar="FORMAT", help="The format; recognised if omitted.")
@click.option("--prefix", default="", help="Put this before every thread id.")
@click.option("is_watching", "--watch", is_flag=True, help="Keep following the files until interrupted.")
@yes_option
@dry_run_option
def import_(
    cli: CliContext, *, source: Path | None, format_name: str, prefix: str, is_watching: bool, yes: bool, dry_run: bool
) -> None:
    """Import the sessions of other tools. Repeating it adds only what is new; the source is not changed.

    Without a source it looks where each tool keeps its sessions, says what is there, asks, and imports all of it. With
    one, the format is recognised by content. What cannot be read is reported, and the rest is imported.

    Exits with code 3 if something was damaged, and with 4 if something differs from what the store already has.
    """
    sources = _given(cli, source, format_name) if source else _found(cli, yes=yes, dry_run=dry_run)
    if source is None and (dry_run or not sources):
        return
    if is_watching:
        _watch(cli, sources)
        return
    began = cli.now_ns
    try:
        reports = _import_all(cli, sources, prefix, dry_run=dry_run)
    except KeyboardInterrupt:
        if not dry_run:
            cli.out.info("What came in so far is kept; the same command brings in the rest.")
        raise
    if source is None and not prefix:
        remember_import(cli, began)
    if cli.out.is_json:
        cli.out.json(reports=reports, **({"report": reports[0]} if len(reports) == 1 else {}))
    else:
        _print(cli, reports, is_dry_run=dry_run)
        cli.out.hint(("next:", "sessiontree"))
    _exit(reports)


def _with_title(name: str, title: str) -> str:
    return name if title.casefold().startswith(name.replace("-", " ")) else f"{name} ({title})"


def _given(cli: CliContext, source: Path, format_name: str) -> list[tuple[str, Path]]:
    from sessiontree.transfer.formats import TITLES, formats_in, named  # noqa: PLC0415  slow to load

    if source.is_symlink() and not source.exists():
        raise UsageError(f"{source} is a link to {source.readlink()}, which does not exist.")
    if not source.exists():
        near = similar(source.name, (one.name for one in source.parent.iterdir())) if source.parent.is_dir() else []
        advice = did_you_mean([(str(source.with_name(name)), "") for name in near])
        raise UsageError(f"{source} does not exist; name the file or folder with the sessions.", advice)
    if format_name:
        named(format_name)
    elif next(formats_in(source), None) is None:
        known = "known, as --from takes them: " + ", ".join(_with_title(*row) for row in TITLES.items())
        rows = list(paragraph(known, min(cli.out.width, PROSE), DIM, lead="  "))
        raise UsageError(f"{source} {_why_unknown(source)}", rows)
    return [(format_name, source)]


def _why_unknown(source: Path) -> str:
    """Say why nothing was recognised in a file or folder."""
    if source.is_dir():
        if not os.access(source, os.R_OK | os.X_OK):
            return "cannot be read: permission denied."
        return "holds no session that is known here." if any(source.iterdir()) else "is an empty folder."
    try:
        with source.open("rb") as file:
            head = file.read(_HEAD)
    except OSError as error:
        return f"cannot be read: {error.strerror}."
    if not head.strip():
        return "is empty."
    if head.startswith(b"SQLite format 3\x00"):
        return "is an SQLite database that is damaged, or of a tool that is not known here."
    if source.suffix == ".zst":
        return "is compressed, and what can be decompressed tells nothing; it may be damaged."
    if head.startswith((b"\xff\xfe", b"\xfe\xff")) or head[1::2].count(0) > len(head) // 4:
        return "is written in UTF-16; convert it to UTF-8 first."
    if head.lstrip()[:1] in (b"{", b"[") and not head.rstrip().endswith((b"}", b"]")) and len(head) < _HEAD:
        return "is JSON that breaks off, and nothing before the end tells what it is."
    return "holds no session that is known here."


def _found(cli: CliContext, *, yes: bool, dry_run: bool) -> list[tuple[str, Path]]:
    """Say what is on this machine, and ask whether to import it."""
    from sessiontree.transfer.discovery import discover  # noqa: PLC0415  slow to load

    found = discover(os.environ, Path.home(), Path.cwd(), now_ns=cli.now_ns)
    if cli.out.is_json and dry_run:
        cli.out.json(found=found)
    elif cli.out.is_json and not found:
        cli.out.json(reports=[])
    elif not cli.out.is_json:
        _tell(cli, found)
    if found and not (yes or dry_run):
        if not cli.can_ask:
            raise UsageError("Add --yes to import all of it, or name one file or folder.")
        _ask(cli, found)
    return [(one.format, Path(one.folder)) for one in found]


def _ask(cli: CliContext, found: Sequence[FoundSessions]) -> None:
    """Ask whether to import what was found; yes is the default, and no leaves."""
    files, total = sum(one.files for one in found), sum(one.size for one in found)
    if not cli.confirms(f"Bring in {'all ' * (files > 1)}{plural(files, 'file')}, {size(total)}?", default=True):
        cli.declined("Nothing was imported.")


def _tell(cli: CliContext, found: Sequence[FoundSessions]) -> None:
    from sessiontree.transfer.formats import TITLES  # noqa: PLC0415  slow to load

    if not found:
        cli.out.info("no sessions of other tools were found on this machine; name a file or folder to import it")
        cli.out.hint(("what this is good for:", "sessiontree demo"))
        return
    if not cli.out.is_terminal:
        for one in found:
            newest = iso(moment_at(one.newest_ns, cli.now.astimezone(UTC)))
            cli.out.row((one.format, one.files, one.size, newest, one.lost_soon, one.folder))
        return
    cli.out.draw(found_lines(found, TITLES, str(Path.home()), cli.now, min(cli.out.width, PROSE)))


def _import_all(
    cli: CliContext, sources: Sequence[tuple[str, Path]], prefix: str, *, dry_run: bool
) -> list[ImportReport]:
    from sessiontree.transfer.formats import import_everything, import_sessions  # noqa: PLC0415  slow to load

    reports: list[ImportReport] = []
    with _target(cli, dry_run=dry_run) as journal, cli.progress("importing", size) as progress:
        for name, path in sources:
            if name:
                found = [import_sessions(journal, path, format=name, prefix=prefix, progress=progress)]
            else:
                found = import_everything(journal, path, prefix=prefix, progress=progress)
            if dry_run and not is_missing(cli.location.url):
                found = [_adjusted(one, rehearsal=journal, journal=cli.journal) for one in found]
            reports += found
    return reports


@contextmanager
def _target(cli: CliContext, *, dry_run: bool) -> Iterator[Journal]:
    if not dry_run:
        yield cli.create_journal()
        return
    with open_journal("memory:") as journal:
        yield journal


def _watch(cli: CliContext, sources: Sequence[tuple[str, Path]]) -> None:
    """Import what changes until interrupted. The pause grows with the number of files, so that waiting costs nothing."""
    from sessiontree.transfer.follow import Follower, Source  # noqa: PLC0415  slow to load
    from sessiontree.transfer.formats import formats_in  # noqa: PLC0415  slow to load

    followed = [Source(one, path) for name, path in sources for one in ([name] if name else formats_in(path))]
    follower = Follower(cli.create_journal(), followed)
    cli.out.info("following; Ctrl-C ends it")
    try:
        while True:
            start = time.process_time()
            for report in follower.poll():
                if report.entries_added or report.damage or report.conflicts:
                    _print(cli, [report], is_dry_run=False)
            time.sleep(max(_SHORTEST_PAUSE, (time.process_time() - start) / _MOST_BUSY))
    except KeyboardInterrupt:
        cli.out.info("stopped following")


def _exit(reports: Sequence[ImportReport]) -> None:
    if any(report.conflicts for report in reports):
        raise click.exceptions.Exit(CONFLICT)
    if any(report.damage for report in reports):
        raise click.exceptions.Exit(DAMAGED)


def _print(cli: CliContext, reports: Sequence[ImportReport], *, is_dry_run: bool) -> None:
    """Say what came in; where a program reads it, every sentence is one line."""
    from sessiontree.transfer.formats import TITLES  # noqa: PLC0415  slow to load

    def name(thread_id: str) -> tuple[str, str]:
        try:
            return cli.threads[thread_id], title(cli, cli.create_journal().thread(thread_id))
        except NotFoundError:
            return thread_id, ""

    width = cli.out.width if sys.stderr.isatty() else _ONE_LINE
    home, command = str(Path.home()), cli.out.command
    lines = report_lines(reports, TITLES, name, home=home, command=command, is_dry_run=is_dry_run, width=width)
    is_fine = not any(report.damage or report.conflicts for report in reports)
    if not (is_fine and cli.is_quiet):
        cli.out.say(list(lines))


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
