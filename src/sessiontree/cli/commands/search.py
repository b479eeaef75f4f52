"""search."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, cast

import typer

from sessiontree.cli.addresses import short
from sessiontree.cli.context import CliContext
from sessiontree.cli.exit_codes import NOT_FOUND, UsageError
from sessiontree.cli.render.text import ago, role_of
from sessiontree.model.sanitize import for_terminal, one_line
from sessiontree.search import Hit, SearchOrder, Snippet

__all__ = ["EXAMPLES", "search"]


EXAMPLES = {
    "search": """Filters:

\b
  role:user      system, user, assistant or tool
  tool:bash      calls and results of a tool; tool:mcp* for all that begin so
  model:gpt      models whose name holds this
  file:cli.py    calls about files whose path holds this
  label:good     the entry that carries the label
  after:7d       since then; before:2026-01-31 until then, not included
  thread:3fa9    every branch that the thread sees; branch:3fa9 its active path alone

Examples:

\b
  sessiontree search disk full
  sessiontree search '"out of space" role:tool after:7d'
  sessiontree search 'parseConf* -test' --order newest
  sessiontree search file:main.py role:assistant --json"""
}


def search(
    ctx: typer.Context,
    words: Annotated[list[str], typer.Argument(help='Words, "phrases", prefix*, -without and filters.')],
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="How many hits.")] = 20,
    order: Annotated[str, typer.Option(help="best or newest.")] = "best",
    cursor: Annotated[str, typer.Option(help="Go on after a page: the cursor that it gave.")] = "",
) -> None:
    """Find entries by what they say, in all threads. Exit code 1 if nothing is found.

    Parts of identifiers (read_file, readFile) and pieces of Chinese or Japanese text are found as words. In a pipe:
    thread, entry, time, role, snippet, separated by tabs.
    """
    world: CliContext = ctx.obj
    if order not in {"best", "newest"}:
        raise UsageError(f"--order {order} is neither best nor newest")
    with world.progress("indexing") as progress:
        page = world.journal.search(
            " ".join(words), order=cast(SearchOrder, order), limit=limit, cursor=cursor or None, progress=progress
        )
    if world.out.is_json:
        world.out.json(hits=page.hits, cursor=page.cursor)
    else:
        _print(world, page.hits)
    if page.cursor and not world.out.is_json and world.out.is_terminal:
        world.out.remark(f"more: --cursor {page.cursor}")
    if not page.hits:
        world.out.remark("nothing found")
        raise typer.Exit(NOT_FOUND)


def _print(world: CliContext, hits: tuple[Hit, ...]) -> None:
    now = datetime.now().astimezone()
    for hit in hits:
        role = role_of(hit.entry)
        if not world.out.is_terminal:
            cells = (hit.thread_id, hit.entry.id, hit.entry.created_at.isoformat(), role, hit.snippet.text)
            world.out.line("\t".join(for_terminal(cell).replace("\t", " ").replace("\n", " ") for cell in cells))
            continue
        address = f"{short(hit.thread_id)}:{short(hit.entry.id)}"
        about = f"{role}, {ago(hit.entry.created_at, now)}  {one_line(hit.title, 60)}"
        world.out.line(f"{world.out.styled(address, 'yellow')}  {world.out.styled(about, 'dim')}")
        world.out.line("    " + _marked(world, hit.snippet))


def _marked(world: CliContext, snippet: Snippet) -> str:
    pieces: list[str] = []
    position = 0
    for start, end in snippet.marks:
        pieces.append(for_terminal(snippet.text[position:start]))
        pieces.append(world.out.styled(for_terminal(snippet.text[start:end]), "match"))
        position = end
    return "".join(pieces) + for_terminal(snippet.text[position:])
