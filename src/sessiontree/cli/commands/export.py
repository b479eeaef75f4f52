"""export, import, copy."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from sessiontree.cli.addresses import short, thread_for
from sessiontree.cli.commands.append import DryRun
from sessiontree.cli.context import CliContext
from sessiontree.cli.exit_codes import UsageError
from sessiontree.journal.operations.reads import ExportFormat
from sessiontree.model import Thread

if TYPE_CHECKING:
    from sessiontree.journal import Journal
    from sessiontree.model._base import Progress

__all__ = ["EXAMPLES", "export"]


EXAMPLES = {
    "export": """Examples:

\b
  sessiontree export @ -o talk.html
  sessiontree export 3fa9c0de --to md
  sessiontree export 3fa9c0de --to jsonl > talk.jsonl
  sessiontree export 3fa9c0de --to pi -o sessions/    in another program's format, into a folder""",
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
    world: CliContext = ctx.obj
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


def _kind_in_name(output: Path) -> str:
    kind = output.suffix.lstrip(".").lower()
    if not kind:
        raise UsageError(f"the name {output} does not tell the format; say --to html, md, json, jsonl or another one")
    return kind


def _check(kind: str, output: Path | None, *, force: bool) -> None:
    from sessiontree.transfer.formats import FORMATS  # noqa: PLC0415  only here

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
    from sessiontree.transfer.html import PageContent, render_html  # noqa: PLC0415  only here

    entries = tuple(journal.entries(thread.id))
    return render_html(PageContent(thread=thread, entries=entries, labels=journal.labels(thread.id)), progress)


def _for_another_program(world: CliContext, thread: Thread, kind: str, folder: Path) -> None:
    from sessiontree.transfer.formats import export_sessions  # noqa: PLC0415  only here

    with world.progress(f"writing {thread.entries} entries as {kind}"):
        report = export_sessions(world.journal, folder, format=kind, threads=[thread.id])
    if world.out.is_json:
        world.out.json(report=report)
        return
    for note in report.notes:
        world.out.warn(f"{note.kind}: {note.place}: {note.problem}")
    world.out.remark(f"{folder}: {len(report.files)} files, {report.entries} entries as {kind}")
