"""The outline of a thread: what its entries are and how they hang together, without their contents.

A tree of 100,000 entries is drawn from it, a window at a time. It is built once and then kept up to date with what is new.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable
from typing import Any, Literal, TypeVar

from sessiontree.journal.journal_async import AsyncJournal
from sessiontree.model import (
    AssistantMessage,
    BranchSummary,
    Checkpoint,
    Compaction,
    Custom,
    Entry,
    Memory,
    Record,
    RunFailure,
    SystemMessage,
    Thread,
    ThreadInfo,
    ToolCallMessage,
    TurnMarker,
    Usage,
    UserMessage,
)
from sessiontree.model.prices import reported_usage
from sessiontree.render.branches import BranchTree
from sessiontree.render.entries import words_of
from sessiontree.render.outcomes import outcome_of
from sessiontree.render.turns import is_prompt

__all__ = ["Kind", "Node", "Outline", "Outlines"]


Kind = Literal["prompt", "answer", "calls", "result", "compaction", "checkpoint", "failure", "note", "hidden"]

_NAME_LENGTH = 160
_AT_ONCE = 2_000
_MOST_KEPT = 400_000
_TAIL = 300
_MOST_KEPT_BESIDE = 16

T = TypeVar("T")


class Node(Record, frozen=True, kw_only=True):
    """An entry in the outline. ``words`` are there for prompts only, ``size`` is the length of its text."""

    id: str
    parent: str | None
    kind: Kind
    created_ns: int
    size: int = 0
    words: str = ""

    @property
    def is_shown(self) -> bool:
        """Whether the entry has a row of its own in the tree."""
        return self.kind not in {"hidden", "result"}


class Outline:
    """The nodes of a thread in the order of their commits, what failed, and which results belong to which calls."""

    def __init__(self, thread_id: str) -> None:
        self.thread_id = thread_id
        self.nodes: dict[str, Node] = {}
        self.failed: set[str] = set()
        self.results: dict[str, list[str]] = {}
        self.spent: list[tuple[Usage, str]] = []
        self._calls: dict[str, str] = {}
        self._kept: OrderedDict[tuple[Hashable, ...], Any] = OrderedDict()

    @property
    def last_id(self) -> str | None:
        """The entry that was committed last."""
        return next(reversed(self.nodes), None)

    def add(self, entries: Iterable[Entry]) -> None:
        """Take new entries into the outline; those that are known are skipped."""
        for entry in entries:
            if entry.id not in self.nodes:
                self.nodes[entry.id] = self._node(entry)
        self._kept.clear()

    def kept(self, key: tuple[Hashable, ...], make: Callable[[], T]) -> T:
        """Return what was made of the outline under this key; it is made again when something was added."""
        if key not in self._kept:
            self._kept[key] = make()
            while len(self._kept) > _MOST_KEPT_BESIDE:
                self._kept.popitem(last=False)
        found: T = self._kept[key]
        return found

    def places(self, leaf: str | None) -> dict[str, int]:
        """Return the place of each entry on the path to a leaf."""
        return self.kept(("places", leaf), lambda: {node.id: place for place, node in enumerate(self.path(leaf))})

    def tree(self, leaf: str | None) -> BranchTree[Node]:
        """Return the tree as it is drawn with this leaf."""
        nodes = self.nodes.values()
        return self.kept(("tree", leaf), lambda: BranchTree(list(nodes), leaf, shows=lambda node: node.is_shown))

    def path(self, leaf: str | None) -> list[Node]:
        """Return the nodes from the root to a leaf."""
        return self.kept(("path", leaf), lambda: self._path(leaf))

    def _path(self, leaf: str | None) -> list[Node]:
        found: list[Node] = []
        node = self.nodes.get(leaf) if leaf is not None else None
        while node is not None:
            found.append(node)
            node = self.nodes.get(node.parent) if node.parent is not None else None
        found.reverse()
        return found

    def leaf_for(self, entry_id: str | None, head: str | None) -> str | None:
        """Return the leaf of the branch to show for an entry: the head if the entry is on its way, else the branch's end."""
        if entry_id is None or entry_id not in self.nodes:
            return head
        if entry_id in self.places(head):
            return head
        return self._end(self.tree(head).end_of(self.shown_at(entry_id)), entry_id)

    def shown_at(self, entry_id: str) -> str:
        """Return the entry itself, or the nearest one above it that has a row: the call for a result."""
        node = self.nodes.get(entry_id)
        while node is not None and not node.is_shown:
            node = self.nodes.get(node.parent) if node.parent is not None else None
        return node.id if node is not None else entry_id

    def _end(self, shown: str, entry_id: str) -> str:
        """The last entry below the last shown one that is on the same branch, such as the result of a call."""
        below: dict[str | None, list[str]] = {}
        for node in self.nodes.values():
            if not node.is_shown:
                below.setdefault(node.parent, []).append(node.id)
        end = shown
        while below.get(end):
            end = entry_id if entry_id in below[end] else below[end][-1]
        return end

    def _node(self, entry: Entry) -> Node:
        kind = _kind_of(entry)
        if kind == "failure":
            self.failed.add(entry.id)
        message = entry.message
        size = len(message.text) if message is not None else 0
        for call in message.tool_calls if message is not None else ():
            self._calls[call.id] = entry.id
            size += len(call.arguments)
        results = message.tool_results if message is not None else ()
        for result in results:
            size += sum(len(getattr(part, "text", "")) for part in result.parts)
            at = self._calls.get(result.call_id)
            if at is None:
                kind = "calls"
            else:
                self.results.setdefault(at, []).append(entry.id)
            tail = getattr(result.parts[-1], "text", "")[-_TAIL:] if result.parts else ""
            if result.is_error or ("xit" in tail and outcome_of("bash", result).is_failed):
                self.failed.add(at or entry.id)
        reported = reported_usage(entry.payload) if entry.thread_id == self.thread_id else None
        if reported is not None:
            self.spent.append(reported)
        words = words_of(entry, "", _NAME_LENGTH) if kind == "prompt" else ""
        return Node(id=entry.id, parent=entry.parent, kind=kind, created_ns=entry.created_ns, size=size, words=words)


def _kind_of(entry: Entry) -> Kind:
    match entry.payload:
        case UserMessage():
            return "prompt" if is_prompt(entry) else "result"
        case AssistantMessage():
            return "answer"
        case ToolCallMessage():
            return "calls"
        case Compaction():
            return "compaction"
        case Checkpoint():
            return "checkpoint"
        case RunFailure() | TurnMarker(status="failed" | "aborted"):
            return "failure"
        case BranchSummary() | Memory() | ThreadInfo() | Custom() | SystemMessage():
            return "note"
        case _ if entry.message is not None:
            return "result"
        case _:
            return "hidden"


class Outlines:
    """The outlines of the threads that were looked at last."""

    def __init__(self, journal: AsyncJournal) -> None:
        self._journal = journal
        self._kept: OrderedDict[str, Outline] = OrderedDict()
        self._locks: dict[str, asyncio.Lock] = {}

    def known(self, thread: Thread) -> Outline | None:
        """Return the outline of a thread if it is there and knows its leaf."""
        found = self._kept.get(thread.id)
        return found if found is not None and (thread.leaf is None or thread.leaf in found.nodes) else None

    async def of(self, thread: Thread) -> Outline:
        """Return the outline of a thread, with everything that was committed until now."""
        lock = self._locks.setdefault(thread.id, asyncio.Lock())
        async with lock:
            found = self._kept.get(thread.id) or Outline(thread.id)
            new = await self._journal.entries(thread.id, after=found.last_id)
            if len(new) > _AT_ONCE:
                await asyncio.to_thread(found.add, new)
            elif new:
                found.add(new)
            self._keep(found)
        return found

    def forget(self, thread_id: str) -> None:
        """Drop an outline, because entries of it were erased."""
        self._kept.pop(thread_id, None)

    def _keep(self, outline: Outline) -> None:
        self._kept[outline.thread_id] = outline
        self._kept.move_to_end(outline.thread_id)
        while len(self._kept) > 1 and sum(len(one.nodes) for one in self._kept.values()) > _MOST_KEPT:
            name, _ = self._kept.popitem(last=False)
            self._locks.pop(name, None)
