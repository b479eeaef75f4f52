"""The parts of the page that compares two branches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Literal

from sessiontree.model import Record
from sessiontree.render.comparison import Block, Pair, marked_words
from sessiontree.render.figures import duration, plural
from sessiontree.render.split_diff import SplitRow, split_rows
from sessiontree.render.times import clock, moment_at
from sessiontree.web.addresses import entry_url, thread_url, with_query
from sessiontree.web.markup import Child, Html, icon, join, tag

__all__ = ["Branch", "CompareAsked", "Comparison", "FileChange", "compare_body"]


_SIGNS = {"same": ("=", "the same"), "differs": ("≠", "different"), "one": ("∅", "only on one side")}
_SHOWN = {"all": "Messages and files", "messages": "Messages", "files": "Files"}
_VIEWS = {"split": "Split", "unified": "Unified"}
_LONGEST = 3_000
_MOST_LINES = 400
_ICONS = {"bash": "terminal", "read": "file", "edit": "edit", "write": "edit", "web": "globe", "grep": "search"}


class CompareAsked(Record, frozen=True, kw_only=True):
    """Two branches: a thread each, and the entry where the branch ends if that is not the leaf.

    Without ``b`` it is another branch of the same thread.
    """

    a: str
    a_at: str = ""
    b: str = ""
    b_at: str = ""
    show: Literal["all", "messages", "files"] = "all"
    view: Literal["split", "unified"] = "split"
    file: str = ""


class FileChange(Record, frozen=True, kw_only=True):
    """What changed in a file; ``diff`` is unified, empty for binary files."""

    path: str
    old_path: str = ""
    kind: str = "changed"
    is_binary: bool = False
    added: int = 0
    removed: int = 0
    diff: str = ""


class Branch(Record, frozen=True, kw_only=True):
    """One side: its name, and what it took since the two parted. ``edits`` are the files that its tool calls changed."""

    thread: str
    tip: str
    title: str
    thread_title: str = ""
    is_active: bool = False
    entries: int = 0
    failures: int = 0
    seconds: float | None = None
    cost: str = ""
    files: int = 0
    edits: tuple[FileChange, ...] = ()


class Comparison(Record, frozen=True, kw_only=True):
    """Both branches. ``common`` is None if the shared part is too long to be counted; ``files`` if checkpoints are missing."""

    a: Branch
    b: Branch
    pairs: tuple[Pair, ...]
    common: int | None = None
    common_entry: str = ""
    common_words: str = ""
    is_cut: bool = False
    files: tuple[FileChange, ...] | None = None
    choices: tuple[Branch, ...] = ()


def compare_body(now: datetime, asked: CompareAsked, found: Comparison) -> Html:
    """Return everything below the frame."""
    return join(
        _head(asked, found),
        _fork(found),
        tag(
            "div",
            _side("A", found.a),
            tag("div", "⇄", class_="mid", aria_hidden=True),
            _side("B", found.b),
            class_="cmp",
        ),
        _messages(now, found) if asked.show != "files" else None,
        _files(asked, found) if asked.show != "messages" else None,
    )


def _url(asked: CompareAsked, **changes: str) -> str:
    names = ("a", "a_at", "b", "b_at", "show", "view", "file")
    given = {name: changes.get(name, getattr(asked, name)) for name in names}
    default = {"a": "", "a_at": "", "b": "", "b_at": "", "show": "all", "view": "split", "file": ""}
    return with_query("/compare", **{name: value for name, value in given.items() if value != default[name]})


def _head(asked: CompareAsked, found: Comparison) -> Html:
    a, b = found.a, found.b
    swapped = _url(asked, a=b.thread, a_at=b.tip, b=a.thread, b_at=a.tip)
    menu = [
        tag(
            "a", one.title, href=_url(asked, b=one.thread, b_at=one.tip, file=""), aria_current=one.tip == b.tip or None
        )
        for one in found.choices
    ]
    return tag(
        "div",
        tag("a", icon("left"), class_="ib", href=thread_url(a.thread), aria_label="Back to the thread"),
        tag("h1", "Compare branches"),
        tag("span", a.thread_title, class_="dim cut"),
        tag("span", class_="grow"),
        _links(asked, "show", _SHOWN, "Show"),
        tag(
            "details",
            tag("summary", "Other branch", icon("down", is_small=True), class_="btn"),
            tag("div", menu, class_="menu"),
            class_="pick",
        )
        if menu
        else None,
        tag("a", "Swap", class_="btn", href=swapped),
        tag("a", icon("right"), "Open B", class_="btn main", href=entry_url(b.thread, b.tip)),
        class_="pt",
    )


def _links(asked: CompareAsked, name: str, words: dict[str, str], label: str) -> Html:
    links = (
        tag("a", said, href=_url(asked, **{name: value}), aria_current=getattr(asked, name) == value or None)
        for value, said in words.items()
    )
    return tag("span", links, class_="seg", role="group", aria_label=label)


def _fork(found: Comparison) -> Html:
    """The drawing of where they part."""
    if not found.common_entry:
        said: Child = "They have nothing in common"
    else:
        many = "" if found.common is None else f"{plural(found.common, 'entry', 'entries')} "
        link = tag("a", "show", href=entry_url(found.a.thread, found.common_entry), class_="u")
        said = (f"{many}in common, up to “{found.common_words}” · ", link)
    strokes = (
        (found.a, "M500 20V26C500 38 488 38 470 38H260C240 38 240 42 240 56"),
        (found.b, "M500 20V26C500 38 512 38 530 38H740C760 38 760 42 760 56"),
    )
    lanes = (tag("path", d=path, class_="lane on" if side.is_active else "lane") for side, path in strokes)
    drawn = tag("svg", lanes, viewBox="0 0 1000 56", preserveAspectRatio="none", aria_hidden=True)
    return tag("div", tag("span", said, class_="txt"), drawn, class_="yfork")


def _side(letter: str, side: Branch) -> Html:
    facts: list[tuple[str, str, str]] = [(f"{side.entries:,}", "entry" if side.entries == 1 else "entries", "")]
    facts.append(
        (f"{side.failures:,}", "failed call" if side.failures == 1 else "failed calls", "bad" * (side.failures > 0))
    )
    facts += [(duration(side.seconds), "", "")] if side.seconds else []
    facts += [(side.cost, "", "")] if side.cost else []
    facts.append((f"{side.files:,}", "file" if side.files == 1 else "files", ""))
    active = ", active" if side.is_active else ""
    return tag(
        "section",
        tag(
            "div",
            tag("span", letter, class_="key"),
            tag("a", side.title, class_="cut grow", href=entry_url(side.thread, side.tip), title=side.title),
            tag("span", "active", class_="chip label") if side.is_active else None,
            class_="nmz",
        ),
        tag("dl", (tag("div", tag("dt", word), tag("dd", value, class_=kind or None)) for value, word, kind in facts)),
        class_="side b" if side.is_active else "side",
        aria_label=f"Branch {letter}{active}",
    )


def _messages(now: datetime, found: Comparison) -> Html:
    signs = "paired by kind and place: ≠ differs, = the same, ∅ only on one side"
    cells = [cell for pair in found.pairs for cell in _pair(now, found, pair)]
    more = (
        tag("p", "Only the beginning is shown; open a branch to read all of it.", class_="dim")
        if found.is_cut
        else None
    )
    nothing = tag("p", "Neither branch has anything after that.", class_="dim")
    head = tag("div", tag("h2", "Messages"), tag("span", signs, class_="dim"), class_="sec")
    return join(head, tag("div", cells, class_="cmp") if cells else nothing, more)


def _pair(now: datetime, found: Comparison, pair: Pair) -> Iterator[Html]:
    sign, words = _SIGNS[pair.sign]
    marks: tuple[Child, Child] = (None, None)
    if pair.sign == "differs" and pair.left[0].kind != "step":
        marks = _marked(pair.left[0].text[:_LONGEST], pair.right[0].text[:_LONGEST])
    yield _cell(now, found.a, "A", pair.left, marks[0])
    yield tag("div", tag("span", sign, aria_hidden=True), tag("span", words, class_="vh"), class_=f"mid {pair.sign}")
    yield _cell(now, found.b, "B", pair.right, marks[1])


def _marked(old: str, new: str) -> tuple[Child, Child]:
    left, right = marked_words(old, new)
    return (
        [tag("del", piece) if is_new else piece for piece, is_new in left],
        [tag("ins", piece) if is_new else piece for piece, is_new in right],
    )


def _cell(now: datetime, side: Branch, letter: str, blocks: Sequence[Block], marked: Child) -> Html:
    if not blocks:
        return tag("div", "nothing here", class_="cell none", data_side=letter)
    first = blocks[0]
    if first.kind == "step":
        return tag("div", (_step(side, block) for block in blocks), class_="cell", data_side=letter)
    said = marked if marked is not None else first.text[:_LONGEST]
    who = {"prompt": "You", "answer": first.name or "assistant", "event": first.name}[first.kind]
    sign = {"prompt": "prompt", "answer": "answer", "event": "flag"}[first.kind]
    time = clock(moment_at(first.time_ns, now), now)
    cap = tag(
        "a", icon(sign, is_small=True), f"{who} · {time}", class_="cap", href=entry_url(side.thread, first.entry_id)
    )
    rest = tag("span", " … open it to read the rest", class_="dim") if len(first.text) > _LONGEST else None
    return tag("div", cap, tag("div", said, rest, class_="said"), class_=f"cell {first.kind}", data_side=letter)


def _step(side: Branch, block: Block) -> Html:
    changed: list[Child] = []
    if block.added or block.removed:
        changed = [tag("span", f"+{block.added}", class_="ok"), tag("span", f"−{block.removed}", class_="bad")]
    return tag(
        "a",
        icon("cross" if block.is_failed else _ICONS.get(block.name, "stack"), is_small=True),
        tag("b", block.name),
        tag("span", block.text, class_="gist cut grow", title=block.text),
        changed or tag("span", block.outcome, class_="nw"),
        class_="mini bad" if block.is_failed else "mini",
        href=entry_url(side.thread, block.entry_id),
    )


def _files(asked: CompareAsked, found: Comparison) -> Html:
    if found.files is None:
        return join(
            tag(
                "div",
                tag("h2", "Files"),
                tag("span", "changed by tool calls; there are no checkpoints", class_="dim"),
                class_="sec",
            ),
            tag("div", _edits(found.a), tag("div", class_="mid"), _edits(found.b), class_="cmp"),
        )
    head = tag(
        "div",
        tag("h2", "Files"),
        tag("span", "the last checkpoint of A against the last checkpoint of B", class_="dim"),
        tag("span", class_="grow"),
        _links(asked, "view", _VIEWS, "View"),
        class_="sec",
    )
    if not found.files:
        return join(head, tag("p", "All files are the same.", class_="dim"))
    chosen = next((file for file in found.files if file.path == asked.file), found.files[0])
    rows = (
        tag(
            "li",
            tag(
                "a",
                icon("edit", is_small=True),
                tag("span", file.path, class_="mono cut grow", title=file.path),
                tag("span", f"+{file.added}", class_="ok") if file.added else None,
                tag("span", f"−{file.removed}", class_="bad") if file.removed else None,
                href=f"{_url(asked, file=file.path)}#files",
                aria_current=file is chosen or None,
            ),
        )
        for file in found.files
    )
    shown = tag("div", _file_head(chosen), _file(chosen, asked.view), class_="fd")
    return join(head, tag("div", tag("ul", rows, aria_label="Files"), shown, class_="card files", id="files"))


def _edits(side: Branch) -> Html:
    rows = [
        tag(
            "div",
            icon("edit", is_small=True),
            tag("span", file.path, class_="gist cut grow", title=file.path),
            tag("span", f"+{file.added}", class_="ok"),
            tag("span", f"−{file.removed}", class_="bad"),
            class_="mini",
        )
        for file in side.edits
    ]
    return tag("div", rows, class_="cell") if rows else tag("div", "no file changed", class_="cell none")


def _file_head(file: FileChange) -> Html:
    name = f"{file.old_path} → {file.path}" if file.old_path else file.path
    words = {"added": "only on B", "removed": "only on A", "renamed": "renamed on B", "mode": "only its mode differs"}
    return tag(
        "div",
        tag("span", name, class_="mono grow cut"),
        tag("span", words.get(file.kind, ""), class_="dim"),
        class_="fh",
    )


def _file(file: FileChange, view: str) -> Html:
    rows = split_rows(file.diff)
    if not rows:
        return tag("p", "A binary file." if file.is_binary else "Its content is the same.", class_="dim note")
    cut = (
        tag("p", f"{len(rows) - _MOST_LINES:,} lines more in the .json", class_="dim note")
        if len(rows) > _MOST_LINES
        else None
    )
    shown = rows[:_MOST_LINES]
    if view == "unified":
        return join(tag("div", [_unified(row) for row in shown], class_="sd one", tabindex="0"), cut)
    return join(tag("div", [half for row in shown for half in _halves(row)], class_="sd", tabindex="0"), cut)


def _halves(row: SplitRow) -> Iterator[Html]:
    if row.is_gap:
        yield tag("div", class_="gap")
        yield tag("div", class_="gap")
        return
    old, new = _line_marks(row)
    yield (
        _line(row.old_number, "−", old, "del" if row.is_changed else "")
        if row.old is not None
        else tag("div", class_="nil")
    )
    yield (
        _line(row.new_number, "+", new, "add" if row.is_changed else "")
        if row.new is not None
        else tag("div", class_="nil")
    )


def _unified(row: SplitRow) -> Html:
    if row.is_gap:
        return tag("div", class_="gap")
    old, new = _line_marks(row)
    if not row.is_changed:
        return _line(row.new_number, "", new, "")
    return join(
        _line(row.old_number, "−", old, "del") if row.old is not None else None,
        _line(row.new_number, "+", new, "add") if row.new is not None else None,
    )


def _line_marks(row: SplitRow) -> tuple[Child, Child]:
    """The two lines, with the words that differ marked."""
    if not row.is_changed or row.old is None or row.new is None:
        return row.old, row.new
    left, right = marked_words(row.old, row.new)
    return (
        [tag("em", piece) if is_new else piece for piece, is_new in left],
        [tag("em", piece) if is_new else piece for piece, is_new in right],
    )


def _line(number: int, sign: str, words: Child, kind: str) -> Html:
    return tag("div", tag("b", number), tag("i", sign if kind else None), tag("span", words), class_=kind or None)
