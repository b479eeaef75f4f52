"""What threads can be filtered by: the folders, tools, models, tags and days that there are."""

from __future__ import annotations

import time
from collections import Counter
from typing import Literal

from sessiontree.model import Record
from sessiontree.render.threads import tool_of
from sessiontree.render.times import moment_at
from sessiontree.web.addresses import with_query
from sessiontree.web.declare import Page
from sessiontree.web.markup import Html, tag
from sessiontree.web.panes.threads import FACETS
from sessiontree.web.site import Site, Visit

__all__ = ["PAGE"]


FacetName = Literal["folder", "tool", "model", "tag", "day"]

_MOST = 30
_PAGE = 1_000
_MOST_THREADS = 20_000
_FRESH_SECONDS = 30.0


class FacetAsked(Record, frozen=True, kw_only=True):
    """Which values to count."""

    name: FacetName


class Facet(Record, frozen=True, kw_only=True):
    """The values of the last threads: the most common first, and the newest day first."""

    name: FacetName
    values: dict[str, int] = {}


class _Counts:
    """Counted at most twice a minute: all threads are read for it."""

    def __init__(self) -> None:
        self.at = float("-inf")
        self.found: dict[str, Counter[str]] = {}


async def load(visit: Visit, asked: FacetAsked) -> Facet:
    """Count the values."""
    counts = visit.site.kept(_Counts)
    if time.monotonic() - counts.at > _FRESH_SECONDS:
        counts.found = await _count(visit.site)
        counts.at = time.monotonic()
    found = counts.found[asked.name]
    values = sorted(found.items(), reverse=True) if asked.name == "day" else found.most_common()
    return Facet(name=asked.name, values=dict(values[:_MOST]))


async def _count(site: Site) -> dict[str, Counter[str]]:
    found: dict[str, Counter[str]] = {name: Counter() for name in FACETS}
    now = site.now()
    number = 0
    async for thread in site.journal.iter_threads(limit=_PAGE, is_empty=False):
        found["folder"].update([thread.workspace] if thread.workspace else [])
        found["model"].update([thread.model] if thread.model else [])
        found["tag"].update(thread.tags)
        found["tool"].update([tool_of(thread)] if tool_of(thread) else [])
        found["day"].update([str(moment_at(thread.updated_ns, now).date())])
        number += 1
        if number >= _MOST_THREADS:
            break
    return found


def show(_visit: Visit, asked: FacetAsked, facet: Facet) -> Html:
    """The values as links."""
    if not facet.values:
        return tag("p", f"No thread has a {asked.name}.", class_="nothing")
    rows = [
        tag(
            "a",
            tag("span", value.rstrip("/").rsplit("/", 1)[-1] if asked.name == "folder" else value, class_="cut grow"),
            tag("span", count, class_="dim"),
            href=with_query("/", **{asked.name: value}),
            class_="row opt",
            title=value,
        )
        for value, count in facet.values.items()
    ]
    return tag("div", rows, class_="menu")


PAGE = Page(
    path="/facets/{name}",
    about="The folders, tools, models, tags or days of the last threads.",
    asks=FacetAsked,
    answer=Facet,
    load=load,
    show=show,
)
