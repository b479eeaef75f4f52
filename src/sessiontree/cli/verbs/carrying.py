"""export, import, copy."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer
from msgspec.structs import replace

from sessiontree.cli.addresses import short
from sessiontree.cli.exits import DAMAGED, UsageError
from sessiontree.cli.picking import thread_for
from sessiontree.cli.verbs.writing import DryRun
from sessiontree.cli.world import World
from sessiontree.errors import NotFoundError
from sessiontree.model import Thread
from sessiontree.operations.exports import ExportFormat

if TYPE_CHECKING:
    from sessiontree.formats import ImportReport
    from sessiontree.journal import Journal
    from sessiontree.progress import Progress

__all__ = ["EXAMPLES", "copy", "export", "import_"]

EXAMPLES = {
    "export": """Examples:

\b
  sessiontree export @ -o talk.html
  sessiontree export 3fa9c0de --to md
  sessiontree export 3fa9c0de --to jsonl > talk.jsonl
  sessiontree export 3fa9c0de --to pi -o sessions/    in another program's format, into a folder""",
    "copy": """Examples:

\b
  sessiontree copy sqlite:///copy.db
  sessiontree copy jsonl:///folder --store journal.db
  sessiontree copy postgresql://host/database --dry-run""",
    "import": """Examples:

\b
  sessiontree import talk.jsonl
  sessiontree import ~/.floret/threads --dry-run
  sessiontree import sessions.db --from zimaos --prefix old-""",
}

_TEXTS: dict[str, ExportFormat] = {"md": "markdown", "markdown": "markdown", "json": "json", "jsonl": "jsonl"}


def export(
    ctx: typer.Context,
    thread: Annotated[str | None, typer.Argument(help="The thread.", metavar="THREAD")] = None,
    to: Annotated[
        str,
        typer.Option("--to", "-t", help="html, md, json, jsonl, or another program's format; guessed from --output."),
    ] = "",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="A file, or a folder for other programs.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
    dry_run: DryRun = False,
) -> None:
    """Write a conversation as one self-contained HTML file, as Markdown, JSON or JSONL, or as another program keeps it.

    The HTML needs no script and asks nobody for anything: it can be opened, mailed and kept. JSON and JSONL are read
    back by `import`. Other programs: floret, ggcode, zimaos, openrouter, pi, picoclaw.
    """
    world: World = ctx.obj
    found = thread_for(world, thread)
    kind = to or (_kind_in_name(output) if output else "md")
    _check(kind, output, force=force)
    if dry_run:
        world.out.plan(f"would write {short(found.id)}, {found.entries} entries, as {kind} to {output or 'stdout'}")
        return
    if kind not in {"html", *_TEXTS}:
        _for_another_program(world, found, kind, cast(Path, output))
        return
    with world.progress(f"writing entries as {kind}") as progress:
        content = _render(world.journal, found, kind, progress)
    if output is None:
        sys.stdout.write(content)
        return
    data = content.encode()
    _replace(output, data)
    if world.out.is_json:
        world.out.json(file=str(output), format=kind, bytes=len(data))
    else:
        world.out.remark(f"{output}: {len(data):,} bytes")


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
    from sessiontree.formats import detect, import_sessions  # noqa: PLC0415  only here
    from sessiontree.opening import open as open_journal  # noqa: PLC0415

    world: World = ctx.obj
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


def copy(
    ctx: typer.Context,
    target: Annotated[str, typer.Argument(help="The store to copy into: a path or an address of any kind.")],
    dry_run: DryRun = False,
) -> None:
    """Copy the whole store into another one of any kind, and compare every content hash afterwards.

    It can be repeated: what is there already is not written again. Exit code 4 if the target holds something else
    under the same id.
    """
    from sessiontree.copying import CopyReport, copy_store  # noqa: PLC0415  only here

    world: World = ctx.obj
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


def _kind_in_name(output: Path) -> str:
    kind = output.suffix.lstrip(".").lower()
    if not kind:
        raise UsageError(f"the name {output} does not tell the format; say --to html, md, json, jsonl or another one")
    return kind


def _check(kind: str, output: Path | None, *, force: bool) -> None:
    from sessiontree.formats import FORMATS  # noqa: PLC0415  only here

    known = ("html", "md", "json", "jsonl", *FORMATS)
    if kind not in {*known, "markdown"}:
        raise UsageError(f"there is no format {kind!r}; use --to with one of {', '.join(known)}")
    if kind in FORMATS and output is None:
        raise UsageError(f"{kind} is written into a folder; name one with --output")
    if kind not in FORMATS and output is not None and output.exists() and not force:
        raise UsageError(f"{output} is there already; --force replaces it")
    if kind not in FORMATS and output is not None and (output.is_dir() or not output.parent.is_dir()):
        raise UsageError(f"{output} cannot be written: name a file in a folder that is there")


def _replace(output: Path, data: bytes) -> None:
    """All or nothing: a disk that fills up costs the file that is there already nothing. Devices are written to."""
    if output.exists() and not output.is_file():
        output.write_bytes(data)
        return
    target = output.resolve()
    beside = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        beside.write_bytes(data)
        if target.exists():
            beside.chmod(target.stat().st_mode)
        beside.replace(target)
    finally:
        beside.unlink(missing_ok=True)


def _render(journal: Journal, thread: Thread, kind: str, progress: Progress) -> str:
    if kind != "html":
        return journal.export(thread.id, format=_TEXTS[kind], progress=progress)
    from sessiontree.html import Conversation, render_html  # noqa: PLC0415  only here

    entries = tuple(journal.entries(thread.id))
    return render_html(Conversation(thread=thread, entries=entries, labels=journal.labels(thread.id)), progress)


def _for_another_program(world: World, thread: Thread, kind: str, folder: Path) -> None:
    from sessiontree.formats import export_sessions  # noqa: PLC0415  only here

    with world.progress(f"writing {thread.entries} entries as {kind}"):
        report = export_sessions(world.journal, folder, format=kind, threads=[thread.id])
    if world.out.is_json:
        world.out.json(report=report)
        return
    for note in report.notes:
        world.out.warn(f"{note.kind}: {note.place}: {note.problem}")
    world.out.remark(f"{folder}: {len(report.files)} files, {report.entries} entries as {kind}")
