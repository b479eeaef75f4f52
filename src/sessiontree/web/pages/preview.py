"""A preview of an entry: what was asked, the entry itself, and what came of it, beside the hits of a search."""

from __future__ import annotations

from sessiontree.model import Entry, Record, Thread
from sessiontree.render.turns import is_prompt
from sessiontree.web.addresses import entry_url
from sessiontree.web.declare import Page
from sessiontree.web.markup import Html, icon, join, tag
from sessiontree.web.panes.transcript import Transcript, View, articles
from sessiontree.web.site import Visit

__all__ = ["PAGE"]


_BEFORE = 3
_AFTER = 3
_MOST_RESULTS = 20


class PreviewAsked(Record, frozen=True, kw_only=True):
    """One entry of a thread."""

    thread: str
    entry: str


class Preview(Record, frozen=True, kw_only=True):
    """An entry with a few before and after it on its branch; ``around`` are later ones, which may have results of calls."""

    thread: Thread
    entries: tuple[Entry, ...]
    around: tuple[Entry, ...] = ()


async def load(visit: Visit, asked: PreviewAsked) -> Preview:
    """Read an entry and what stands around it."""
    thread = await visit.journal.thread(asked.thread)
    before = await visit.journal.path(thread.id, asked.entry, limit=_BEFORE + 1)
    later = await visit.journal.entries(thread.id, after=asked.entry, limit=_MOST_RESULTS)
    after = _following(before[-1], later)
    shown = (*_since_the_prompt(before), *after[:_AFTER])
    return Preview(thread=thread, entries=shown, around=tuple(after[_AFTER:]))


def _since_the_prompt(path: list[Entry]) -> list[Entry]:
    starts = [at for at, entry in enumerate(path) if is_prompt(entry)]
    return path[starts[-1] :] if starts else path


def _following(entry: Entry, later: list[Entry]) -> list[Entry]:
    """The entries that go on from an entry, along the branch that was written first."""
    found = [entry]
    for one in later:
        if one.parent == found[-1].id:
            found.append(one)
    return found[1:]


def show(visit: Visit, asked: PreviewAsked, found: Preview) -> Html:
    """The title of the thread, a way into it, and the entries."""
    head = tag(
        "div",
        tag("b", found.thread.title or "a thread", class_="cut grow", dir="auto"),
        tag("a", "Open ", icon("right", is_small=True), class_="btn", href=entry_url(found.thread.id, asked.entry)),
        class_="row",
    )
    shown = Transcript(entries=found.entries, around=found.around)
    return join(head, articles(visit, View(thread=found.thread), shown))


PAGE = Page(
    path="/t/{thread}/preview/{entry}",
    about="An entry with what stands before and after it, to look at before one opens the thread.",
    asks=PreviewAsked,
    answer=Preview,
    load=load,
    show=show,
)
