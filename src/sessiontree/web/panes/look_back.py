"""The cards of the page that looks back: each a chart or a table, with its numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import date, timedelta
from typing import Literal

from sessiontree.model import Record
from sessiontree.render.context_size import ContextPoint
from sessiontree.render.figures import count, duration, money, percent, plural
from sessiontree.render.look_back import DayFigures, LookBack, Share
from sessiontree.render.times import short_day
from sessiontree.web.addresses import entry_url, thread_url, with_query
from sessiontree.web.charts import Series, bar, calendar, columns, heat_limits, legend_box, stacked_days, steps
from sessiontree.web.markup import Child, Html, icon, join, tag

__all__ = [
    "Choice",
    "LookBackAnswer",
    "LookBackAsked",
    "calendar_card",
    "choice_links",
    "context_card",
    "days_card",
    "look_back_url",
    "shares_card",
    "times_card",
    "tools_card",
    "totals",
]


_MEASURES = {"cost": "Cost", "tokens": "Tokens", "turns": "Turns"}
_SHADES = 3
"""How many models are told apart in a chart; the rest are one."""

_MOST_ROWS = 8
_MOST_BARS = 120
_OFTEN = 0.05
"""The share of failed calls from which a tool stands out."""


class LookBackAsked(Record, frozen=True, kw_only=True):
    """The span, the folder or program that counts, what the bars measure, and the thread whose context is drawn."""

    span: Literal["30d", "12w", "1y", "all"] = "12w"
    by: Literal["cost", "tokens", "turns"] = "cost"
    folder: str = ""
    agent: str = ""
    thread: str = ""


class Choice(Record, frozen=True, kw_only=True):
    """A thread whose context can be drawn."""

    id: str
    title: str


class LookBackAnswer(Record, frozen=True, kw_only=True):
    """The figures. Until ``is_complete``, those of the threads that were counted so far."""

    figures: LookBack
    year: tuple[DayFigures, ...]
    threads: int
    counted: int
    is_complete: bool
    folders: tuple[str, ...] = ()
    agents: tuple[str, ...] = ()
    thread: Choice | None = None
    choices: tuple[Choice, ...] = ()
    context: tuple[ContextPoint, ...] = ()


def look_back_url(asked: LookBackAsked, path: str = "/look-back", **changes: str) -> str:
    names = ("span", "by", "folder", "agent", "thread")
    given = {name: changes.get(name, getattr(asked, name)) for name in names}
    default = {name: getattr(LookBackAsked(), name) for name in names}
    return with_query(path, **{name: value for name, value in given.items() if value != default[name]})


def choice_links(asked: LookBackAsked, name: str, words: dict[str, str], label: str) -> Html:
    """Links side by side, of which one is current."""
    links = (
        tag("a", said, href=look_back_url(asked, **{name: value}), aria_current=getattr(asked, name) == value or None)
        for value, said in words.items()
    )
    return tag("span", links, class_="seg", role="group", aria_label=label)


def totals(answer: LookBackAnswer) -> Html:
    figures = answer.figures
    days = (figures.last - figures.first).days + 1
    cost = money(figures.cost, figures.currency, is_estimate=figures.is_estimate)
    a_day = "" if figures.cost is None else f"{money(figures.cost / days, figures.currency)} a day"
    unpriced = f"{count(figures.unpriced_tokens)} tokens unpriced" if figures.unpriced_tokens else a_day
    rows = (
        ("Cost", cost, unpriced),
        ("Tokens", count(figures.tokens), f"{percent(figures.cached_tokens, figures.tokens)} from the cache"),
        ("Threads", count(answer.threads), plural(figures.entries, "entry", "entries")),
        (
            "Turns",
            count(figures.turns),
            f"median {duration(figures.median_seconds)}, p95 {duration(figures.p95_seconds)}",
        ),
        ("Tool calls", count(figures.calls), f"{percent(figures.failures, figures.calls)} failed"),
        ("Compactions", count(figures.compactions), f"{count(figures.reverted)} taken back"),
    )
    return tag(
        "dl",
        (tag("div", tag("dt", name), tag("dd", value, tag("small", note)), class_="kpi") for name, value, note in rows),
        class_="kpis",
    )


def _card(title: str, about: str, wide: str, *drawn: Child, side: Child = None, numbers: Child = None) -> Html:
    return tag(
        "section",
        tag("header", tag("h2", title), tag("p", about), side),
        tag("div", *drawn, class_="cv"),
        tag(
            "details",
            tag("summary", icon("right", is_small=True), "Numbers"),
            tag("div", numbers, tabindex="0"),
            class_="num",
        )
        if numbers
        else None,
        class_=f"card {wide}",
    )


def _table(head: Sequence[str], rows: Iterable[Sequence[Child]]) -> Html:
    return tag(
        "table",
        tag("thead", tag("tr", (tag("th", name, scope="col") for name in head))),
        tag("tbody", (tag("tr", (tag("td", cell) for cell in row)) for row in rows)),
        class_="bars plain-numbers",
    )


def calendar_card(answer: LookBackAnswer) -> Html:
    days = {one.day: one.turns for one in answer.year}
    low, _, high = heat_limits(days.values())
    legend = tag(
        "div",
        tag("span", "none"),
        (legend_box(f"h{shade}") for shade in range(5)),
        tag("span", f"{high:,} or more"),
        class_="legend",
        title=f"The steps begin at 1, {low:,} and {high:,} turns",
    )
    rows = [
        (tag("a", f"{one.day}", href=_prompts_on(one.day), class_="u"), one.turns, one.failed_turns, one.entries)
        for one in reversed(answer.year)
        if one.entries
    ]
    drawn = calendar(days, answer.figures.last, "turns", _prompts_on)
    return _card(
        "Days",
        "turns a day, last 12 months",
        "w12",
        tag("div", drawn, class_="wide-chart"),
        side=legend,
        numbers=_table(("Day", "Turns", "Failed", "Entries"), rows),
    )


def _prompts_on(day: date) -> str:
    return with_query("/search", q=f"role:user after:{day} before:{day + timedelta(days=1)}")


def days_card(asked: LookBackAsked, figures: LookBack) -> Html:
    """Return the bars of the days; of a year those of its weeks."""
    series, said = _series(asked, figures)
    days = [figures.first + timedelta(days=at) for at in range((figures.last - figures.first).days + 1)]
    is_weekly = len(days) > _MOST_BARS
    if is_weekly:
        series = [_weekly(one) for one in series]
        days = sorted({_monday(day) for day in days})
    span = "week" if is_weekly else "day"
    label = f"{_MEASURES[asked.by]} a {span}, {short_day(figures.first)} to {short_day(figures.last)}"
    legend = tag(
        "div",
        (tag("span", legend_box(f"s{shade}"), one.name) for shade, one in enumerate(series) if asked.by != "turns"),
        class_="legend",
    )
    rows = [
        (f"{day}", *(said(one.values.get(day, 0.0)) for one in series))
        for day in reversed(days)
        if any(one.values.get(day) for one in series)
    ]
    return _card(
        f"{span.title()} by {span}",
        "" if asked.by == "turns" else "by model",
        "w8",
        tag("div", stacked_days(series, days, said, label), class_="wide-chart"),
        side=join(choice_links(asked, "by", _MEASURES, "Measure"), legend),
        numbers=_table((f"{span.title()}", *(one.name for one in series)), rows),
    )


def _weekly(series: Series) -> Series:
    values: dict[date, float] = {}
    for day, value in series.values.items():
        values[_monday(day)] = values.get(_monday(day), 0.0) + value
    return Series(name=series.name, values=values)


def _monday(day: date) -> date:
    return day - timedelta(days=day.weekday())


def _series(asked: LookBackAsked, figures: LookBack) -> tuple[list[Series], Callable[[float], str]]:
    """The parts of the bars: the models that cost or took most, and the others as one."""
    if asked.by == "turns":
        return [Series(name="turns", values={one.day: float(one.turns) for one in figures.days})], _whole
    is_cost = asked.by == "cost"
    ranked = sorted(figures.models, key=lambda one: -((one.cost or 0.0) if is_cost else one.tokens))
    names = [one.name for one in ranked if not is_cost or one.cost is not None]
    shown = names if len(names) <= _SHADES else names[: _SHADES - 1]
    values: dict[str, dict[date, float]] = {name: {} for name in shown}
    for one in figures.model_days:
        name = one.model if one.model in values else "others"
        amount = (one.cost or 0.0) if is_cost else float(one.tokens)
        if amount:
            row = values.setdefault(name, {})
            row[one.day] = row.get(one.day, 0.0) + amount
    found = [Series(name=_model(name), values=row) for name, row in values.items()]
    return found, (lambda value: money(value, figures.currency)) if is_cost else _whole


def _whole(value: float) -> str:
    return count(round(value))


def _model(name: str) -> str:
    return name or "no model named"


def shares_card(figures: LookBack) -> Html:
    folders = [(one.name or "no folder", one) for one in figures.folders]
    return _card(
        "Models",
        "cost and tokens",
        "w4",
        _shares("Model", [(_model(one.name), one) for one in figures.models], figures.currency),
        tag("h3", "Folders", class_="subh"),
        _shares("Folder", folders, figures.currency),
    )


def _shares(head: str, rows: Sequence[tuple[str, Share]], currency: str) -> Html:
    shown = rows[:_MOST_ROWS]
    by_cost = any(one.cost for _, one in shown)
    most = max(((one.cost or 0.0) if by_cost else float(one.tokens) for _, one in shown), default=0.0)
    body = (
        tag(
            "tr",
            tag("td", name, class_="cut", title=name),
            tag("td", bar((one.cost or 0.0) if by_cost else one.tokens, most), class_="b"),
            tag("td", "no price", class_="dim")
            if one.cost is None
            else tag("td", money(one.cost, currency, is_estimate=one.is_estimate)),
            tag("td", count(one.tokens), class_="dim"),
        )
        for name, one in shown
    )
    columns_ = (tag("th", head), tag("th", tag("span", "Share", class_="vh")), tag("th", "Cost"), tag("th", "Tokens"))
    more = tag("p", f"and {len(rows) - len(shown)} more in the .json", class_="dim") if len(rows) > len(shown) else None
    nothing = tag("p", "No provider reported usage in these days.", class_="dim")
    return (
        join(tag("table", tag("thead", tag("tr", columns_)), tag("tbody", body), class_="bars"), more)
        if rows
        else nothing
    )


def context_card(asked: LookBackAsked, answer: LookBackAnswer) -> Html | None:
    thread = answer.thread
    if thread is None:
        return None
    points = answer.context
    compactions = sum(one.kind == "compaction" for one in points)
    failed = sum(one.kind == "failed" for one in points)
    label = (
        f"Context size of {thread.title} over {plural(len(points) - compactions, 'turn')}; "
        f"{plural(compactions, 'compaction')}, {plural(failed, 'failed turn')}"
    )
    menu = tag(
        "details",
        tag("summary", "another thread", icon("down", is_small=True), class_="chip"),
        tag(
            "div",
            (tag("a", one.title, href=look_back_url(asked, thread=one.id)) for one in answer.choices),
            class_="menu",
        ),
        class_="pick",
    )
    rows = [
        (
            tag("a", f"turn {one.turn}", href=entry_url(thread.id, one.entry_id), class_="u"),
            f"{one.tokens:,}",
            f"compacted from {one.tokens_before:,}" if one.kind == "compaction" else one.kind.replace("turn", ""),
        )
        for one in points
    ]
    nothing = tag("p", "No provider reported how large this context was.", class_="dim")
    return _card(
        "Context of a thread over time",
        join(tag("a", thread.title, href=thread_url(thread.id), class_="u"), " · tokens sent with each turn"),
        "w12",
        tag("div", steps(points, label), class_="wide-chart") if points else nothing,
        side=join(menu, _context_legend()) if points else menu,
        numbers=_table(("Turn", "Tokens", ""), rows) if points else None,
    )


def _context_legend() -> Html:
    zig = tag("svg", tag("path", d="M0 8l3-4 3 4 3-4 3 4", class_="zig"), viewBox="0 0 12 12", aria_hidden=True)
    cross = tag("svg", tag("path", d="M3 3l6 6M9 3l-6 6", class_="fail"), viewBox="0 0 12 12", aria_hidden=True)
    return tag("div", tag("span", zig, "compaction"), tag("span", cross, "failed turn"), class_="legend")


def tools_card(figures: LookBack) -> Html:
    shown = figures.tools[:_MOST_ROWS]
    most = max((one.calls for one in shown), default=0)
    body = (
        tag(
            "tr",
            tag("td", one.name, class_="cut", title=one.name),
            tag("td", bar(one.calls, most), class_="b"),
            tag("td", f"{one.calls:,}"),
            tag("td", count(one.tokens, is_estimate=True), class_="dim o"),
            tag("td", icon("cross", is_small=True), percent(one.failures, one.calls), class_="bad")
            if one.failures > _OFTEN * one.calls
            else tag("td", percent(one.failures, one.calls), class_="dim"),
            tag("td", duration(one.median_seconds), class_="dim o"),
            tag("td", duration(one.p95_seconds), class_="dim o"),
        )
        for one in shown
    )
    head = (
        tag("th", "Tool"), tag("th", tag("span", "Share", class_="vh")), tag("th", "Calls"), tag("th", "Tokens", class_="o"),
        tag("th", "Failed"), tag("th", "p50", class_="o"), tag("th", "p95", class_="o"),
    )  # fmt: skip
    table = tag("table", tag("thead", tag("tr", head)), tag("tbody", body), class_="bars many")
    rest = figures.tools[_MOST_ROWS:]
    more = f"and {plural(sum(one.calls for one in rest), 'call')} of {plural(len(rest), 'other tool')}"
    nothing = tag("p", "No tool was called in these days.", class_="dim")
    return _card(
        "Tools",
        "calls, failures, time",
        "w7",
        table if shown else nothing,
        tag("p", more, class_="dim") if rest else None,
    )


def times_card(figures: LookBack) -> Html:
    rows = [(_limit(one.up_to_seconds), one.turns) for one in figures.turn_times]
    total = sum(number for _, number in rows)
    median = figures.median_seconds
    limits = [one.up_to_seconds for one in figures.turn_times]
    strong = next((at for at, limit in enumerate(limits) if limit is None or median <= limit), 0)
    about = f"{plural(total, 'turn')}, median {duration(median)} in the filled bar"
    label = f"Turn times. Median {duration(median)}, 95 percent within {duration(figures.p95_seconds)}"
    drawn = columns(rows, strong, label, lambda name, number: f"{name}: {plural(number, 'turn')}")
    return _card(
        "How long turns take",
        about if total else "",
        "w5",
        drawn if total else tag("p", "No turn was answered in these days.", class_="dim"),
    )


def _limit(seconds: float | None) -> str:
    if seconds is None:
        return "longer"
    return f"≤ {seconds:.0f} s" if seconds < 60 else f"≤ {seconds / 60:.0f} m"
