"""export."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from sessiontree.cli.exits import UsageError
from sessiontree.cli.output import as_json
from sessiontree.cli.picking import thread_for
from sessiontree.cli.verbs.writing import DryRun
from sessiontree.cli.world import World
from sessiontree.model import Thread

__all__ = ["EXAMPLES", "export"]

EXAMPLES = {
    "export": """Examples:

\b
  sessiontree export @ -o talk.html
  sessiontree export 3fa9c0de --to md
  sessiontree export 3fa9c0de --to jsonl > talk.jsonl"""
}


def export(
    ctx: typer.Context,
    thread: Annotated[str | None, typer.Argument(help="The thread.", metavar="THREAD")] = None,
    to: Annotated[str, typer.Option("--to", "-t", help="html, md, json or jsonl; guessed from --output.")] = "",
    output: Annotated[Path | None, typer.Option("--output", "-o", help="A file; without it stdout.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
    dry_run: DryRun = False,
) -> None:
    """Write a conversation as one self-contained HTML file, as Markdown, JSON or JSONL.

    The HTML needs no script and asks nobody for anything: it can be opened, mailed and kept.
    """
    world: World = ctx.obj
    found = thread_for(world, thread)
    kind = to or (output.suffix.lstrip(".").lower() if output else "md")
    if kind not in {"html", "md", "json", "jsonl"}:
        raise UsageError(f"there is no format {kind!r}; use --to html, md, json or jsonl")
    if output is not None and output.exists() and not force:
        raise UsageError(f"{output} is there already; --force replaces it")
    if dry_run:
        world.out.remark(f"would write {found.entries} entries as {kind} to {output or 'stdout'}")
        return
    content = _render(world, found, kind)
    if output is None:
        sys.stdout.write(content)
        return
    output.write_text(content, encoding="utf-8")
    world.out.remark(f"{output}: {len(content.encode()):,} bytes")


def _render(world: World, thread: Thread, kind: str) -> str:
    journal = world.journal
    match kind:
        case "html":
            from sessiontree.html import Conversation, render_html  # noqa: PLC0415  only here

            entries = tuple(journal.entries(thread.id))
            return render_html(Conversation(thread=thread, entries=entries, labels=journal.labels(thread.id)))
        case "json":
            data = {"schema_version": 1, "thread": thread, "entries": journal.entries(thread.id)}
            return msgspec.json.format(as_json(data)).decode() + "\n"
        case "jsonl":
            lines = [as_json({"schema_version": 1, "thread": thread})]
            lines += [as_json(entry) for entry in journal.entries(thread.id)]
            return b"\n".join(lines).decode() + "\n"
        case _:
            return "UNREACHED"
