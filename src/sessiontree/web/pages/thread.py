"""A thread: its tree and its transcript, opened at an entry or at its end."""

from __future__ import annotations

from sessiontree.model import Lease, Record, Thread
from sessiontree.render.figures import count, duration, plural
from sessiontree.render.threads import first_words, title_of
from sessiontree.render.times import clock, moment_at
from sessiontree.web.addresses import entry_url, fragment, thread_url
from sessiontree.web.declare import Page
from sessiontree.web.frame import page
from sessiontree.web.markup import Child, Html, icon, join, tag
from sessiontree.web.panes.threads import STAR, ThreadList, load_threads, threads_pane
from sessiontree.web.panes.transcript import Transcript, View, articles, siblings_html
from sessiontree.web.panes.tree import TreeWindow, load_tree, marks_of, tree_pane
from sessiontree.web.reading import (
    PAGE as WINDOW,
)
from sessiontree.web.reading import (
    Crumb,
    Prompt,
    cost_words,
    crumbs_of,
    last_window,
    prompts_of,
    transcript_of,
)
from sessiontree.web.rows import Drawing
from sessiontree.web.site import Visit

__all__ = ["PAGE", "lease_html", "prompts_html"]


_LONG = 3_000
"""A longer thread is shown before its tree is known."""
_FROM_START = 400
_CONTEXT_WINDOW = 200_000
_HOUR = 3600
_BEFORE = 20


class ThreadAt(Record, frozen=True, kw_only=True):
    """A thread, and the entry to open it at."""

    thread: str
    at: str = ""


class Reading(Record, frozen=True, kw_only=True):
    """A thread as it is read: a window of its tree and of the branch that leads through the entry asked for.

    ``selected`` is that entry, or the one that it is shown with: a result is shown with its call.
    """

    thread: Thread
    title: str
    transcript: Transcript
    selected: str = ""
    tree: TreeWindow | None = None
    crumbs: tuple[Crumb, ...] = ()
    prompts: tuple[Prompt, ...] = ()
    prompt_count: int = 0
    labels: dict[str, tuple[str, ...]] = {}
    lease: Lease | None = None
    cost: str = ""
    threads: ThreadList = ThreadList(rows=())

    @property
    def is_elsewhere(self) -> bool:
        """Whether the branch that is shown is not that of the head."""
        return self.transcript.leaf != self.thread.leaf


async def load(visit: Visit, asked: ThreadAt) -> Reading:
    """Read a thread. Of a long one only the end, until its outline is there."""
    thread = await visit.journal.thread(asked.thread)
    lease = await visit.journal.active_lease(thread.id)
    marks = await marks_of(visit, thread)
    threads = await load_threads(visit)
    if not asked.at and thread.entries > _LONG and visit.site.outlines.known(thread) is None:
        transcript = await last_window(visit, thread)
        title = title_of(thread, visit.now, transcript.entries)
        return Reading(
            thread=thread, title=title, transcript=transcript, labels=marks.labels, lease=lease, threads=threads
        )
    outline = await visit.site.outlines.of(thread)
    if asked.at:
        await visit.journal.entry(thread.id, asked.at)
    leaf = outline.leaf_for(asked.at or None, thread.leaf)
    total = outline.length(leaf)
    start = total - WINDOW if total > _FROM_START else 0
    selected = outline.shown_at(asked.at) if asked.at else ""
    if selected:
        start = outline.nodes[selected].place - _BEFORE
    transcript = await transcript_of(visit, thread, outline, leaf, start=start)
    tree = await load_tree(visit, thread, outline, Drawing(leaf), marks=marks, around=selected or None)
    return Reading(
        thread=thread,
        title=thread.title.strip() or first_words(transcript.entries) or title_of(thread, visit.now),
        selected=selected,
        transcript=transcript,
        tree=tree,
        crumbs=await crumbs_of(visit, thread, outline, leaf),
        prompts=prompts_of(outline, leaf),
        prompt_count=outline.prompts(leaf),
        labels=marks.labels,
        lease=lease,
        cost=cost_words(outline),
        threads=threads,
    )


def show(visit: Visit, asked: ThreadAt, reading: Reading) -> Html:
    """The three panes."""
    body = tag(
        "div",
        threads_pane(visit, reading.threads, reading.thread.id),
        tree_pane(reading.thread, reading.tree, reading.selected),
        _transcript(visit, reading),
        class_="app",
        data_thread=reading.thread.id,
        data_url=thread_url(reading.thread.id),
        data_head=reading.thread.leaf,
        data_leaf=reading.transcript.leaf,
        data_total=reading.transcript.total,
        data_at=asked.at or None,
        data_selected=reading.selected or None,
        data_live=reading.lease.owner if reading.lease else None,
        data_title=reading.title,
    )
    return page(visit, title=reading.title, body=body, view="transcript")


def _transcript(visit: Visit, reading: Reading) -> Html:
    view = View(thread=reading.thread, labels=reading.labels, holder=reading.lease.owner if reading.lease else "")
    column = tag(
        "div",
        _sticky(reading),
        tag("div", class_="space", id="above"),
        tag("div", articles(visit, view, reading.transcript), id="pages"),
        tag("div", class_="space", id="below"),
        tag("p", "Nothing was said yet.", class_="nothing") if not reading.transcript.total else None,
        class_="col",
        id="content",
        tabindex=-1,
    )
    outline = tag(
        "aside",
        tag("div", prompts_html(visit, reading.thread, reading.prompts, reading.prompt_count), id="prompts"),
        tag("div", id="files"),
        class_="outline",
        id="outline",
        aria_label="Prompts and files",
    )
    pill = tag(
        "button", icon("arrow-down", is_small=True), tag("span"), class_="pill", id="pill", hidden=True, type="button"
    )
    return tag("main", _head(visit, reading), tag("div", column, outline, class_="body"), pill, class_="tr")


def _head(visit: Visit, reading: Reading) -> Html:
    thread = reading.thread
    tags = [tag("span", name, class_="chip wide") for name in thread.tags if name != STAR]
    return tag(
        "header",
        tag(
            "div",
            tag(
                "a",
                icon("left"),
                class_="ib back ph-only",
                href="#threads",
                data_view="threads",
                aria_label="Back to the threads",
            ),
            tag("h1", reading.title, class_="cut", id="title", dir="auto"),
            icon("star", is_small=True) if STAR in thread.tags else None,
            tags,
            tag("span", "archived", class_="chip") if thread.is_archived else None,
            tag("span", lease_html(visit, reading.lease), id="lease"),
            tag("span", class_="grow"),
            _buttons(visit),
            class_="row",
        ),
        tag("div", _crumbs(reading), _facts(reading), class_="row"),
        class_="thead",
    )


def lease_html(visit: Visit, lease: Lease | None) -> Html | None:
    """Who runs a turn, and since when."""
    if lease is None:
        return None
    until = clock(lease.expires_at, visit.now)
    since = moment_at(lease.created_ns, visit.now)
    seconds = max(0, int((visit.now - since).total_seconds()))
    return tag(
        "span",
        tag("span", class_="pulse"),
        lease.owner,
        " · ",
        tag("span", f"{seconds // 60}:{seconds % 60:02}", data_clock=seconds) if seconds < _HOUR else duration(seconds),
        class_="lease",
        title=f"{lease.owner} runs a turn; the lease lasts until {until}",
    )


def _buttons(visit: Visit) -> Html:
    """What can be done with the selected entry, and with the thread."""
    writes = (("fork", "fork", "Fork", "f"), ("rewind", "rewind", "Rewind", "r"))
    shown: list[Child] = []
    if not visit.site.is_read_only:
        shown += [
            tag(
                "button",
                icon(sign),
                tag("span", name),
                class_="ib tx",
                data_do=word,
                title=f"{name} here ({key})",
                type="button",
            )
            for word, sign, name, key in writes
        ]
    shown.append(
        tag(
            "button",
            icon("compare"),
            tag("span", "Compare"),
            class_="ib tx",
            data_do="compare",
            title="Compare branches (d)",
            type="button",
        )
    )
    if not visit.site.is_read_only:
        shown.append(
            tag(
                "button",
                icon("flag"),
                class_="ib",
                data_do="label",
                aria_label="Label",
                title="Label (m)",
                type="button",
            )
        )
    shown.append(
        tag(
            "button",
            icon("export"),
            class_="ib",
            data_do="export",
            aria_label="Export",
            title="Export (e)",
            type="button",
        )
    )
    more = tag(
        "button",
        icon("more"),
        class_="ib",
        data_do="palette-actions",
        aria_label="More actions",
        title="All actions (>)",
        type="button",
    )
    return join(tag("span", shown, class_="row wide acts"), more)


def _crumbs(reading: Reading) -> Html:
    thread = reading.thread
    pieces: list[Child] = [
        tag("a", "start", href=f"#{fragment(reading.prompts[0].id)}", data_do="start", class_="far")
        if reading.prompts
        else None
    ]
    for number, crumb in enumerate(reading.crumbs):
        is_last = number == len(reading.crumbs) - 1
        name = tag(
            "a",
            crumb.words,
            class_="here cut" if is_last else "cut far",
            href=entry_url(thread.id, crumb.id),
            dir="auto",
        )
        arrows = tag("span", siblings_html(thread.id, crumb.siblings), class_=None if is_last else "far")
        pieces += [tag("span", "/", class_="sl far"), arrows, name]
    slash = tag("span", "/", class_="sl" if reading.crumbs else "sl far")
    if reading.is_elsewhere:
        pieces += [slash, tag("span", "not the head", class_="live")]
        pieces.append(tag("a", "go to the head", href=thread_url(thread.id), class_="u"))
    elif pieces[0] is not None:
        pieces += [slash, tag("a", "head", href="#", data_do="head", class_="live" if reading.lease else "")]
    return tag("nav", pieces, class_="crumbs", aria_label="Branch points")


def _facts(reading: Reading) -> Html:
    thread = reading.thread
    share = min(100, 100 * thread.tokens // _CONTEXT_WINDOW)
    gauge = tag(
        "svg",
        tag("rect", x=0, y=0, width=share, height=6),
        viewBox="0 0 100 6",
        class_="gauge",
        preserveAspectRatio="none",
        aria_hidden=True,
    )
    return tag(
        "div",
        tag("span", plural(reading.transcript.total, "entry", "entries"), id="count"),
        tag(
            "span",
            f"context {count(thread.tokens, is_estimate=True)} ",
            gauge,
            title=f"{thread.tokens:,} tokens are sent to the model",
        ),
        tag("span", reading.cost) if reading.cost else None,
        tag("span", thread.model) if thread.model else None,
        class_="facts wide",
    )


def _sticky(reading: Reading) -> Html:
    total = reading.prompt_count
    up = tag(
        "button",
        icon("arrow-up"),
        class_="ib",
        data_do="prompt-before",
        aria_label="Previous prompt",
        title="Previous prompt (K)",
        type="button",
    )
    down = tag(
        "button",
        icon("arrow-down"),
        class_="ib",
        data_do="prompt-after",
        aria_label="Next prompt",
        title="Next prompt (J)",
        type="button",
    )
    numbers = tag("span", "Prompt ", tag("b", "1", id="pn"), " of ", tag("span", total, id="pt"), class_="dim nw")
    return tag("div", numbers, tag("span", class_="cut grow", id="pw"), up, down, class_="now", hidden=not total)


def prompts_html(visit: Visit, thread: Thread, prompts: tuple[Prompt, ...], total: int) -> Html:
    """The prompts of the branch, to jump to."""
    if not prompts:
        return Html("")
    links = [
        tag(
            "a",
            tag("span", one.words, class_="pw", dir="auto"),
            tag(
                "small",
                clock(moment_at(one.created_ns, visit.now), visit.now),
                tag("span", " · failed", class_="bad") if one.is_failed else None,
            ),
            href=entry_url(thread.id, one.id),
            data_id=one.id,
            data_at=one.at,
        )
        for one in prompts
    ]
    earlier = total - len(prompts)
    before = tag("p", f"{plural(earlier, 'earlier prompt')}", class_="dim") if earlier else None
    return join(tag("h2", "Prompts", class_="h", data_total=total), before, links)


PAGE = Page(
    path="/t/{thread}",
    about="A thread: a window of its tree and of its transcript, opened at an entry or at its end.",
    asks=ThreadAt,
    answer=Reading,
    load=load,
    show=show,
)
