"""What a page about a thread reads: the branch to show, a window of its path, its branch points and its prompts."""

from __future__ import annotations

from itertools import islice

from sessiontree.model import Entry, Record, Thread
from sessiontree.model.prices import PRICES, cost_of, sum_of
from sessiontree.render.entries import words_of
from sessiontree.render.turns import Amount, amount_of
from sessiontree.web.outline import Node, Outline
from sessiontree.web.panes.transcript import Siblings, Transcript
from sessiontree.web.panes.tree import siblings_of
from sessiontree.web.site import Visit

__all__ = ["PAGE", "Crumb", "Prompt", "cost_words", "crumbs_of", "last_window", "prompts_of", "transcript_of"]


PAGE = 120
"""How many entries of a path are read at a time."""
_AROUND = 30
_MOST_PROMPTS = 400
_MOST_CRUMBS = 3
_NAME_LENGTH = 80


class Prompt(Record, frozen=True, kw_only=True):
    """A prompt in the outline of a branch; ``at`` is its place on the path."""

    id: str
    words: str
    at: int
    created_ns: int
    is_failed: bool = False


class Crumb(Record, frozen=True, kw_only=True):
    """A branch point on the way to the leaf, and the branch that was taken there."""

    id: str
    words: str
    siblings: Siblings


async def transcript_of(
    visit: Visit, thread: Thread, outline: Outline, leaf: str | None, *, start: int, count: int = PAGE
) -> Transcript:
    """Read a window of the path to a leaf, with a few entries around it."""
    total = outline.length(leaf)
    start = max(0, min(start, total - 1))
    end = min(start + count, total)
    first, last = max(0, start - _AROUND), min(end + _AROUND, total)
    path = outline.window(leaf, first, last)
    if not path:
        return Transcript(leaf=leaf)
    entries = await visit.journal.path(thread.id, path[-1].id, limit=last - first)
    shown = tuple(entries[start - first : end - first])
    return Transcript(
        leaf=leaf,
        total=total,
        start=start,
        entries=shown,
        around=(*entries[: start - first], *entries[end - first :]),
        siblings=siblings_of(outline, path[start - first : end - first]),
    )


async def last_window(visit: Visit, thread: Thread) -> Transcript:
    """Read the end of the active path, without an outline."""
    entries: list[Entry] = await visit.journal.path(thread.id, limit=PAGE + _AROUND)
    shown = entries[-PAGE:]
    return Transcript(
        leaf=thread.leaf,
        total=thread.entries,
        start=thread.entries - len(shown),
        entries=tuple(shown),
        around=tuple(entries[: len(entries) - len(shown)]),
    )


def prompts_of(outline: Outline, leaf: str | None) -> tuple[Prompt, ...]:
    """Return the prompts of a branch, the last ones if there are very many."""
    return outline.kept(("prompts", leaf), lambda: _prompts(outline, leaf))


def _prompts(outline: Outline, leaf: str | None) -> tuple[Prompt, ...]:
    found: list[Prompt] = []
    is_failed = False
    for node in outline.upward(leaf):
        is_failed = is_failed or node.id in outline.failed
        if node.kind == "prompt":
            found.append(
                Prompt(id=node.id, words=node.words, at=node.place, created_ns=node.created_ns, is_failed=is_failed)
            )
            is_failed = False
        if len(found) == _MOST_PROMPTS:
            break
    return tuple(reversed(found))


async def crumbs_of(visit: Visit, thread: Thread, outline: Outline, leaf: str | None) -> tuple[Crumb, ...]:
    """Return the last branch points on the way to a leaf."""
    points = outline.kept(("points", leaf), lambda: _points(outline, leaf))
    siblings = siblings_of(outline, points)
    found = await visit.journal.find_entries((node.id for node in points), thread_id=thread.id)
    return tuple(
        Crumb(id=one.id, words=words_of(one, thread.workspace, _NAME_LENGTH), siblings=siblings[one.id])
        for one in found
    )


def _points(outline: Outline, leaf: str | None) -> list[Node]:
    families = outline.families
    points = (node for node in outline.upward(leaf) if node.is_shown and len(families.family(node.id)) > 1)
    return list(islice(points, _MOST_CRUMBS))[::-1]


def cost_words(outline: Outline) -> str:
    """Return what the requests of a thread cost; "" if that is unknown."""
    if not outline.spent:
        return ""
    cost: Amount = outline.kept(("cost",), lambda: _cost(outline))
    return cost.words


def _cost(outline: Outline) -> Amount:
    return amount_of(sum_of(cost_of(usage, model, PRICES) for usage, model in outline.spent))
