"""The command ls."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import click

from sessiontree.cli.addresses import short
from sessiontree.cli.context import CliContext
from sessiontree.cli.declare import choice_option, command, count_option
from sessiontree.cli.output import Column
from sessiontree.cli.render.text import ago, nanoseconds
from sessiontree.model import Thread, ThreadOrder, ThreadQuery

__all__ = ["ls"]


_MOST_COUNTED = 1000

_COLUMNS = (
    Column(name="id", style="yellow"),
    Column(name="updated", style="dim"),
    Column(name="messages", is_number=True),
    Column(name="tokens", is_number=True),
    Column(name="title", weight=1),
)


@command(
    "ls",
    examples=[
        "sessiontree ls --limit 5",
        "sessiontree ls --title budget --tag work",
        "sessiontree ls --since 7d --json",
        "sessiontree ls | cut -f1",
    ],
)
@count_option("--limit", "-n", default=50, about="List at most N threads.")
@click.option("--cursor", default="", help="Continue after a page, with the cursor that it printed.")
@click.option("--title", default="", help="Only threads with this text in their title.")
@click.option("tags", "--tag", multiple=True, help="Only threads with this tag; may be repeated.")
@click.option("--workspace", default="", help="Only threads of this workspace.")
@click.option("--model", default="", help="Only threads of this model.")
@click.option(
    "--since",
    default="",
    metavar="TIME",
    help="Only threads changed since: 2026-01-31, today, yesterday, or an age such as 7d.",
)
@click.option("--archived", is_flag=True, help="Only archived threads.")
@click.option("everything", "--all", "-a", is_flag=True, help="Include archived and empty threads.")
@choice_option("--order", ["updated", "created"], metavar="TIME", about="Sort by the time updated or created.")
def ls(
    cli: CliContext,
    *,
    limit: int,
    cursor: str,
    title: str,
    tags: tuple[str, ...],
    workspace: str,
    model: str,
    since: str,
    archived: bool,
    everything: bool,
    order: ThreadOrder,
) -> None:
    """List threads, most recently changed first. Archived threads, and empty ones without a message, are left out.

    In a pipe: id, time, messages, tokens and title, separated by tabs, not truncated.
    """
    filters: dict[str, Any] = {
        "limit": limit,
        "is_archived": None if everything else archived,
        "is_empty": None if everything else False,
        "order": order,
        "tags": tags,
    }
    texts = {"cursor": cursor, "title_contains": title, "workspace": workspace, "model": model}
    filters |= {name: value for name, value in texts.items() if value}
    if since:
        filters["updated_after_ns"] = nanoseconds("--since", since)
    query = ThreadQuery(**filters)
    page = cli.journal.list_threads(query)
    if cli.out.is_json:
        cli.out.json(threads=page.threads, cursor=page.cursor)
        return
    now = datetime.now().astimezone()
    cli.out.table(_COLUMNS, [_row(thread, now, is_short=cli.out.is_terminal) for thread in page])
    if page.cursor and cli.out.is_terminal:
        cli.out.info(f"more: sessiontree ls --limit {limit} --cursor {page.cursor}")
    if not everything and not cursor:
        _mention_empty(cli, query)
    if not page.threads:
        _explain_empty(cli)


def _mention_empty(cli: CliContext, query: ThreadQuery) -> None:
    found = len(cli.journal.list_threads(query, is_empty=True, limit=_MOST_COUNTED))
    if found:
        number = f"{found} or more" if found == _MOST_COUNTED else f"{found}"
        noun = "empty thread is" if found == 1 else "empty threads are"
        cli.out.info(f"{number} {noun} left out; `sessiontree ls --all` lists all threads")


def _explain_empty(cli: CliContext) -> None:
    if cli.journal.list_threads(is_archived=None, limit=1).threads:
        cli.out.info("no thread matches; `sessiontree ls --all` lists all threads")
    else:
        cli.out.info("the store has no threads yet; start one with: sessiontree new")


def _row(thread: Thread, now: datetime, *, is_short: bool) -> list[str]:
    title = thread.title or "(no title)"
    return [
        short(thread.id) if is_short else thread.id,
        ago(thread.updated_at, now) if is_short else thread.updated_at.isoformat(),
        str(thread.messages),
        str(thread.tokens),
        f"{title} [archived]" if thread.is_archived else title,
    ]
