"""More threads: the next page of the list, or the threads that a filter leaves; a part of a page, without its frame."""

from __future__ import annotations

from sessiontree.web.declare import Page
from sessiontree.web.markup import Html
from sessiontree.web.panes.threads import ThreadAsked, ThreadList, load_threads, thread_rows
from sessiontree.web.site import Visit

__all__ = ["PAGE"]


def show(visit: Visit, _asked: ThreadAsked, threads: ThreadList) -> Html:
    """The rows alone."""
    return thread_rows(visit, threads)


PAGE = Page(
    path="/threads",
    about="One page of threads, the last changed first.",
    asks=ThreadAsked,
    answer=ThreadList,
    load=load_threads,
    show=show,
)
