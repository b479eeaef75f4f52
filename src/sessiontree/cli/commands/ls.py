"""ls."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

import typer

from sessiontree.cli.addresses import short
from sessiontree.cli.context import CliContext
from sessiontree.cli.output import Column
from sessiontree.cli.render.text import ago, nanoseconds
from sessiontree.model import Thread, ThreadQuery

__all__ = ["EXAMPLES", "ls"]


EXAMPLES = {
    "ls": """Examples:

\b
  sessiontree ls --limit 5
  sessiontree ls --title budget --tag work
  sessiontree ls --since 7d --json
  sessiontree ls | cut -f1"""
}

_COLUMNS = (
    Column(name="id", style="yellow"),
    Column(name="updated", style="dim"),
    Column(name="messages", is_number=True),
    Column(name="tokens", is_number=True),
    Column(name="title", weight=1),
)


def ls(
    ctx: typer.Context,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="How many threads.")] = 50,
    cursor: Annotated[str, typer.Option(help="Go on after a page: the cursor that it gave.")] = "",
    title: Annotated[str, typer.Option(help="Only titles that hold this text.")] = "",
    tag: Annotated[list[str] | None, typer.Option(help="Only threads with this tag; may be repeated.")] = None,
    workspace: Annotated[str, typer.Option(help="Only threads of this workspace.")] = "",
    model: Annotated[str, typer.Option(help="Only threads of this model.")] = "",
    since: Annotated[str, typer.Option(help="Changed since: 2026-01-31, today, yesterday, or an age such as 7d.")] = "",
    archived: Annotated[bool, typer.Option("--archived", help="Archived threads only.")] = False,
    everything: Annotated[bool, typer.Option("--all", "-a", help="Archived threads as well.")] = False,
    order: Annotated[str, typer.Option(help="updated or created.")] = "updated",
) -> None:
    """List threads, the one that changed last first.

    In a pipe: id, time, messages, tokens, title, separated by tabs, nothing cut off.
    """
    world: CliContext = ctx.obj
    filters: dict[str, Any] = {
        "limit": limit,
        "is_archived": None if everything else archived,
        "order": order,
        "tags": tuple(tag or ()),
    }
    texts = {"cursor": cursor, "title_contains": title, "workspace": workspace, "model": model}
    filters |= {name: value for name, value in texts.items() if value}
    if since:
        filters["updated_after_ns"] = nanoseconds("--since", since)
    page = world.journal.list_threads(ThreadQuery(**filters))
    if world.out.is_json:
        world.out.json(threads=page.threads, cursor=page.cursor)
        return
    now = datetime.now().astimezone()
    world.out.table(_COLUMNS, [_row(thread, now, is_short=world.out.is_terminal) for thread in page])
    if page.cursor and world.out.is_terminal:
        world.out.remark(f"more: sessiontree ls --limit {limit} --cursor {page.cursor}")
    if not page.threads:
        is_empty = not world.journal.list_threads(is_archived=None, limit=1).threads
        world.out.remark(
            "no thread here yet; start one with: sessiontree new"
            if is_empty
            else "no thread fits; ls --all lists them all"
        )


def _row(thread: Thread, now: datetime, *, is_short: bool) -> list[str]:
    title = thread.title or "(no title)"
    return [
        short(thread.id) if is_short else thread.id,
        ago(thread.updated_at, now) if is_short else thread.updated_at.isoformat(),
        str(thread.messages),
        str(thread.tokens),
        f"{title} [archived]" if thread.is_archived else title,
    ]
