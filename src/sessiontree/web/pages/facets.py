"""What threads can be filtered by: the folders, models and tags that there are."""

from __future__ import annotations

import time
from collections import Counter
from typing import Literal

from sessiontree.model import Record
from sessiontree.web.addresses import with_query
from sessiontree.web.declare import Page
from sessiontree.web.markup import Html, tag
from sessiontree.web.site import Site, Visit

__all__ = ["PAGE"]


FacetName = Literal["folder", "model", "tag"]

_MOST = 30
_PAGE = 1_000
_MOST_THREADS = 20_000
_FRESH_SECONDS = 30.0


class FacetAsked(Record, frozen=True, kw_only=True):
    """Which values to count."""

    name: FacetName


class Facet(Record, frozen=True, kw_only=True):
    """The values of the last threads, the most common first."""

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
    return Facet(name=asked.name, values=dict(counts.found[asked.name].most_common(_MOST)))


async def _count(site: Site) -> dict[str, Counter[str]]:
    found: dict[str, Counter[str]] = {"folder": Counter(), "model": Counter(), "tag": Counter()}
    number = 0
    async for thread in site.journal.iter_threads(limit=_PAGE, is_empty=False):
        found["folder"].update([thread.workspace] if thread.workspace else [])
        found["model"].update([thread.model] if thread.model else [])
        found["tag"].update(thread.tags)
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
    about="The folders, models or tags of the last threads.",
    asks=FacetAsked,
    answer=Facet,
    load=load,
    show=show,
)
