"""The first page: all threads, and what to do next."""

from __future__ import annotations

from sessiontree.model import Record
from sessiontree.web.declare import Page
from sessiontree.web.frame import page
from sessiontree.web.markup import Html, tag
from sessiontree.web.panes.threads import ThreadAsked, ThreadList, load_threads, threads_pane
from sessiontree.web.site import Visit

__all__ = ["PAGE"]


class Home(Record, frozen=True, kw_only=True):
    """The first threads of the store."""

    threads: ThreadList


async def load(visit: Visit, asked: ThreadAsked) -> Home:
    """Read the first threads."""
    return Home(threads=await load_threads(visit, asked))


def show(visit: Visit, _asked: ThreadAsked, home: Home) -> Html:
    """The list, and a word about what can be done."""
    body = tag("div", threads_pane(visit, home.threads), _welcome(home.threads), class_="app home")
    return page(visit, title="Threads", body=body, view="threads")


def _welcome(threads: ThreadList) -> Html:
    if threads.rows or threads.asked.is_filtered:
        return tag(
            "main",
            tag("h1", "Pick a conversation"),
            tag("p", "Every branch, every tool call and every file of it is one click away.", class_="sub"),
            class_="welcome",
            id="content",
        )
    return tag(
        "main",
        tag("h1", "No conversations yet"),
        tag("p", "Bring those of your agents home, and they appear here:", class_="sub"),
        tag("pre", tag("code", "sessiontree import")),
        tag("p", "Or start one from Python:", class_="sub"),
        tag("pre", tag("code", 'journal.append("hello", st.user("hi"), create=True)')),
        class_="welcome",
        id="content",
    )


PAGE = Page(
    path="/",
    about="The threads of the store, the last changed first.",
    asks=ThreadAsked,
    answer=Home,
    load=load,
    show=show,
)
