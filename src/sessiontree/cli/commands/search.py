"""The command search."""

from __future__ import annotations

from datetime import datetime

import click

from sessiontree.cli.addresses import short
from sessiontree.cli.context import CliContext
from sessiontree.cli.declare import argument, choice_option, command, count_option
from sessiontree.cli.exit_codes import NOT_FOUND
from sessiontree.cli.render.text import ago, role_of
from sessiontree.model.sanitize import for_terminal, one_line
from sessiontree.search import Hit, SearchOrder, Snippet

__all__ = ["search"]


_FILTERS = """Filters:

\b
  role:user      system, user, assistant or tool
  tool:bash      calls and results of a tool; tool:mcp* for a prefix
  model:gpt      answers of models with this in their name
  file:cli.py    tool calls about files with this in their path
  label:good     the entry with this label
  after:7d       since then; before:2026-01-31 until then, exclusive
  thread:3fa9    all branches that the thread sees; branch:3fa9 only its active path

"""


@command(
    "search",
    notes=_FILTERS,
    examples=[
        "sessiontree search disk full",
        "sessiontree search '\"out of space\" role:tool after:7d'",
        "sessiontree search 'parseConf* -test' --order newest",
        "sessiontree search file:main.py role:assistant --json",
    ],
)
@argument("words", 'Words, "phrases", prefix*, -excluded words and filters.', nargs=-1, required=True)
@count_option("--limit", "-n", default=20, about="Show at most N hits.")
@choice_option("--order", ["best", "newest"], about="best or newest first.")
@click.option("--cursor", default="", help="Continue after a page, with the cursor that it printed.")
def search(cli: CliContext, *, words: tuple[str, ...], limit: int, order: SearchOrder, cursor: str) -> None:
    """Search the text of all entries in all threads. Exits with code 1 if nothing is found.

    Matches parts of identifiers (read_file, readFile) and of Chinese or Japanese text. In a pipe: thread, entry, time,
    role and snippet, separated by tabs.
    """
    with cli.progress("indexing") as progress:
        page = cli.journal.search(" ".join(words), order=order, limit=limit, cursor=cursor or None, progress=progress)
    if cli.out.is_json:
        cli.out.json(hits=page.hits, cursor=page.cursor)
    else:
        _print(cli, page.hits)
        if page.cursor and cli.out.is_terminal:
            cli.out.info(f"more: --cursor {page.cursor}")
    if not page.hits:
        cli.out.info("nothing found")
        raise click.exceptions.Exit(NOT_FOUND)


def _print(cli: CliContext, hits: tuple[Hit, ...]) -> None:
    now = datetime.now().astimezone()
    for hit in hits:
        role = role_of(hit.entry)
        if not cli.out.is_terminal:
            cells = (hit.thread_id, hit.entry.id, hit.entry.created_at.isoformat(), role, hit.snippet.text)
            cli.out.line("\t".join(for_terminal(cell).replace("\t", " ").replace("\n", " ") for cell in cells))
            continue
        address = f"{short(hit.thread_id)}:{short(hit.entry.id)}"
        about = f"{role}, {ago(hit.entry.created_at, now)}  {one_line(hit.title, 60)}"
        cli.out.line(f"{cli.out.styled(address, 'yellow')}  {cli.out.styled(about, 'dim')}")
        cli.out.line("    " + _highlighted(cli, hit.snippet))


def _highlighted(cli: CliContext, snippet: Snippet) -> str:
    pieces: list[str] = []
    position = 0
    for start, end in snippet.marks:
        pieces.append(for_terminal(snippet.text[position:start]))
        pieces.append(cli.out.styled(for_terminal(snippet.text[start:end]), "match"))
        position = end
    return "".join(pieces) + for_terminal(snippet.text[position:])
