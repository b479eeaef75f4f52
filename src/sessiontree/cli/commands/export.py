"""The command export."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, cast

import click
import msgspec

from sessiontree.cli.addresses import address_or_pick
from sessiontree.cli.context import CliContext
from sessiontree.cli.declare import FilePath, command, dry_run_option, thread_argument
from sessiontree.cli.exit_codes import UsageError
from sessiontree.cli.suggestions import did_you_mean, similar
from sessiontree.model import Thread
from sessiontree.model.sanitize import for_terminal
from sessiontree.render.figures import plural, size

if TYPE_CHECKING:
    from sessiontree.journal import Journal
    from sessiontree.model import Progress, Scope

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
        "sessiontree export 3a19:b21c --to md                     the branch that ends at an entry",
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
@click.option(
    "--scope",
    type=click.Choice(["path", "thread", "tree"]),
    help="The active branch, all branches of the thread, or all threads of its tree; by default what FORMAT can hold.",
)
@click.option("--redact", is_flag=True, help="Replace keys, tokens and passwords by what they are.")
@click.option("--force", is_flag=True, help="Replace an existing file.")
@dry_run_option
def export(
    cli: CliContext,
    *,
    thread: str | None,
    to: str,
    output: Path | None,
    scope: Scope | None,
    redact: bool,
    force: bool,
    dry_run: bool,
) -> None:
    """Write a conversation as one self-contained HTML file, as Markdown, JSON or JSONL, or in another program's format.

    The HTML file contains no scripts and loads nothing from the network. `import` reads JSON and JSONL. The other
    programs are Claude Code, Codex, Gemini, OpenCode, goose, pi, floret, ggcode, zimaos, openrouter and picoclaw; rows for
    training are openai-jsonl, sharegpt and dpo, which makes preference pairs of branches. THREAD:ENTRY exports the branch
    that ends at an entry.
    """
    chosen = _choose(cli, thread, scope)
    found = chosen.thread
    format_name = to or (_suffix_of(output) if output else "md")
    _check(format_name, output, force=force)
    _check_scope(chosen, format_name)
    if dry_run:
        cli.out.plan(
            f"would write {cli.threads[found.id]}, {found.entries} entries, as {format_name} to {output or 'stdout'}"
        )
        return
    if format_name not in {"html", *_TEXT_FORMATS, *_ROWS}:
        _export_for_program(cli, chosen, format_name, cast(Path, output), is_redacted=redact)
        return
    with cli.progress(f"writing entries as {format_name}") as progress:
        content = _render(cli.journal, chosen, format_name, progress)
    losses = _losses(cli.journal, chosen, format_name)
    if format_name == "dpo" and not content:
        losses = ["no question has two answers, so there are no pairs", *losses]
    for loss in losses if not cli.out.is_json else ():
        cli.out.warn(f"{format_name}: {loss}")
    if redact:
        content = _without_secrets(content)
    if output is None:
        # A terminal would obey what a conversation contains; a file or a pipe gets it unchanged.
        sys.stdout.write(for_terminal(content) if cli.out.is_terminal else content)
        return
    data = content.encode()
    _replace(output, data)
    if cli.out.is_json:
        cli.out.json(file=str(output), format=format_name, bytes=len(data), losses=losses)
    else:
        cli.out.done(f"{output}: {size(len(data))}")


class _Chosen(NamedTuple):
    """What to export: ``leaf`` is the entry that was named, and ``scope`` what was asked for."""

    thread: Thread
    leaf: str | None
    scope: Scope | None


def _choose(cli: CliContext, address: str | None, scope: Scope | None) -> _Chosen:
    found = address_or_pick(cli, address, "export")
    is_elsewhere = found.entry_id != found.thread.leaf
    if is_elsewhere and scope not in (None, "path"):
        raise UsageError(f"“{address}” is one branch, but --scope {scope} exports more; name the thread alone")
    leaf = found.entry_id if is_elsewhere or scope == "path" else None
    return _Chosen(found.thread, leaf, scope)


def _check_scope(chosen: _Chosen, format_name: str) -> None:
    if chosen.scope == "tree" and format_name in {"md", "markdown", "html"}:
        raise UsageError(
            f"{format_name} shows one thread; use json, jsonl or another program's format for a whole tree"
        )
    if chosen.leaf is not None and format_name == "dpo":
        raise UsageError("Preference pairs are made of all branches; name the thread alone, without --scope path")


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


def _render(journal: Journal, chosen: _Chosen, format_name: str, progress: Progress) -> str:
    thread, leaf, scope = chosen
    if format_name in _ROWS:
        from sessiontree.transfer.training import rows  # noqa: PLC0415  slow to load

        found = (row for one in _threads(journal, chosen) for row in rows(journal, one, _ROWS[format_name], leaf=leaf))
        return "".join(msgspec.json.encode(row).decode() + "\n" for row in found)
    if format_name != "html":
        shape, end = _TEXT_FORMATS[format_name], msgspec.UNSET if leaf is None else leaf
        limit = "path" if shape == "markdown" else scope
        return journal.export(thread.id, format=shape, scope=limit, leaf=end, progress=progress)
    from sessiontree.render.html import PageContent, render_html  # noqa: PLC0415  slow to load

    entries = tuple(journal.entries(thread.id) if leaf is None else journal.path(thread.id, leaf))
    shown = thread if leaf is None else msgspec.structs.replace(thread, leaf=leaf)
    return render_html(PageContent(thread=shown, entries=entries, labels=journal.labels(thread.id)), progress)


def _losses(journal: Journal, chosen: _Chosen, format_name: str) -> list[str]:
    """What rows for training, Markdown and HTML leave out of the threads."""
    from sessiontree.transfer.native import losses  # noqa: PLC0415  slow to load
    from sessiontree.transfer.subagents import subagents_left_out  # noqa: PLC0415  slow to load

    match format_name:
        case "md" | "markdown":
            return [f"{loss} left out" for loss in losses.losses_of_markdown(journal, chosen.thread, chosen.leaf)]
        case "html":
            return [f"{loss} left out" for loss in losses.losses_of_html(journal, chosen.thread, chosen.leaf)]
        case _ if format_name in _ROWS:
            names = _threads(journal, chosen)
            found = {name: [*losses.losses_of(journal, journal.thread(name), chosen.leaf)] for name in names}
            for name in names:
                found[name] += subagents_left_out(journal, name, names)
            return [f"{loss} of {name} left out" for name, lost in found.items() for loss in lost]
        case _:
            return []


def _threads(journal: Journal, chosen: _Chosen) -> list[str]:
    if chosen.scope != "tree":
        return [chosen.thread.id]
    return [one.id for one in journal.iter_threads(tree=chosen.thread.tree, is_archived=None, order="created")]


def _without_secrets(content: str) -> str:
    from sessiontree.transfer.secrets import redact  # noqa: PLC0415  slow to load

    return redact(content)


def _export_for_program(cli: CliContext, chosen: _Chosen, format_name: str, folder: Path, *, is_redacted: bool) -> None:
    from sessiontree.transfer.formats import export_sessions  # noqa: PLC0415  slow to load

    change = _without_secrets if is_redacted else None
    threads = _threads(cli.journal, chosen)
    with cli.progress(f"writing {chosen.thread.entries} entries as {format_name}"):
        report = export_sessions(
            cli.journal, folder, format=format_name, threads=threads, leaf=chosen.leaf, change=change
        )
    if cli.out.is_json and report.threads:
        cli.out.json(report=report)
        return
    for note in report.notes:
        cli.out.warn(f"{note.kind}: {note.place}: {note.problem}")
    if not report.threads:
        raise UsageError(f"nothing was written to {folder}: there is nothing to export as {format_name}")
    cli.out.done(
        f"{folder}: {plural(len(report.files), 'file')}, {plural(report.entries, 'entry', 'entries')} as {format_name}"
    )
