"""The files that a branch changed, below the prompts in its outline."""

from __future__ import annotations

import asyncio
from pathlib import PurePath

from sessiontree.model import Record
from sessiontree.render.steps import figures_of
from sessiontree.web.addresses import with_query
from sessiontree.web.declare import Page
from sessiontree.web.markup import Html, join, tag
from sessiontree.web.site import Visit

__all__ = ["PAGE"]


_MOST_ENTRIES = 4_000
_MOST_FILES = 50


class FilesAsked(Record, frozen=True, kw_only=True):
    """The branch that leads through ``at``, or to the head."""

    thread: str
    at: str = ""


class Edited(Record, frozen=True, kw_only=True):
    """A file, and the lines that were added and removed."""

    path: str
    added: int = 0
    removed: int = 0


class FilesShown(Record, frozen=True, kw_only=True):
    """What tool calls changed on the branch: in its last 4,000 entries if it is longer, and the last 50 files."""

    files: tuple[Edited, ...] = ()


async def load(visit: Visit, asked: FilesAsked) -> FilesShown:
    """Read the branch, and sum up its edits."""
    thread = await visit.journal.thread(asked.thread)
    outline = await visit.site.outlines.of(thread)
    leaf = outline.leaf_for(asked.at or None, thread.leaf)
    entries = await visit.journal.path(thread.id, leaf, limit=_MOST_ENTRIES) if leaf else []
    figures = await asyncio.to_thread(figures_of, entries, thread.workspace)
    files = [Edited(path=path, added=more, removed=less) for path, (more, less) in figures.files.items()]
    return FilesShown(files=tuple(files[-_MOST_FILES:]))


def show(_visit: Visit, asked: FilesAsked, found: FilesShown) -> Html:
    """Each file with its lines; a click finds what was said of it in the thread."""
    if not found.files:
        return Html("")
    links = [
        tag(
            "a",
            tag("span", PurePath(one.path).name, class_="mono cut grow"),
            tag("span", f"+{one.added}", class_="ok"),
            tag("span", f"−{one.removed}", class_="bad"),
            href=with_query("/search", q=f'file:"{PurePath(one.path).name}" thread:"{asked.thread}"'),
            title=one.path,
            class_="row",
        )
        for one in found.files
    ]
    return join(tag("h2", "Files in this branch", class_="h"), links)


PAGE = Page(
    path="/t/{thread}/files",
    about="The files that the tool calls of a branch changed, with the lines that were added and removed.",
    asks=FilesAsked,
    answer=FilesShown,
    load=load,
    show=show,
)
