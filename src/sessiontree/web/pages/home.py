"""The first page: all threads, and what to do next."""

from __future__ import annotations

from sessiontree.model import Record
from sessiontree.web.declare import Page
from sessiontree.web.frame import page
from sessiontree.web.markup import Html, join, tag
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


_DRAWING = Html(
    '<svg class="drawing" viewBox="0 0 210 76" fill="none" stroke-width="2" aria-hidden="true">'
    '<path class="left" d="M36 60c24 0 18-24 44-24h66M114 36c24 0 12-24 38-24h18"/><path class="here" d="M6 60h196"/>'
    '<circle class="left" cx="114" cy="36" r="5"/><circle class="left" cx="146" cy="36" r="5"/>'
    '<circle class="left" cx="170" cy="12" r="5"/><circle class="here" cx="36" cy="60" r="5"/>'
    '<circle class="here" cx="100" cy="60" r="5"/><rect class="said" x="1" y="55" width="10" height="10" rx="2"/>'
    '<rect class="said" x="145" y="55" width="10" height="10" rx="2"/><circle class="head" cx="202" cy="60" r="6"/></svg>'
)
_KEYS = (("/", "filter threads"), ("]", "next thread"), ("Ctrl K", "find anything"), ("?", "all keys"))
_WRITE = """import sessiontree as st

with st.open("journal.db") as journal:
    journal.append("hello", st.user("hi"), create=True)"""


def _welcome(threads: ThreadList) -> Html:
    has_threads = bool(threads.rows) or threads.asked.is_filtered
    return tag(
        "main",
        _DRAWING,
        tag("h1", "Every conversation, every branch, kept."),
        _ways_in() if has_threads else _first_steps(),
        class_="welcome",
        id="content",
    )


def _ways_in() -> Html:
    hints = [tag("span", tag("kbd", key), f" {name}") for key, name in _KEYS]
    said = tag("p", "Pick one: every call and every file of it is one click away.", class_="sub")
    return join(said, tag("p", hints, class_="hints wide"))


def _first_steps() -> Html:
    said = "This store is empty. Bring in what your agents have already written: it is copied, never moved, and nothing leaves this machine."
    waiting = tag("p", tag("span", class_="pulse"), " waiting for the first entry", class_="live")
    return join(
        tag("p", said, class_="sub"),
        tag(
            "div",
            tag(
                "section",
                tag("h2", "Import your sessions"),
                tag("p", "It looks where each agent keeps them, says what is there, and asks.", class_="sub"),
                tag("pre", tag("code", "sessiontree import")),
            ),
            tag(
                "section",
                tag("h2", "Write from your own agent"),
                tag("p", "This page shows entries as they are committed.", class_="sub"),
                tag("pre", tag("code", _WRITE), tabindex=0),
                waiting,
            ),
            class_="cards",
        ),
    )


PAGE = Page(
    path="/",
    about="The threads of the store, the last changed first.",
    asks=ThreadAsked,
    answer=Home,
    load=load,
    show=show,
)
