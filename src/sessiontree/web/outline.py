"""The outline of a thread: what its entries are and how they hang together, without their contents.

A tree of 100,000 entries is drawn from it, a window at a time. It is built once and then grows with what is new, and so does
what was made of it: an entry at the end of a long thread must not cost what the thread costs.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator
from itertools import islice
from typing import Any, Literal, TypedDict, TypeVar

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
from sessiontree.render.branches import BranchTree, Families
from sessiontree.render.entries import words_of
from sessiontree.render.outcomes import outcome_of
from sessiontree.render.turns import is_prompt

__all__ = ["Kind", "Node", "Outline", "Outlines"]


Kind = Literal["prompt", "answer", "calls", "result", "compaction", "checkpoint", "failure", "note", "hidden"]

_NAME_LENGTH = 160
_AT_ONCE = 500
_MOST_KEPT = 400_000
_TAIL = 300
_MOST_KEPT_BESIDE = 16

T = TypeVar("T")


class _Above(TypedDict):
    place: int
    rank: int
    prompts: int
    jump: str


class Node(Record, frozen=True, kw_only=True):
    """An entry in the outline. ``words`` are there for prompts only, ``size`` is the length of its text.

    ``number`` counts the entries committed before it, ``place`` those above it, ``rank`` those of them that are shown,
    ``prompts`` the prompts down to itself. ``jump`` is an entry further up, chosen so that any place above is reached in a
    number of steps that grows with the logarithm (Myers 1983, skew-binary jump pointers).
    """

    id: str
    parent: str | None
    kind: Kind
    created_ns: int
    number: int = 0
    place: int = 0
    rank: int = 0
    prompts: int = 0
    jump: str = ""
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
        self.call_of: dict[str, str] = {}
        self.families: Families[Node] = Families((), shows=lambda node: node.is_shown)
        self.lock = asyncio.Lock()
        self._calls: dict[str, str] = {}
        self._unshown: dict[str | None, list[str]] = {}
        self._kept: dict[Hashable, Any] = {}
        self._grown: OrderedDict[tuple[Hashable, str | None], Any] = OrderedDict()

    @property
    def last_id(self) -> str | None:
        """The entry that was committed last."""
        return next(reversed(self.nodes), None)

    def add(self, entries: Iterable[Entry]) -> None:
        """Take new entries into the outline; those that are known are skipped."""
        for entry in entries:
            if entry.id not in self.nodes:
                node = self.nodes[entry.id] = self._node(entry)
                self.families.add((node,))
                if not node.is_shown:
                    self._unshown.setdefault(node.parent, []).append(node.id)
        self._kept.clear()

    def kept(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return what was made of the outline under this key; it is made again when something was added."""
        if key not in self._kept:
            self._kept[key] = make()
        found: T = self._kept[key]
        return found

    def grown(self, key: Hashable, leaf: str | None, make: Callable[[T | None], T]) -> T:
        """Return what ``make`` makes for a leaf, of what it made for an earlier one on the same path if that is still there."""
        earlier = (at for at in reversed(self._grown) if at[0] == key and (at[1] == leaf or self.is_on(at[1], leaf)))
        made = make(self._grown.pop(next(earlier, (None, None)), None))
        self._grown[key, leaf] = made
        while len(self._grown) > _MOST_KEPT_BESIDE:
            self._grown.popitem(last=False)
        return made

    def tree(self, leaf: str | None) -> BranchTree[Node]:
        """Return the tree as it is drawn with this leaf."""
        return BranchTree(self.families, leaf, is_active=lambda entry_id: self.is_on(entry_id, leaf))

    def length(self, leaf: str | None) -> int:
        """Return how many entries are on the path to a leaf."""
        node = self.nodes.get(leaf or "")
        return node.place + 1 if node is not None else 0

    def is_on(self, entry_id: str | None, leaf: str | None) -> bool:
        """Return whether an entry is on the path to a leaf."""
        node = self.nodes.get(entry_id or "")
        return node is not None and node.place < self.length(leaf) and self._at(leaf, node.place) is node

    def window(self, leaf: str | None, start: int, end: int) -> list[Node]:
        """Return the nodes from one place of the path to a leaf to another."""
        start, end = max(0, start), min(end, self.length(leaf))
        if start >= end:
            return []
        found = list(islice(self.upward(self._at(leaf, end - 1).id), end - start))
        found.reverse()
        return found

    def prompts(self, leaf: str | None) -> int:
        """Return how many prompts are on the path to a leaf."""
        node = self.nodes.get(leaf or "")
        return node.prompts if node is not None else 0

    def next_after(self, leaf: str | None, place: int, is_wanted: Callable[[Node], bool], *, back: bool) -> Node | None:
        """Return the nearest node that is wanted behind a place of the path, or before it."""
        if back:
            end = self.window(leaf, place - 1, place)
            return next(filter(is_wanted, self.upward(end[0].id)), None) if end else None
        for start in range(place + 1, self.length(leaf), _AT_ONCE):
            for node in self.window(leaf, start, start + _AT_ONCE):
                if is_wanted(node):
                    return node
        return None

    def upward(self, leaf: str | None) -> Iterator[Node]:
        """Yield the nodes of the path to a leaf, from the leaf up to the root."""
        node = self.nodes.get(leaf or "")
        while node is not None:
            yield node
            node = self.nodes.get(node.parent or "")

    def _at(self, leaf: str | None, place: int) -> Node:
        node = self.nodes[leaf or ""]
        while node.place > place:
            jump = self.nodes[node.jump]
            node = jump if jump.place >= place else self.nodes[node.parent or ""]
        return node

    def leaf_for(self, entry_id: str | None, head: str | None) -> str | None:
        """Return the leaf of the branch to show for an entry: the head if the entry is on its way, else the branch's end."""
        if entry_id is None or entry_id not in self.nodes:
            return head
        if self.is_on(entry_id, head):
            return head
        return self._end(self.tree(head).end_of(self.shown_at(entry_id)), entry_id)

    def shown_at(self, entry_id: str) -> str:
        """Return the entry itself, or the nearest one above it that has a row: the call for a result."""
        return self.families.shown_at(entry_id) or entry_id

    def _end(self, shown: str, entry_id: str) -> str:
        """The last entry below the last shown one that is on the same branch, such as the result of a call."""
        end = shown
        while below := self._unshown.get(end):
            end = entry_id if entry_id in below else below[-1]
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
                self.call_of[entry.id] = at
            tail = getattr(result.parts[-1], "text", "")[-_TAIL:] if result.parts else ""
            if result.is_error or ("xit" in tail and outcome_of("bash", result).is_failed):
                self.failed.add(at or entry.id)
        reported = reported_usage(entry.payload) if entry.thread_id == self.thread_id else None
        if reported is not None:
            self.spent.append(reported)
        words = words_of(entry, "", _NAME_LENGTH) if kind == "prompt" else ""
        return Node(
            id=entry.id,
            parent=entry.parent,
            kind=kind,
            created_ns=entry.created_ns,
            number=len(self.nodes),
            size=size,
            words=words,
            **self._above(entry, kind),
        )

    def _above(self, entry: Entry, kind: Kind) -> _Above:
        """Where an entry is on its path."""
        parent = self.nodes.get(entry.parent or "")
        if parent is None:
            return {"place": 0, "rank": 0, "prompts": int(kind == "prompt"), "jump": entry.id}
        near = self.nodes[parent.jump]
        far = self.nodes[near.jump]
        is_even = parent.place - near.place == near.place - far.place
        jump = far if is_even else parent
        return {
            "place": parent.place + 1,
            "rank": parent.rank + parent.is_shown,
            "prompts": parent.prompts + (kind == "prompt"),
            "jump": jump.id,
        }


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

    def known(self, thread: Thread) -> Outline | None:
        """Return the outline of a thread if it is there and knows its leaf."""
        found = self._kept.get(thread.id)
        return found if found is not None and (thread.leaf is None or thread.leaf in found.nodes) else None

    async def of(self, thread: Thread) -> Outline:
        """Return the outline of a thread, with everything that was committed until now."""
        found = self._kept.setdefault(thread.id, Outline(thread.id))
        self._kept.move_to_end(thread.id)
        async with found.lock:
            new = await self._journal.entries(thread.id, after=found.last_id)
            for start in range(0, len(new), _AT_ONCE):
                found.add(new[start : start + _AT_ONCE])
                await asyncio.sleep(0)  # others are served while a long thread is taken in
        self._trim()
        return found

    def forget(self, thread_id: str) -> None:
        """Drop an outline, because entries of it were erased."""
        self._kept.pop(thread_id, None)

    def _trim(self) -> None:
        while len(self._kept) > 1 and sum(len(one.nodes) for one in self._kept.values()) > _MOST_KEPT:
            self._kept.popitem(last=False)
