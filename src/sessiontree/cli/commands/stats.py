"""The command stats."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date

import click

from sessiontree.cli.addresses import resolve_thread
from sessiontree.cli.context import CliContext
from sessiontree.cli.declare import argument, command, given_options
from sessiontree.cli.screen.charts import bars, beside_each_other, heatmap
from sessiontree.cli.screen.lines import BOLD, DIM, FAILURE, Line, paragraph
from sessiontree.cli.screen.threads import NARROW
from sessiontree.cli.summaries import count_all, left_out, title
from sessiontree.cli.tally import Totals, count_entries
from sessiontree.cli.times import nanoseconds
from sessiontree.model import Thread
from sessiontree.render.cells import cell_width, pad
from sessiontree.render.figures import count, money, money_column, percent
from sessiontree.render.times import moment_at, short_day

__all__ = ["stats"]


_MOST_ROWS = 8
_TWO_FROM = 90
_FOUR_FROM = 150


@command(
    "stats",
    examples=["sessiontree stats", "sessiontree stats @", "sessiontree stats --since 30d --json"],
)
@argument("thread", "The thread; if omitted, the whole store.", required=False)
@click.option(
    "--since", default="", metavar="TIME", help="Count only entries since then: a date, or an age such as 30d."
)
def stats(cli: CliContext, *, thread: str | None, since: str) -> None:
    """Count threads, prompts, steps, tokens and cost; by day, tool, model and folder.

    Tokens are what the providers counted. Where they reported no cost, it is estimated from list prices.
    """
    start = nanoseconds(cli, "--since", since) if since else 0
    one = resolve_thread(cli, thread) if thread else None
    threads = [one] if one else list(cli.journal.iter_threads(is_archived=None, limit=1000))
    totals = count_entries(cli, threads, start, is_whole_store=one is None)
    if cli.out.is_json:
        cli.out.json(stats=totals)
    elif not cli.out.is_terminal:
        _print_rows(cli, totals)
    else:
        cli.out.draw(_lines(cli, totals, one, start))
        if one is None and threads:
            newest = max(threads, key=lambda thread: thread.updated_ns)
            other = ("of all time:", "sessiontree stats") if since else ("of a week:", "sessiontree stats --since 7d")
            cli.out.hint(("of one thread:", f"sessiontree stats{given_options()} {cli.typed(newest.id)}"), other)


def _print_rows(cli: CliContext, totals: Totals) -> None:
    for name, value in (
        ("threads", totals.threads), ("entries", totals.entries), ("messages", totals.messages),
        ("prompts", totals.prompts), ("tokens", totals.tokens), ("tokens in", totals.input_tokens),
        ("tokens out", totals.output_tokens), ("tokens from cache", totals.cached_tokens),
    ):  # fmt: skip
        cli.out.row((name, value))
    for currency, amount in totals.cost.items():
        cli.out.row(("cost", f"{amount:.6f}", currency))
    for currency, amount in totals.estimated_cost.items():
        cli.out.row(("cost, estimated", f"{amount:.6f}", currency))
    for name, tool in totals.steps.items():
        cli.out.row(("tool", name, tool.calls, tool.failures))
    for model, number in totals.models.items():
        cli.out.row(("model", model, number, f"{totals.model_costs.get(model, 0.0):.6f}"))
    for day, number in totals.days.items():
        cli.out.row(("day", day, number))


def _lines(cli: CliContext, totals: Totals, thread: Thread | None, start: int) -> Iterator[Line]:
    width = cli.out.width
    yield from _head(cli, totals, thread, start)
    yield from _figures(totals, width)
    yield from _explanation(totals, width)
    yield Line()
    blocks = [block for block in _blocks(cli, totals, width) if len(block) > 1]
    columns = 4 if width >= _FOUR_FROM else 2 if width >= _TWO_FROM else 1
    for at in range(0, len(blocks), columns):
        row = blocks[at : at + columns]
        padded = [*row, *([[]] * (columns - len(row)))] if columns > 1 else row
        yield from beside_each_other(padded, width, gap=4 if columns == 4 else 6)
        yield Line()


def _head(cli: CliContext, totals: Totals, thread: Thread | None, start: int) -> Iterator[Line]:
    days = [date.fromisoformat(day) for day in totals.days]
    period = f"Since {short_day(moment_at(start, cli.now).date())}" if start else "All time"
    scope = (
        f"all threads{left_out(cli) * (totals.threads == count_all(cli))}"
        if thread is None
        else f"{cli.threads[thread.id]} {title(cli, thread)}"
    )
    ends = list(dict.fromkeys(f"{short_day(day)} {day.year}" for day in (days[:1] + days[-1:])))
    span = f"{' – '.join(ends)} · " if ends else ""
    line = Line((period, BOLD))
    about = f"  {span}{scope}"
    yield line.add(about if cli.out.width >= NARROW or thread is not None else f"  {scope}", DIM).cut(cli.out.width)


def _figures(totals: Totals, width: int) -> Iterator[Line]:
    calls = sum(tool.calls for tool in totals.steps.values())
    failures = sum(tool.failures for tool in totals.steps.values())
    total = _total_cost(totals)
    cells = [
        (count(totals.threads), "thread" if totals.threads == 1 else "threads"),
        (count(totals.entries), "entries"),
        (count(totals.prompts), "prompts"),
        (count(totals.tokens), "tokens"),
        (total, "cost"),
        (percent(failures, calls), "failed steps"),
    ]
    texts = [f"{number} {word}" for number, word in cells]
    if sum(map(cell_width, texts)) + 4 * 5 <= width:
        yield _figure_line(cells, [0] * len(cells))
        return
    columns = 3 if width >= NARROW else 2
    widths = [max(cell_width(cells[at][0]) for at in range(column, 6, columns)) for column in range(columns)]
    words = [max(cell_width(cells[at][1]) for at in range(column, 6, columns)) for column in range(columns)]
    for row in range(0, 6, columns):
        yield _figure_line(cells[row : row + columns], widths, words).cut(width)


def _figure_line(cells: list[tuple[str, str]], widths: list[int], words: list[int] | None = None) -> Line:
    line = Line()
    for number, (value, word) in enumerate(cells):
        is_bad = word == "failed steps" and value.rstrip("%").replace(".", "").isdigit() and float(value[:-1]) >= 10
        line.add(pad(value, widths[number], is_right=True), FAILURE if is_bad else BOLD)
        is_last = number == len(cells) - 1
        line.add(" " + (pad(word, words[number]) if words else word) + ("" if is_last else "    "), DIM)
    return line


def _total_cost(totals: Totals) -> str:
    amounts: dict[str, float] = {}
    for part in (totals.cost, totals.estimated_cost):
        for currency, amount in part.items():
            amounts[currency] = amounts.get(currency, 0.0) + amount
    if not amounts:
        return money(None)
    currency = max(amounts, key=lambda name: amounts[name])
    return money(amounts[currency], currency, is_estimate=not totals.cost)


def _explanation(totals: Totals, width: int) -> Iterator[Line]:
    if width < NARROW or not totals.tokens:
        return
    cached = percent(totals.cached_tokens, totals.tokens)
    words = f"tokens of all requests, as the providers counted them; {cached} were read from a cache"
    estimated = sum(totals.estimated_cost.values())
    if estimated:
        words += f"; {money(estimated)} of the cost is estimated from list prices"
    yield from (Line((line.plain, DIM)) for line in paragraph(words, min(width, 100)))


def _blocks(cli: CliContext, totals: Totals, width: int) -> Iterator[list[Line]]:
    columns = 4 if width >= _FOUR_FROM else 2 if width >= _TWO_FROM else 1
    room = (width - 6 * (columns - 1)) // columns
    days = {date.fromisoformat(day): number for day, number in totals.days.items()}
    yield heatmap(days, cli.now.date(), "Entries a day")
    tools = list(totals.steps.items())[:_MOST_ROWS]
    yield bars(
        "Tools", [(name, count(one.calls), one.calls, one.failures / max(1, one.calls)) for name, one in tools], room
    )
    yield bars("Models", _cost_rows({name or "unnamed": cost for name, cost in totals.model_costs.items()}), room)
    yield bars("Folders", _cost_rows({name or "no folder": cost for name, cost in totals.folder_costs.items()}), room)


def _cost_rows(costs: dict[str, float]) -> list[tuple[str, str, float, float]]:
    shown = list(costs.items())[:_MOST_ROWS]
    numbers = money_column([(amount, "USD", False) for _, amount in shown])
    return [(name, number, amount, 0.0) for (name, amount), number in zip(shown, numbers, strict=True)]
