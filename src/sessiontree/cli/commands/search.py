"""The command search."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import click

from sessiontree.cli.context import CliContext
from sessiontree.cli.declare import argument, choice_option, command, count_option, given_options
from sessiontree.cli.exit_codes import NOT_FOUND
from sessiontree.cli.output import LISTS
from sessiontree.cli.screen.lines import BOLD, DIM, HIT, ID, NAME, TOOL, USER, Line, beside
from sessiontree.cli.screen.threads import NARROW
from sessiontree.cli.summaries import title
from sessiontree.cli.typed import typed
from sessiontree.model import Compaction, Entry, Thread
from sessiontree.model.sanitize import for_terminal
from sessiontree.render.cells import cell_width, fit, pad
from sessiontree.render.entries import role_of
from sessiontree.render.figures import plural
from sessiontree.render.gists import gist_of
from sessiontree.render.ids import ShortIds
from sessiontree.render.threads import folder_of
from sessiontree.render.times import clock, iso, when
from sessiontree.render.turns import is_prompt
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
  thread:3a19    all branches that the thread sees; branch:3a19 only its active path

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
@click.option("--cursor", default="", help="Continue after a page of --json, with the cursor that it holds.")
def search(cli: CliContext, *, words: tuple[str, ...], limit: int, order: SearchOrder, cursor: str) -> None:
    """Search the text of all entries in all threads. Exits with code 1 if nothing is found.

    Matches parts of identifiers (read_file, readFile) and of Chinese or Japanese text. In a pipe: thread, entry, time,
    role and snippet, separated by tabs.
    """
    with cli.progress("indexing") as progress:
        page = cli.journal.search(" ".join(words), order=order, limit=limit, cursor=cursor or None, progress=progress)
    if cli.out.is_json:
        cli.out.json(hits=page.hits, cursor=page.cursor)
    elif not cli.out.is_terminal:
        for hit in page.hits:
            cli.out.row((hit.thread_id, hit.entry.id, iso(hit.entry.created_at), role_of(hit.entry), hit.snippet.text))
    elif page.hits:
        cli.out.draw(_lines(cli, page.hits, has_more=page.cursor is not None))
        if page.cursor is not None:
            more = f"sessiontree search -n {4 * limit}{given_options('limit')} {typed(' '.join(words))}"
            cli.out.hint(("more:", more))
    if page.unsearched:
        left = plural(page.unsearched, "entry", "entries")
        cli.out.warn(f"{left} not indexed yet and not searched; every search indexes more of them")
    if not page.hits:
        cli.out.info("Nothing found.")
        raise click.exceptions.Exit(NOT_FOUND)


def _lines(cli: CliContext, hits: Sequence[Hit], *, has_more: bool) -> Iterator[Line]:
    """Hits grouped by thread, the best thread first, inside it in order."""
    groups: dict[str, list[Hit]] = {}
    for hit in hits:
        groups.setdefault(hit.thread_id, []).append(hit)
    for thread_id, found in groups.items():
        thread = cli.journal.thread(thread_id)
        ids = cli.entries(thread_id)
        active = {entry.id for entry in cli.journal.path(thread_id)}
        labels = {target: name for name, target in cli.journal.labels(thread_id).items()}
        yield _heading(cli, thread)
        id_width = max(len(ids[hit.entry.id]) for hit in found)
        for hit in sorted(found, key=lambda hit: hit.entry.created_ns):
            yield _hit_line(
                cli, hit, thread, ids, id_width, labels.get(hit.entry.id, ""), is_active=hit.entry.id in active
            )
        yield Line()
    best = hits[0]
    total = f"{len(hits)}{'+' if has_more else ''} {'hit' if len(hits) == 1 else 'hits'}"
    line = Line((f"{total} in {plural(len(groups), 'thread')}", DIM))
    command = cli.out.command(f"sessiontree show {cli.typed(best.thread_id, best.entry.id)}")
    more = Line((" · ", DIM), command, (" opens the best", DIM))
    yield line.extend(more) if line.width + more.width <= cli.out.width else line


def _heading(cli: CliContext, thread: Thread) -> Line:
    width = min(cli.out.width, LISTS)
    is_narrow = width < NARROW
    right = Line((when(thread.updated_at, cli.now, is_short=is_narrow), DIM))
    folder = "" if is_narrow or not folder_of(thread) else f" · {folder_of(thread)}"
    about = Line("  ", (cli.threads[thread.id], ID), (folder, DIM))
    words = fit(title(cli, thread), max(8, width - about.width - right.width - 2))
    return beside(Line((words, BOLD)).extend(about), right, width)


def _hit_line(  # noqa: PLR0917  a row is all of these
    cli: CliContext, hit: Hit, thread: Thread, ids: ShortIds, id_width: int, label: str, *, is_active: bool
) -> Line:
    width = min(cli.out.width, LISTS)
    right = Line()
    if label:
        right.add(f"[{label[:30]}]", NAME)
    elif not is_active:
        right.add("branch" if width >= NARROW else "", DIM)
    if width >= NARROW:
        right.add("  " if right.spans else "").add(clock(hit.entry.created_at, cli.now), DIM)
    line = Line("  ", (pad(ids[hit.entry.id], id_width), ID), "  ")
    line.extend(_who(hit.entry, thread, is_active=is_active))
    return beside(line.extend(_around(hit.snippet, width - line.width - right.width - 2)), right, width)


def _who(entry: Entry, thread: Thread, *, is_active: bool) -> Line:
    """The glyph of who said it, or the tool."""
    message = entry.message
    if is_prompt(entry):
        return Line(("❯ ", USER))
    if message is not None and message.tool_calls and not message.text.strip():
        return Line((f"{gist_of(message.tool_calls[0], None, thread.workspace).name}  ", TOOL))
    if message is not None and message.tool_results:
        return Line((f"{message.tool_results[0].name or 'result'}  ", TOOL))
    if isinstance(entry.payload, Compaction):
        return Line(("≈ ", DIM))
    return Line("● " if is_active else ("○ ", DIM))


def _around(snippet: Snippet, cells: int) -> Line:
    """The words around the first match, with the matches marked."""
    pieces: list[tuple[str, str]] = []
    position = 0
    for start, end in snippet.marks:
        pieces += [(snippet.text[position:start], ""), (snippet.text[start:end], HIT)]
        position = end
    pieces.append((snippet.text[position:], ""))
    clean = [
        (" ".join(for_terminal(text).split()) if style else _spaced(text), style) for text, style in pieces if text
    ]
    before = cell_width(clean[0][0]) if clean and not clean[0][1] else 0
    first = next((cell_width(text) for text, style in clean if style), 0)
    if before and before + first + 8 > cells:
        keep = max(4, min(cells - first - 8, cells // 3))
        clean[0] = ("…" + clean[0][0][-keep:].lstrip(), "")
    return Line(*clean).cut(max(8, cells))


def _spaced(text: str) -> str:
    """A text on one line; a space at its ends stays."""
    words = " ".join(for_terminal(text).split())
    return (" " if text[:1].isspace() else "") + words + (" " if text[-1:].isspace() and words else "")
