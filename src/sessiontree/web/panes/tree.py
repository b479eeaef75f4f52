"""The tree of a thread: its rows in lanes, the filters, and the minimap."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import takewhile

from sessiontree.model import Entry, Record, Thread
from sessiontree.render.entries import words_of
from sessiontree.render.figures import duration, plural
from sessiontree.render.steps import Step, steps_of
from sessiontree.render.threads import title_of
from sessiontree.render.times import clock, moment_at
from sessiontree.web.addresses import entry_url, thread_url
from sessiontree.web.markup import Child, Html, icon, join, tag
from sessiontree.web.outline import Kind, Node, Outline
from sessiontree.web.panes.grip import grip
from sessiontree.web.panes.transcript import Siblings
from sessiontree.web.rows import Drawing, Filter, Slot, draw
from sessiontree.web.site import Visit

__all__ = [
    "Marks",
    "TreeRow",
    "TreeWindow",
    "load_tree",
    "marks_of",
    "minimap_html",
    "siblings_of",
    "tree_pane",
    "tree_rows",
]


_WINDOW = 200
_AT_ONCE = 5_000
_WORDS = 120
_BUCKETS = 1_000
_FILTERS: tuple[tuple[Filter, str], ...] = (
    ("all", "All"),
    ("prompts", "Prompts"),
    ("talk", "No tools"),
    ("labels", "Labels"),
)


class TreeRow(Record, frozen=True, kw_only=True):
    """A row of the tree. ``link`` is another thread that was forked here, ``hidden`` how many entries are folded."""

    id: str
    kind: Kind
    words: str
    depth: int
    starts: bool = False
    is_active: bool = False
    is_head: bool = False
    is_failed: bool = False
    is_left: bool = False
    is_folded: bool | None = None
    hidden: int = 0
    at: int = -1
    facts: str = ""
    labels: tuple[str, ...] = ()
    siblings: Siblings | None = None
    link: str = ""
    lanes: int = 0
    has_above: bool = False
    has_below: bool = False


class TreeWindow(Record, frozen=True, kw_only=True):
    """Some rows of a tree from ``start`` on; it has ``total`` rows. ``around`` is the place of the entry asked for."""

    total: int = 0
    start: int = 0
    rows: tuple[TreeRow, ...] = ()
    filter: Filter = "all"
    leaf: str | None = None
    bars: tuple[str, ...] = ()


class Marks(Record, frozen=True, kw_only=True):
    """What is known about entries besides the outline: labels by entry, forks by entry, and branches that were left."""

    labels: dict[str, tuple[str, ...]] = {}
    forks: dict[str, tuple[Thread, ...]] = {}
    left: frozenset[str] = frozenset()


async def marks_of(visit: Visit, thread: Thread) -> Marks:
    """Read labels, forks and moves of a thread."""
    labels: dict[str, list[str]] = {}
    for name, target in (await visit.journal.labels(thread.id)).items():
        labels.setdefault(target, []).append(name)
    page = await visit.journal.list_threads(forked_from_thread=thread.id, is_archived=None, limit=_WINDOW)
    forks: dict[str, list[Thread]] = {}
    for fork in page:
        forks.setdefault(fork.forked_from_entry, []).append(fork)
    moves = (await visit.journal.reflog(thread.id))[-_WINDOW:]
    return Marks(
        labels={name: tuple(found) for name, found in labels.items()},
        forks={name: tuple(found) for name, found in forks.items()},
        left=frozenset(move.from_entry for move in moves if move.reason == "rewind" and move.from_entry),
    )


async def load_tree(
    visit: Visit,
    thread: Thread,
    outline: Outline,
    drawing: Drawing,
    *,
    marks: Marks,
    start: int | None = None,
    around: str | None = None,
) -> TreeWindow:
    """Read a window of the tree: from a row on, or around an entry."""
    leaf = drawing.leaf

    def drawn() -> tuple[Sequence[Slot], list[str]]:
        return draw(outline, drawing, labels=frozenset(marks.labels), forks=marks.forks), minimap_of(outline, leaf)

    async with outline.lock:
        slots, bars = await asyncio.to_thread(drawn) if len(outline.nodes) > _AT_ONCE else drawn()
    if start is None:
        wanted = outline.nodes[around].place if around and outline.is_on(around, leaf) else outline.length(leaf)
        near = (at for at in range(len(slots) - 1, -1, -1) if _is_before(slots[at], wanted))
        start = next(near, 0) - _WINDOW // 2
    start = max(0, min(start, len(slots) - _WINDOW))
    shown = slots[start : start + _WINDOW]
    rows = await _rows(visit, thread, outline, shown, leaf=leaf, marks=marks)
    return TreeWindow(
        total=len(slots), start=start, rows=tuple(rows), filter=drawing.filter, leaf=leaf, bars=tuple(bars)
    )


def _is_before(slot: Slot, wanted: int) -> bool:
    return slot.is_active and slot.node.place <= wanted


async def _rows(
    visit: Visit, thread: Thread, outline: Outline, shown: Sequence[Slot], *, leaf: str | None, marks: Marks
) -> list[TreeRow]:
    names = [slot.node.id for slot in shown if slot.node.kind != "prompt"]
    names += [result for name in names for result in outline.results.get(name, ())]
    entries = {entry.id: entry for entry in await visit.journal.find_entries(dict.fromkeys(names), thread_id=thread.id)}
    steps: dict[str, list[Step]] = {}
    for step in steps_of(list(entries.values()), thread.workspace):
        steps.setdefault(step.entry.id, []).append(step)
    head = outline.families.shown_at(leaf)
    siblings = siblings_of(outline, [slot.node for slot in shown])
    rows = []
    for slot in shown:
        node = slot.node
        if slot.thread is not None:
            words, facts = title_of(slot.thread, visit.now), "thread"
        else:
            words, facts = _words(visit, thread, node, entries.get(node.id), steps.get(node.id, []))
        rows.append(
            TreeRow(
                id=node.id,
                kind=node.kind,
                words=words,
                depth=slot.depth,
                starts=slot.starts,
                is_active=slot.is_active,
                is_head=node.id == head and slot.thread is None,
                is_failed=node.id in outline.failed and slot.thread is None,
                is_left=node.id in marks.left,
                is_folded=slot.is_folded,
                hidden=slot.hidden,
                at=node.place if outline.is_on(node.id, leaf) else -1,
                facts=plural(slot.hidden, "entry", "entries") if slot.hidden else facts,
                labels=() if slot.thread else marks.labels.get(node.id, ()),
                siblings=None if slot.thread else siblings.get(node.id),
                link=slot.thread.id if slot.thread else "",
                lanes=slot.lanes,
                has_above=slot.has_above,
                has_below=slot.has_below,
            )
        )
    return rows


def _words(visit: Visit, thread: Thread, node: Node, entry: Entry | None, steps: Sequence[Step]) -> tuple[str, str]:
    """What a row says, and what stands at its right."""
    time = clock(moment_at(node.created_ns, visit.now), visit.now)
    if node.kind == "prompt":
        return node.words or "(empty)", time
    if entry is None:
        return node.kind, ""
    if not steps:
        return words_of(entry, thread.workspace, _WORDS), time if node.kind == "checkpoint" else ""
    gist = steps[0].gist
    for step in steps:
        gist = step.gist if step.gist.is_failed else gist
    more = f" · {len(steps)} calls in parallel" if len(steps) > 1 else ""
    took = max((step.seconds or 0 for step in steps), default=0)
    facts = f"+{gist.added} −{gist.removed}" if gist.added or gist.removed else duration(took) if took >= 1 else ""
    said = entry.message.text.strip() if entry.message is not None else ""
    if gist.is_failed:
        return f"{gist.object or gist.name} failed{more}", facts
    if said and not more:
        return words_of(entry, thread.workspace, _WORDS), facts
    name = "" if gist.kind == "bash" else f"{gist.name} "
    return f"{name}{gist.object}{more}", facts


def siblings_of(outline: Outline, nodes: Sequence[Node]) -> dict[str, Siblings]:
    """Return the siblings of each entry that has some; only entries with a row of their own do."""
    found: dict[str, Siblings] = {}
    for node in nodes:
        family = outline.families.family(node.id) if node.is_shown else ()
        if len(family) < 2:
            continue
        at = next(place for place, one in enumerate(family) if one.id == node.id)
        found[node.id] = Siblings(
            place=at + 1,
            total=len(family),
            before=family[at - 1].id if at else "",
            after=family[at + 1].id if at + 1 < len(family) else "",
        )
    return found


class _Minimap(Record, frozen=True, kw_only=True):
    """The bars of a path, each of ``size`` shown entries, and how many entries had failed then."""

    bars: list[str] = []
    size: int = 0
    failed: int = 0


def minimap_of(outline: Outline, leaf: str | None) -> list[str]:
    """Return a letter and a length for each bar: p prompt, a answer, t call, x failure, c compaction."""
    return outline.grown("minimap", leaf, lambda earlier: _minimap(outline, leaf, earlier or _Minimap())).bars


def _minimap(outline: Outline, leaf: str | None, earlier: _Minimap) -> _Minimap:
    last = outline.nodes.get(leaf or "")
    total = last.rank + last.is_shown if last is not None else 0
    size, failed = max(1, -(-total // _BUCKETS)), len(outline.failed)
    bars = earlier.bars[:-1] if (earlier.size, earlier.failed) == (size, failed) else []
    new = takewhile(lambda node: node.rank >= size * len(bars), outline.upward(leaf))
    path = [node for node in new if node.is_shown][::-1]
    for at in range(0, len(path), size):
        bucket = path[at : at + size]
        length = min(9, max(node.size for node in bucket).bit_length() // 2)
        bars.append(_letter(outline, bucket) + str(length))
    return _Minimap(bars=bars, size=size, failed=failed)


def _letter(outline: Outline, bucket: Sequence[Node]) -> str:
    kinds = {node.kind for node in bucket}
    if any(node.id in outline.failed for node in bucket):
        return "x"
    return next((sign for kind, sign in (("compaction", "c"), ("prompt", "p"), ("answer", "a")) if kind in kinds), "t")


def tree_pane(thread: Thread, window: TreeWindow | None, selected: str = "") -> Html:
    """The pane. Without a window it is filled later: a long tree is not waited for."""
    filters = tag(
        "span",
        [
            tag(
                "button",
                name,
                data_filter=word,
                aria_pressed="true" if word == (window.filter if window else "all") else "false",
                type="button",
            )
            for word, name in _FILTERS
        ],
        class_="seg",
        role="group",
        aria_label="Show",
    )
    fold = tag(
        "button",
        icon("minus"),
        class_="ib",
        data_do="fold-all",
        aria_label="Fold every branch",
        title="Fold all (Z)",
        type="button",
    )
    body = tag("p", "Reading the tree…", class_="nothing") if window is None else tree_rows(thread, window, selected)
    keys = (("j k", "entry"), ("h l", "branch"), ("f", "fork"), ("r", "rewind"), ("?", "all"))
    hints = [tag("span", [join(tag("kbd", key), " ") for key in many.split()], name) for many, name in keys]
    return tag(
        "section",
        tag("div", tag("div", filters, tag("span", class_="grow"), fold, class_="row"), class_="phead"),
        tag(
            "div",
            tag("div", body, class_="scroll", id="tree", data_filter=window.filter if window else "all"),
            tag("div", minimap_html(window.bars if window else ()), class_="minimap", id="minimap", aria_hidden=True),
            class_="treewrap",
        ),
        tag("div", hints, class_="keys"),
        grip("tree", "Width of the tree", 352),
        class_="pane treepane",
        aria_label="Tree",
    )


def tree_rows(thread: Thread, window: TreeWindow, selected: str = "") -> Html:
    """The rows of a window."""
    if not window.rows:
        empty = "Nothing is labelled yet." if window.filter == "labels" else "No entries yet."
        return tag("p", empty, class_="nothing", data_total=0)
    return tag(
        "div",
        [_row(thread, row, window, window.start + at, selected) for at, row in enumerate(window.rows)],
        class_="tree",
        role="tree",
        aria_label="Branches",
        data_total=window.total,
        data_start=window.start,
        data_leaf=window.leaf or None,
    )


def _row(thread: Thread, row: TreeRow, window: TreeWindow, place: int, selected: str) -> Html:
    kinds = ["tn"]
    kinds += ["said"] if row.kind == "prompt" and not row.link else []
    kinds += [] if row.is_active else ["off"]
    kinds += ["failed"] if row.is_failed else []
    is_selected = row.id == selected and not row.link
    right: list[Child] = [
        icon("rewind", is_small=True) if row.is_left else None,
        tag("span", row.facts) if row.facts else None,
        [tag("span", icon("flag", is_small=True), label, class_="chip label") for label in row.labels],
        tag("span", f"{row.siblings.place}/{row.siblings.total}", class_="n3 on" if row.is_active else "n3")
        if row.siblings
        else None,
        tag("span", "head", class_="acc") if row.is_head else None,
    ]
    return tag(
        "a",
        _lanes(row),
        tag("span", row.words, class_="tx", dir="auto"),
        tag("span", right, class_="rt"),
        class_=" ".join(kinds),
        role="treeitem",
        tabindex=0 if is_selected else -1,
        href=thread_url(row.link) if row.link else entry_url(thread.id, row.id),
        aria_level=row.depth + 1,
        aria_expanded=None if row.is_folded is None else "false" if row.is_folded else "true",
        aria_selected="true" if is_selected else None,
        aria_setsize=window.total,
        aria_posinset=place + 1,
        data_id=None if row.link else row.id,
        data_at=row.at if row.is_active and row.at >= 0 else None,
        title=row.words if len(row.words) > 40 else None,
    )


def _lanes(row: TreeRow) -> list[Html]:
    """One cell for each lane: those to the left that go on, the elbow of a branch, and the node itself."""
    cells: list[Html] = []
    for lane in range(row.depth):
        goes_on = row.lanes >> lane & 1
        is_elbow = row.starts and lane == row.depth - 1
        kinds = ["g"]
        kinds += ["l"] if goes_on else []
        kinds += ["tee"] if is_elbow else []
        kinds += ["a"] if lane == 0 else []
        cells.append(tag("span", class_=" ".join(kinds)))
    kinds = ["g"]
    if row.has_above or row.has_below:
        kinds += ["l"]
    kinds += ["a"] if row.is_active else []
    kinds += [] if row.has_above else ["first"]
    kinds += [] if row.has_below else ["last"]
    kinds += ["dash"] if row.hidden and row.has_below else []
    cells.append(tag("span", _glyph(row), class_=" ".join(kinds)))
    return cells


def _glyph(row: TreeRow) -> Html:
    """Shape says what an entry is."""
    if row.link:
        return tag("span", icon("out"), class_="node ic acc")
    if row.is_failed:
        return tag("span", icon("cross"), class_="node ic bad")
    if row.is_head and row.kind != "prompt":
        return tag("span", class_="node head")
    match row.kind:
        case "prompt":
            return tag("span", class_="node user")
        case "answer":
            return tag("span", class_="node asst")
        case "compaction":
            return tag("span", icon("compact"), class_="node ic sub")
        case "checkpoint":
            return tag("span", icon("stack"), class_="node ic sub")
        case "note":
            return tag("span", icon("file"), class_="node ic sub")
        case _:
            return tag("span", class_="node tool")


def minimap_html(bars: Sequence[str]) -> Html:
    """The whole path as bars, one shape for each kind: long is much text, dark is a prompt, red a failure."""
    shapes: dict[str, list[str]] = {}
    for at, bar in enumerate(bars):
        kind, length = bar[0], int(bar[1])
        width = 23 if kind in "pc" else 5 + 2 * length
        shapes.setdefault(kind, []).append(f"M5 {10 * at + 2}h{width}v6H5z")
    shown = [tag("path", class_=f"m-{kind}", d="".join(shape)) for kind, shape in shapes.items()]
    frame = tag("rect", class_="vp", x=1.5, y=0, width=30, height=10, rx=3)
    return tag(
        "svg",
        shown,
        frame,
        viewBox=f"0 0 33 {max(10 * len(bars), 600)}",
        preserveAspectRatio="none",
        data_bars=len(bars),
    )
