"""The command export."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast

import click
import msgspec

from sessiontree.cli.addresses import thread_or_pick
from sessiontree.cli.context import CliContext
from sessiontree.cli.declare import FilePath, command, dry_run_option, thread_argument
from sessiontree.cli.exit_codes import UsageError
from sessiontree.cli.suggestions import did_you_mean, similar
from sessiontree.model import Thread
from sessiontree.model.sanitize import for_terminal
from sessiontree.render.figures import plural, size

if TYPE_CHECKING:
    from sessiontree.journal import Journal
    from sessiontree.model import Progress

__all__ = ["export"]


_TEXT_FORMATS: dict[str, Literal["markdown", "json", "jsonl"]] = {
    "md": "markdown",
    "markdown": "markdown",
    "json": "json",
    "jsonl": "jsonl",
}


_ROWS: dict[str, Literal["openai-jsonl", "sharegpt", "dpo"]] = {
    "openai-jsonl": "openai-jsonl",
    "sharegpt": "sharegpt",
    "dpo": "dpo",
}


@command(
    "export",
    examples=[
        "sessiontree export @ -o talk.html",
        "sessiontree export 3a19 --to md",
        "sessiontree export 3a19 --to jsonl > talk.jsonl",
        "sessiontree export 3a19 --to claude-code -o sessions/    in another program's format, into a folder",
        "sessiontree export 3a19 --to dpo > pairs.jsonl           two answers to one question, chosen and rejected",
    ],
)
@thread_argument
@click.option(
    "--to",
    "-t",
    default="",
    metavar="FORMAT",
    help="html, md, json, jsonl, or another program's format; by default the suffix of --output.",
)
@click.option(
    "--output", "-o", type=FilePath(), metavar="PATH", help="The file, or for other programs the folder, to write."
)
@click.option("--redact", is_flag=True, help="Replace keys, tokens and passwords by what they are.")
@click.option("--force", is_flag=True, help="Replace an existing file.")
@dry_run_option
def export(
    cli: CliContext, *, thread: str | None, to: str, output: Path | None, redact: bool, force: bool, dry_run: bool
) -> None:
    """Write a conversation as one self-contained HTML file, as Markdown, JSON or JSONL, or in another program's format.

    The HTML file contains no scripts and loads nothing from the network. `import` reads JSON and JSONL. The other
    programs are Claude Code, Codex, Gemini, OpenCode, goose, pi, floret, ggcode, zimaos, openrouter and picoclaw; rows for
    training are openai-jsonl, sharegpt and dpo, which makes preference pairs of branches.
    """
    found = thread_or_pick(cli, thread, "export")
    format_name = to or (_suffix_of(output) if output else "md")
    _check(format_name, output, force=force)
    if dry_run:
        cli.out.plan(
            f"would write {cli.threads[found.id]}, {found.entries} entries, as {format_name} to {output or 'stdout'}"
        )
        return
    if format_name not in {"html", *_TEXT_FORMATS, *_ROWS}:
        _export_for_program(cli, found, format_name, cast(Path, output), is_redacted=redact)
        return
    with cli.progress(f"writing entries as {format_name}") as progress:
        content = _render(cli.journal, found, format_name, progress)
    if redact:
        content = _without_secrets(content)
    if output is None:
        # A terminal would obey what a conversation contains; a file or a pipe gets it unchanged.
        sys.stdout.write(for_terminal(content) if cli.out.is_terminal else content)
        return
    data = content.encode()
    _replace(output, data)
    if cli.out.is_json:
        cli.out.json(file=str(output), format=format_name, bytes=len(data))
    else:
        cli.out.done(f"{output}: {size(len(data))}")


def _suffix_of(output: Path) -> str:
    suffix = output.suffix.lstrip(".").lower()
    if not suffix:
        raise UsageError(
            f"{output} has no suffix that names a format; add --to html, md, json, jsonl or another format"
        )
    return suffix


def _check(format_name: str, output: Path | None, *, force: bool) -> None:
    from sessiontree.transfer.formats import WRITABLE  # noqa: PLC0415  slow to load

    known = ("html", "md", "json", "jsonl", *WRITABLE)
    if format_name not in {*known, "markdown"}:
        advice = did_you_mean([(name, "") for name in similar(format_name, known)])
        raise UsageError(f"There is no format “{format_name}”; known are {', '.join(known)}.", advice)
    if format_name in WRITABLE and format_name not in _ROWS:
        if output is None:
            raise UsageError(f"{format_name} is written into a folder; name one with --output")
        return
    if output is not None and output.exists() and not force:
        raise UsageError(f"{output} already exists; --force replaces it")
    if output is not None and (output.is_dir() or not output.parent.is_dir()):
        raise UsageError(f"{output} cannot be written; name a file in an existing folder")


def _replace(output: Path, data: bytes) -> None:
    """Write a file as a whole or not at all: a full disk must not damage the existing file. Devices are written to."""
    if output.exists() and not output.is_file():
        output.write_bytes(data)
        return
    target = output.resolve()
    partial = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        partial.write_bytes(data)
        if target.exists():
            partial.chmod(target.stat().st_mode)
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)


def _render(journal: Journal, thread: Thread, format_name: str, progress: Progress) -> str:
    if format_name in _ROWS:
        from sessiontree.transfer.training import rows  # noqa: PLC0415  slow to load

        return "".join(msgspec.json.encode(row).decode() + "\n" for row in rows(journal, thread.id, _ROWS[format_name]))
    if format_name != "html":
        return journal.export(thread.id, format=_TEXT_FORMATS[format_name], progress=progress)
    from sessiontree.transfer.html import PageContent, render_html  # noqa: PLC0415  slow to load

    entries = tuple(journal.entries(thread.id))
    return render_html(PageContent(thread=thread, entries=entries, labels=journal.labels(thread.id)), progress)


def _without_secrets(content: str) -> str:
    from sessiontree.transfer.secrets import redact  # noqa: PLC0415  slow to load

    return redact(content)


def _export_for_program(cli: CliContext, thread: Thread, format_name: str, folder: Path, *, is_redacted: bool) -> None:
    from sessiontree.transfer.formats import export_sessions  # noqa: PLC0415  slow to load

    change = _without_secrets if is_redacted else None
    with cli.progress(f"writing {thread.entries} entries as {format_name}"):
        report = export_sessions(cli.journal, folder, format=format_name, threads=[thread.id], change=change)
    if cli.out.is_json:
        cli.out.json(report=report)
        return
    for note in report.notes:
        cli.out.warn(f"{note.kind}: {note.place}: {note.problem}")
    cli.out.done(
        f"{folder}: {plural(len(report.files), 'file')}, {plural(report.entries, 'entry', 'entries')} as {format_name}"
    )
