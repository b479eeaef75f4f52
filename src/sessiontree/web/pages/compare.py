"""Compare two branches side by side: where they part, what each took, their messages and their files."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count as numbers

from sessiontree.errors import NoCheckpointError, NotFoundError
from sessiontree.model import Checkpoint, Entry, Record, Thread
from sessiontree.render.comparison import Block, blocks_of, pairs_of
from sessiontree.render.entries import words_of
from sessiontree.render.steps import figures_of
from sessiontree.render.threads import title_of
from sessiontree.render.turns import is_bookkeeping, is_prompt
from sessiontree.web.assets import asset_url
from sessiontree.web.declare import Page
from sessiontree.web.frame import page
from sessiontree.web.markup import Html, tag
from sessiontree.web.panes.compare import (
    Branch,
    CompareAsked,
    Comparison,
    FileChange,
    compare_body,
)
from sessiontree.web.site import Visit

__all__ = ["PAGE"]


_FIRST_READ = 500
_MOST_SHOWN = 600
_MOST_CHOICES = 12
_MOST_ACTIVE = 5_000
_MARKERS = 20


class _Side(Record, frozen=True, kw_only=True):
    """A branch: its thread, and the entry where it ends; None before the first one."""

    thread: Thread
    tip: str | None


class _Parting(Record, frozen=True, kw_only=True):
    """Where two branches part: the last message of both, how many entries are common if that is known, and the rest of each."""

    last: Entry | None
    common: int | None
    left: tuple[Entry, ...]
    right: tuple[Entry, ...]


async def load(visit: Visit, asked: CompareAsked) -> Comparison:
    """Read both branches back to where they part, at the cost of what they do not share."""
    thread = await visit.journal.thread(asked.a)
    choices = await _choices(visit, thread)
    a, b = await _sides(visit, asked, thread, choices)
    parting = await _parting(visit, a, b)
    return Comparison(
        a=_branch(visit, a, parting.left),
        b=_branch(visit, b, parting.right),
        common=parting.common,
        common_entry=parting.last.id if parting.last else "",
        common_words=words_of(parting.last, thread.workspace, 120) if parting.last else "",
        pairs=tuple(pairs_of(_blocks(a.thread, parting.left), _blocks(b.thread, parting.right))),
        is_cut=max(len(parting.left), len(parting.right)) > _MOST_SHOWN,
        files=await _files(visit, a, b),
        choices=choices,
    )


async def _choices(visit: Visit, thread: Thread) -> tuple[Branch, ...]:
    """The branches that can be compared with: where the leaf of the thread was before its moves, and its forks."""
    active = {entry.id for entry in await visit.journal.path(thread.id, limit=_MOST_ACTIVE)}
    moves = await visit.journal.reflog(thread.id)
    left = dict.fromkeys(move.from_entry for move in reversed(moves) if move.from_entry)
    own: list[Branch] = []
    for tip in [tip for tip in left if tip not in active][:_MOST_CHOICES]:
        # A branch may end with markers; one of markers alone is not worth a comparison.
        ends = [
            entry for entry in await visit.journal.path(thread.id, tip, limit=_MARKERS) if not is_bookkeeping(entry)
        ]
        if ends and ends[-1].id not in active:
            own.append(Branch(thread=thread.id, tip=tip, title=words_of(ends[-1], thread.workspace, 80)))
    relatives = await visit.journal.list_threads(tree=thread.tree, is_archived=None, limit=_MOST_CHOICES)
    forks = [
        Branch(thread=one.id, tip=one.leaf or "", title=title_of(one, visit.now), is_active=True)
        for one in relatives
        if one.id != thread.id
    ]
    return (*own, *forks)


async def _sides(visit: Visit, asked: CompareAsked, thread: Thread, choices: tuple[Branch, ...]) -> tuple[_Side, _Side]:
    """The branches asked for. An entry alone is compared with the leaf, and so is a thread with its newest other branch."""
    if asked.b:
        other = await visit.journal.thread(asked.b)
        tip = asked.a_at or thread.leaf
        return _Side(thread=thread, tip=tip), _Side(thread=other, tip=asked.b_at or other.leaf)
    active = _Side(thread=thread, tip=asked.b_at or thread.leaf)
    if asked.a_at:
        return _Side(thread=thread, tip=asked.a_at), active
    if not choices:
        raise NotFoundError(f"thread {thread.id} has one branch only; rewind or fork it, then there are two to compare")
    return _Side(thread=await visit.journal.thread(choices[0].thread), tip=choices[0].tip), active


async def _parting(visit: Visit, a: _Side, b: _Side) -> _Parting:
    """Read paths from their ends, four times as far each time, until they meet or both are read whole."""
    for step in numbers():
        limit = _FIRST_READ * 4**step
        left, right = [
            await visit.journal.path(one.thread.id, one.tip, limit=limit) if one.tip else [] for one in (a, b)
        ]
        places = {entry.id: at for at, entry in enumerate(left)}
        there = next((at for at in reversed(range(len(right))) if right[at].id in places), -1)
        is_whole = max(len(left), len(right)) < limit
        if there >= 0 or is_whole:
            break
    here = places[right[there].id] if there >= 0 else -1
    shared = [entry for entry in left[: here + 1] if not is_bookkeeping(entry)]
    return _Parting(
        last=next((entry for entry in reversed(shared) if entry.message is not None), shared[-1] if shared else None),
        common=len(shared) if is_whole else None,
        left=tuple(left[here + 1 :]),
        right=tuple(right[there + 1 :]),
    )


def _branch(visit: Visit, side: _Side, entries: Sequence[Entry]) -> Branch:
    thread, tip = side.thread, side.tip
    figures = figures_of(entries, thread.workspace)
    shown = [entry for entry in entries if not is_bookkeeping(entry)]
    prompt = next((entry for entry in entries if is_prompt(entry)), None) or next(iter(shown), None)
    title = words_of(prompt, thread.workspace, 120) if prompt else "nothing more"
    return Branch(
        thread=thread.id,
        tip=tip or "",
        title=title,
        thread_title=title_of(thread, visit.now),
        is_active=tip == thread.leaf,
        entries=len(shown),
        failures=figures.failures,
        seconds=figures.seconds,
        cost=figures.cost.words,
        files=len(figures.files),
        edits=tuple(
            FileChange(path=path, added=added, removed=removed) for path, (added, removed) in figures.files.items()
        ),
    )


def _blocks(thread: Thread, entries: Sequence[Entry]) -> list[Block]:
    return blocks_of(entries[:_MOST_SHOWN], thread.workspace)


async def _files(visit: Visit, a: _Side, b: _Side) -> tuple[FileChange, ...] | None:
    """The files of the last checkpoint of one branch against those of the other; None without two checkpoints."""
    if a.tip is None or b.tip is None:
        return None
    found = await visit.journal.path(b.thread.id, b.tip, types=("checkpoint",), limit=1)
    root = found[0].payload.root if found and isinstance(found[0].payload, Checkpoint) else ""
    try:
        diff = await visit.journal.workspace.diff(
            a.thread.id, a.tip, root or b.thread.workspace, other=b.tip, other_thread=b.thread.id
        )
    except NoCheckpointError:
        return None
    return tuple(
        FileChange(
            path=file.path,
            old_path=file.old_path,
            kind=file.kind,
            is_binary=file.is_binary,
            diff=file.text,
            added=sum(line.startswith("+") and not line.startswith("+++") for line in file.text.splitlines()),
            removed=sum(line.startswith("-") and not line.startswith("---") for line in file.text.splitlines()),
        )
        for file in diff
    )


def show(visit: Visit, asked: CompareAsked, found: Comparison) -> Html:
    """The whole page."""
    body = tag(
        "main",
        tag("link", rel="stylesheet", href=asset_url("look_back.css")),
        tag("link", rel="stylesheet", href=asset_url("compare.css")),
        tag("div", compare_body(visit.now, asked, found), class_="wrap"),
        class_="page",
        id="content",
    )
    return page(visit, title="Compare branches", body=body, current="/")


PAGE = Page(
    path="/compare",
    about="Two branches side by side: what they share, what each took, their messages and files.",
    asks=CompareAsked,
    answer=Comparison,
    load=load,
    show=show,
)
