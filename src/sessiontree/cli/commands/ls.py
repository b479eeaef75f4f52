"""The command ls."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import click
from msgspec.structs import replace

from sessiontree.cli.context import CliContext
from sessiontree.cli.declare import choice_option, command, count_option, given_options
from sessiontree.cli.exit_codes import MissingError
from sessiontree.cli.output import LISTS
from sessiontree.cli.screen.hints import joined
from sessiontree.cli.screen.lines import ATTENTION, DIM, GOOD, NAME, Line
from sessiontree.cli.screen.threads import list_lines
from sessiontree.cli.summaries import count_all, count_threads, summaries
from sessiontree.cli.times import nanoseconds
from sessiontree.model import Page, Thread, ThreadOrder, ThreadQuery
from sessiontree.render.figures import count
from sessiontree.render.threads import ThreadSummary, tool_of
from sessiontree.render.times import iso

__all__ = ["ls", "print_rows"]


_LEGEND_FROM = 90


@command(
    "ls",
    examples=[
        "sessiontree ls --limit 5",
        "sessiontree ls --title budget --tag work",
        "sessiontree ls --since 7d --json",
        "sessiontree ls | cut -f1",
    ],
)
@count_option("--limit", "-n", default=20, about="List at most N threads.")
@count_option("--page", "-p", default=1, about="Show the Nth page.")
@click.option("--cursor", default="", help="Continue after a page of --json, with the cursor that it holds.")
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
    page: int,
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

    \b
    ▶ a turn is running   ! the last turn was cut off   ‹4› has 4 branches

    In a pipe: id, time, entries, branches, cost, tool, folder and title, separated by tabs.
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
        filters["updated_after_ns"] = nanoseconds(cli, "--since", since)
    query = ThreadQuery(**filters)
    found = _page(cli, query, page)
    if page > 1 and not found.threads:
        advice = [Line(("  the first one:  ", DIM), f"sessiontree ls{given_options('page')}")]
        raise MissingError(f"There is no page {page}.", advice)
    if cli.out.is_json:
        cli.out.json(threads=found.threads, cursor=found.cursor)
        return
    if not cli.out.is_terminal:
        print_rows(cli, found.threads)
        return
    if found.threads:
        cli.out.draw(list_lines(summaries(cli, found.threads), cli.threads, cli.now, cli.out.width))
    _say_the_rest(cli, query, found, page)


def _page(cli: CliContext, query: ThreadQuery, number: int) -> Page:
    """The page of this number."""
    found = cli.journal.list_threads(query)
    for _ in range(number - 1):
        if found.cursor is None:
            return Page(threads=())
        found = cli.journal.list_threads(replace(query, cursor=found.cursor))
    return found


def print_rows(cli: CliContext, threads: Iterable[Thread]) -> None:
    """Print threads as tab-separated values, complete."""
    for row in summaries(cli, threads):
        cli.out.row(_values(row))


def _values(row: ThreadSummary) -> tuple[object, ...]:
    thread: Thread = row.thread
    cost = "" if row.cost.amount is None else f"{row.cost.amount:.6f}"
    branches = "" if row.branches is None else row.branches
    return (
        thread.id, iso(thread.updated_at), row.entries, branches, cost, tool_of(thread), thread.workspace,
        row.title + (" (archived)" if thread.is_archived else ""),
    )  # fmt: skip


def _say_the_rest(cli: CliContext, query: ThreadQuery, found: Page, page: int) -> None:
    """The last line: how many there are, how to see more, what the marks mean."""
    if not found.threads:
        _explain_empty(cli)
        return
    lines = [Line((_how_many(cli, query, found), DIM))]
    width = min(cli.out.width, LISTS)
    if found.cursor is not None:
        more = cli.out.command(f"sessiontree ls{given_options('page')} -p {page + 1}")
        lines = joined([*lines, Line(("more: ", DIM), more)], width)
    if cli.out.width >= _LEGEND_FROM:
        lines = joined([*lines, _legend()], width, gap="    ")
    if not cli.is_quiet:
        cli.out.draw([Line(), *lines])
    _mention_empty(cli, query)


def _legend() -> Line:
    line = Line(("▶", GOOD), (" running  ", DIM), ("!", ATTENTION), (" cut off  ", DIM))
    return line.add("‹2›", NAME).add(" branches", DIM)


def _how_many(cli: CliContext, query: ThreadQuery, found: Page) -> str:
    """The number of threads that are shown, and of how many. In a large store that is the number of all its threads."""
    total = count_threads(cli, query)
    if total is None:
        return f"{len(found)} shown, {count(count_all(cli))} in the store"
    return f"{len(found)} of {count(total)}"


def _mention_empty(cli: CliContext, query: ThreadQuery) -> None:
    if query.is_empty is None or query.cursor:
        return
    found = count_threads(cli, replace(query, is_empty=True))
    if found:
        cli.out.hint((f"{count(found)} without a message left out:", "sessiontree ls --all"))


def _explain_empty(cli: CliContext) -> None:
    if cli.journal.list_threads(is_archived=None, limit=1).threads:
        cli.out.info("No thread matches.")
        cli.out.hint(("all of them:", "sessiontree ls --all"))
    else:
        cli.out.info("No threads here yet.")
        cli.out.hint(("start one:", 'sessiontree new "…"'), ("bring yours in:", "sessiontree import"))
