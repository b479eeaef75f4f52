"""Look back: what was done and what it cost, by day, model, folder and tool; and how the context of a thread grew."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, time, timedelta

from sessiontree.render.activity import Activity
from sessiontree.render.context_size import TYPES, ContextPoint, context_sizes
from sessiontree.render.figures import plural
from sessiontree.render.look_back import DayFigures, LookBack, Span, days_of_span, figures_of_span
from sessiontree.render.times import short_day
from sessiontree.web.assets import asset_url
from sessiontree.web.declare import Page
from sessiontree.web.frame import page
from sessiontree.web.markup import Html, icon, tag
from sessiontree.web.panes.look_back import (
    Choice,
    LookBackAnswer,
    LookBackAsked,
    calendar_card,
    choice_links,
    context_card,
    days_card,
    look_back_url,
    shares_card,
    times_card,
    tools_card,
    totals,
)
from sessiontree.web.panes.threads import ThreadAsked, load_threads
from sessiontree.web.site import Visit

__all__ = ["PAGE"]


_SPANS: dict[str, tuple[str, int]] = {
    "30d": ("30 days", 30),
    "12w": ("12 weeks", 84),
    "1y": ("Year", 365),
    "all": ("All", 0),
}
_YEAR = timedelta(weeks=53)
_MOST_POINTS = 4_000
_SHOWN_POINTS = 160
_THREADS = 12


async def load(visit: Visit, asked: LookBackAsked) -> LookBackAnswer:
    """Count what is new, and add up what was asked for."""
    counts = visit.site.counts
    await counts.refresh()
    today = visit.now.date()
    figures, year = await counts.ask(lambda activity: _figures(activity, asked, today))
    choices = tuple(Choice(id=row.id, title=row.title) for row in (await load_threads(visit, ThreadAsked())).rows)
    thread = await _chosen(visit, asked, choices)
    start = datetime.combine(figures.first, time(), visit.now.tzinfo).timestamp() * 1e9
    span = Span(first=figures.first, last=today, folder=asked.folder, agent=asked.agent)
    return LookBackAnswer(
        figures=figures,
        year=year,
        threads=sum(one.updated_ns >= start and span.has(today, one.place) for one in counts.threads.values()),
        counted=len(counts.threads),
        is_complete=counts.is_complete,
        folders=tuple(sorted({one.place.folder for one in counts.threads.values() if one.place.folder})),
        agents=tuple(sorted({one.place.agent for one in counts.threads.values() if one.place.agent})),
        thread=thread,
        choices=choices[:_THREADS],
        context=await _context(visit, thread),
    )


def _figures(activity: Activity, asked: LookBackAsked, today: date) -> tuple[LookBack, tuple[DayFigures, ...]]:
    """The figures of the span, and the days of a year for the calendar."""
    span = Span(first=_first(asked, today, activity), last=today, folder=asked.folder, agent=asked.agent)
    year = Span(first=today - _YEAR, last=today, folder=asked.folder, agent=asked.agent)
    figures = figures_of_span(activity, span)
    return figures, days_of_span(activity, year, figures.currency)


def _first(asked: LookBackAsked, today: date, activity: Activity) -> date:
    days = _SPANS[asked.span][1]
    if days:
        return today - timedelta(days=days - 1)
    return min((day for day, _ in activity.days), default=today)


async def _chosen(visit: Visit, asked: LookBackAsked, choices: Sequence[Choice]) -> Choice | None:
    if not asked.thread:
        return choices[0] if choices else None
    known = next((one for one in choices if one.id == asked.thread), None)
    if known is not None:
        return known
    thread = await visit.journal.thread(asked.thread)
    return Choice(id=thread.id, title=thread.title or thread.id)


async def _context(visit: Visit, thread: Choice | None) -> tuple[ContextPoint, ...]:
    """The last turns of a thread; its compactions are never left out."""
    if thread is None:
        return ()
    path = await visit.journal.path(thread.id, limit=_MOST_POINTS, types=TYPES)
    points = context_sizes(path)
    every = -(-len(points) // _SHOWN_POINTS)
    return tuple(point for at, point in enumerate(points) if point.kind != "turn" or at % every == 0)


def show(visit: Visit, asked: LookBackAsked, answer: LookBackAnswer) -> Html:
    """The whole page."""
    figures = answer.figures
    body = tag(
        "main",
        tag("link", rel="stylesheet", href=asset_url("look_back.css")),
        tag("script", type="module", src=asset_url("charts.js")),
        tag(
            "div",
            _head(asked, answer),
            _counting(answer),
            totals(answer),
            tag(
                "div",
                calendar_card(answer),
                days_card(asked, figures),
                shares_card(figures),
                context_card(asked, answer),
                tools_card(figures),
                times_card(figures),
                class_="grid",
            ),
            class_="wrap",
        ),
        class_="page",
        id="content",
    )
    return page(visit, title="Look back", body=body, current="/look-back")


def _head(asked: LookBackAsked, answer: LookBackAnswer) -> Html:
    first, last = answer.figures.first, answer.figures.last
    return tag(
        "div",
        tag("h1", "Look back"),
        choice_links(asked, "span", {name: words for name, (words, _) in _SPANS.items()}, "Span"),
        _filter(asked, "folder", "All folders", answer.folders),
        _filter(asked, "agent", "All agents", answer.agents),
        tag("span", class_="grow"),
        tag("span", f"{_day(first)} to {_day(last)}", class_="dim wide"),
        tag("a", icon("json"), ".json", class_="btn wide", href=look_back_url(asked, "/look-back.json")),
        class_="pt",
    )


def _day(day: date) -> str:
    return f"{short_day(day)} {day.year}"


def _filter(asked: LookBackAsked, name: str, everything: str, values: Sequence[str]) -> Html | None:
    """A menu of links, which works without scripts."""
    chosen = getattr(asked, name)
    if len(values) < 2 and not chosen:
        return None
    rows = [("", everything), *((value, value) for value in values)]
    links = [
        tag("a", words, href=look_back_url(asked, **{name: value}), aria_current=value == chosen or None)
        for value, words in rows
    ]
    return tag(
        "details",
        tag("summary", chosen or everything, icon("down", is_small=True), class_="chip on" if chosen else "chip"),
        tag("div", links, class_="menu"),
        class_="pick",
    )


def _counting(answer: LookBackAnswer) -> Html | None:
    if answer.is_complete:
        return None
    said = f"Counting: {plural(answer.counted, 'thread')} so far, the last changed first."
    return tag("p", said, " ", tag("a", "Count on", href="", class_="u"), class_="live counting", data_counting=True)


PAGE = Page(
    path="/look-back",
    about="Turns, tokens, cost, tools and failures of a span of days, and the context of a thread over time.",
    asks=LookBackAsked,
    answer=LookBackAnswer,
    load=load,
    show=show,
)
