"""Parts of a thread that a page asks for while it is read: more entries, more rows of the tree, one entry as a whole."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from sessiontree.model import Entry, Record, Thread
from sessiontree.web.addresses import entry_url
from sessiontree.web.declare import Page
from sessiontree.web.markup import Html, join, tag
from sessiontree.web.outline import Node
from sessiontree.web.pages.thread import prompts_html
from sessiontree.web.panes.transcript import Transcript, View, articles
from sessiontree.web.panes.tree import TreeWindow, load_tree, marks_of, minimap_html, tree_rows
from sessiontree.web.reading import PAGE, Prompt, prompts_of, transcript_of
from sessiontree.web.rows import Drawing, Filter
from sessiontree.web.site import Visit

__all__ = ["ENTRIES", "ENTRY", "NEXT", "PROMPTS", "TREE"]


Place = Annotated[int, Meta(ge=0, le=1 << 40)]


class EntriesAsked(Record, frozen=True, kw_only=True):
    """Some entries of the branch that leads through ``at``, or to the head: from the place ``start`` on."""

    thread: str
    at: str = ""
    start: Place = 0
    count: Annotated[int, Meta(ge=1, le=PAGE)] = PAGE


class EntriesShown(Record, frozen=True, kw_only=True):
    """A window of a thread."""

    thread: Thread
    transcript: Transcript
    labels: dict[str, tuple[str, ...]] = {}
    holder: str = ""


async def load_entries(visit: Visit, asked: EntriesAsked) -> EntriesShown:
    """Read a window of the transcript."""
    thread = await visit.journal.thread(asked.thread)
    outline = await visit.site.outlines.of(thread)
    leaf = outline.leaf_for(asked.at or None, thread.leaf)
    marks = await marks_of(visit, thread)
    lease = await visit.journal.active_lease(thread.id)
    shown = await transcript_of(visit, thread, outline, leaf, start=asked.start, count=asked.count)
    return EntriesShown(thread=thread, transcript=shown, labels=marks.labels, holder=lease.owner if lease else "")


def show_entries(visit: Visit, _asked: EntriesAsked, found: EntriesShown) -> Html:
    """The articles, and how long the path is now."""
    view = View(thread=found.thread, labels=found.labels, holder=found.holder)
    shown = found.transcript
    facts = tag("template", data_total=shown.total, data_leaf=shown.leaf, data_head=found.thread.leaf)
    return join(facts, articles(visit, view, shown))


class TreeAsked(Record, frozen=True, kw_only=True):
    """Some rows of a tree: from a row on, or around an entry. ``toggled`` are rows whose fold is not the usual one."""

    thread: str
    at: str = ""
    filter: Filter = "all"
    toggled: tuple[str, ...] = ()
    start: Place | None = None
    around: str = ""


class TreeShown(Record, frozen=True, kw_only=True):
    """A window of the tree."""

    thread: Thread
    tree: TreeWindow


async def load_rows(visit: Visit, asked: TreeAsked) -> TreeShown:
    """Read a window of the tree."""
    thread = await visit.journal.thread(asked.thread)
    outline = await visit.site.outlines.of(thread)
    drawing = Drawing(outline.leaf_for(asked.at or None, thread.leaf), asked.filter, frozenset(asked.toggled))
    marks = await marks_of(visit, thread)
    around = asked.around or asked.at or None
    window = await load_tree(visit, thread, outline, drawing, marks=marks, start=asked.start, around=around)
    return TreeShown(thread=thread, tree=window)


def show_rows(_visit: Visit, asked: TreeAsked, found: TreeShown) -> Html:
    """The rows, and the minimap."""
    selected = asked.around or asked.at
    return join(tree_rows(found.thread, found.tree, selected), tag("template", minimap_html(found.tree.bars)))


class PromptsAsked(Record, frozen=True, kw_only=True):
    """The prompts of the branch that leads through ``at``, or to the head."""

    thread: str
    at: str = ""


class PromptsShown(Record, frozen=True, kw_only=True):
    """The prompts of a branch: the last ones, and how many there are."""

    thread: Thread
    prompts: tuple[Prompt, ...] = ()
    total: int = 0


async def load_prompts(visit: Visit, asked: PromptsAsked) -> PromptsShown:
    """Read the prompts of a branch."""
    thread = await visit.journal.thread(asked.thread)
    outline = await visit.site.outlines.of(thread)
    leaf = outline.leaf_for(asked.at or None, thread.leaf)
    return PromptsShown(thread=thread, prompts=prompts_of(outline, leaf), total=outline.prompts(leaf))


def show_prompts(visit: Visit, _asked: PromptsAsked, found: PromptsShown) -> Html:
    """The links to the prompts."""
    return prompts_html(visit, found.thread, found.prompts, found.total)


class NextAsked(Record, frozen=True, kw_only=True):
    """The nearest prompt or failure behind the place ``start`` of a branch; with ``back`` the one before it."""

    thread: str
    at: str = ""
    start: Place = 0
    kind: Literal["prompt", "failure"] = "prompt"
    back: bool = False


class NextFound(Record, frozen=True, kw_only=True):
    """An entry and its place on the branch; no id if there is none."""

    thread: str
    id: str = ""
    at: int = 0


async def load_next(visit: Visit, asked: NextAsked) -> NextFound:
    """Find the place in the outline: it may be far from what is shown."""
    thread = await visit.journal.thread(asked.thread)
    outline = await visit.site.outlines.of(thread)

    def is_wanted(node: Node) -> bool:
        return node.kind == "prompt" if asked.kind == "prompt" else node.id in outline.failed

    leaf = outline.leaf_for(asked.at or None, thread.leaf)
    found = outline.next_after(leaf, asked.start, is_wanted, back=asked.back)
    return NextFound(thread=thread.id, id=found.id, at=found.place) if found else NextFound(thread=thread.id)


def show_next(_visit: Visit, _asked: NextAsked, found: NextFound) -> Html:
    """The link to the entry."""
    link = tag("a", "Go there", href=entry_url(found.thread, found.id))
    return link if found.id else tag("p", "There is none.", class_="nothing")


class EntryAsked(Record, frozen=True, kw_only=True):
    """One entry of a thread."""

    thread: str
    entry: str


class EntryShown(Record, frozen=True, kw_only=True):
    """An entry, and the entries with the results of its calls."""

    thread: Thread
    entry: Entry
    around: tuple[Entry, ...] = ()


async def load_entry(visit: Visit, asked: EntryAsked) -> EntryShown:
    """Read an entry and what belongs to it."""
    thread = await visit.journal.thread(asked.thread)
    entry = await visit.journal.entry(thread.id, asked.entry)
    outline = await visit.site.outlines.of(thread)
    results = await visit.journal.find_entries(outline.results.get(entry.id, ()), thread_id=thread.id)
    return EntryShown(thread=thread, entry=entry, around=tuple(results))


def show_entry(visit: Visit, _asked: EntryAsked, found: EntryShown) -> Html:
    """The entry with everything in it opened."""
    shown = Transcript(total=1, entries=(found.entry,), around=found.around)
    return articles(visit, View(thread=found.thread, is_whole=True), shown)


ENTRIES = Page(
    path="/t/{thread}/entries",
    about="A window of the transcript of a branch.",
    asks=EntriesAsked,
    answer=EntriesShown,
    load=load_entries,
    show=show_entries,
)
TREE = Page(
    path="/t/{thread}/tree",
    about="A window of the rows of the tree.",
    asks=TreeAsked,
    answer=TreeShown,
    load=load_rows,
    show=show_rows,
)
PROMPTS = Page(
    path="/t/{thread}/prompts",
    about="The prompts of a branch.",
    asks=PromptsAsked,
    answer=PromptsShown,
    load=load_prompts,
    show=show_prompts,
)
NEXT = Page(
    path="/t/{thread}/next",
    about="The nearest prompt or failure of a branch from a place on, or before it.",
    asks=NextAsked,
    answer=NextFound,
    load=load_next,
    show=show_next,
)
ENTRY = Page(
    path="/t/{thread}/e/{entry}",
    about="One entry as a whole: nothing of its calls and results is cut.",
    asks=EntryAsked,
    answer=EntryShown,
    load=load_entry,
    show=show_entry,
)
