"""A path cut into turns: what a user said, and the steps and answers that followed until the next message."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sessiontree.model import (
    ActiveToolsChange,
    AssistantMessage,
    Compaction,
    Entry,
    Event,
    Label,
    ModelChange,
    Record,
    RunFailure,
    Thread,
    ToolCallMessage,
    TurnMarker,
    UsageReport,
    UserMessage,
)
from sessiontree.model.prices import PRICES, Cost, cost_of, reported_usage, sum_of
from sessiontree.model.sanitize import one_line
from sessiontree.render.figures import money

__all__ = [
    "Amount",
    "Tokens",
    "Turn",
    "amount_of",
    "answer_of",
    "answers_turn",
    "branch_count",
    "cost_of_entries",
    "is_bookkeeping",
    "is_cut_off",
    "is_prompt",
    "tokens_of",
    "turns_of",
]


class Turn(Record, frozen=True, kw_only=True):
    """A message of the user and what followed it; the first turn may have no message."""

    prompt: Entry | None
    entries: tuple[Entry, ...] = ()

    @property
    def all_entries(self) -> tuple[Entry, ...]:
        """The message and what followed."""
        return self.entries if self.prompt is None else (self.prompt, *self.entries)


class Tokens(Record, frozen=True):
    """The size of a context: as the provider reported it, or our estimate."""

    count: int | None
    is_estimate: bool = False


class Amount(Record, frozen=True):
    """What requests cost; None if no price is known. Estimated if any part of it was computed from list prices."""

    amount: float | None
    is_estimate: bool = False
    currency: str = "USD"

    @property
    def words(self) -> str:
        """The amount as people read it; "" if it is unknown."""
        return "" if self.amount is None else money(self.amount, self.currency, is_estimate=self.is_estimate)


def is_prompt(entry: Entry) -> bool:
    """Return whether an entry is a message of the user; results that a provider sends as the user's are not."""
    return isinstance(entry.payload, UserMessage) and not entry.payload.message.tool_results


def answers_turn(entry: Entry) -> bool:
    """Return whether an entry is an answer of the model that ends a turn: a whole one, without tool calls."""
    return isinstance(entry.payload, AssistantMessage) and not entry.payload.is_partial


def is_bookkeeping(entry: Entry) -> bool:
    """Return whether an entry is of no interest to a reader of the conversation."""
    match entry.payload:
        case TurnMarker(status="failed" | "aborted"):
            return False
        case TurnMarker() | UsageReport() | Event() | Label() | ModelChange() | ActiveToolsChange():
            return True
        case _:
            return False


def turns_of(path: Iterable[Entry]) -> list[Turn]:
    """Cut a path at the messages of the user."""
    turns: list[Turn] = []
    prompt: Entry | None = None
    entries: list[Entry] = []
    for entry in path:
        if is_prompt(entry):
            if prompt is not None or entries:
                turns.append(Turn(prompt=prompt, entries=tuple(entries)))
            prompt, entries = entry, []
        else:
            entries.append(entry)
    if prompt is not None or entries:
        turns.append(Turn(prompt=prompt, entries=tuple(entries)))
    return turns


def answer_of(turn: Turn) -> Entry | None:
    """Return the answer that ends a turn: its last message of the model with a text, if no step follows."""
    for entry in reversed(turn.entries):
        match entry.payload:
            case AssistantMessage(message=message) if message.text.strip():
                return entry
            case AssistantMessage() | ToolCallMessage():
                return None
            case _:
                continue
    return None


def is_cut_off(path: Sequence[Entry]) -> bool:
    """Return whether the last turn of a path ended before its answer: failed, aborted, or a call without a result."""
    waiting: set[str] = set()
    for entry in path[-200:]:
        match entry.payload:
            case TurnMarker(status="failed" | "aborted") | RunFailure() | AssistantMessage(is_partial=True):
                waiting = {entry.id}
            case TurnMarker(status="completed" | "waiting") | UserMessage() | AssistantMessage():
                waiting = set()
            case _ if entry.message is not None:
                waiting |= {call.id for call in entry.message.tool_calls}
                waiting -= {result.call_id for result in entry.message.tool_results}
            case _:
                continue
    return bool(waiting)


def tokens_of(thread: Thread, path: Sequence[Entry]) -> Tokens:
    """Return the size of a thread's context: what the provider reported last, or our estimate of it.

    After a compaction the last report is out of date.
    """
    for entry in reversed(path):
        if isinstance(entry.payload, Compaction):
            break
        found = reported_usage(entry.payload)
        if found is not None and found[0].context_tokens:
            return Tokens(found[0].context_tokens)
    return Tokens(thread.tokens, is_estimate=True) if path else Tokens(0)


def cost_of_entries(entries: Iterable[Entry]) -> Amount:
    """Return what entries cost, at list prices where the provider reported nothing; in the main currency."""
    usages = [found for entry in entries if (found := reported_usage(entry.payload)) is not None]
    return amount_of(sum_of(cost_of(usage, model, PRICES) for usage, model in usages)) if usages else Amount(None)


def amount_of(cost: Cost) -> Amount:
    """Return a cost as one amount: that of the currency with the most of it."""
    total = cost.total
    if not total:
        return Amount(None)
    currency = max(total, key=lambda name: total[name])
    return Amount(total[currency], bool(cost.estimated.get(currency)), one_line(currency, 8))


def branch_count(entries: Sequence[Entry]) -> int:
    """Return the number of branches: entries with something to read that nothing to read follows."""
    parents = {entry.id: entry.parent for entry in entries}
    shown = {entry.id for entry in entries if not is_bookkeeping(entry)}
    inner: set[str] = set()
    for entry_id in shown:
        parent = parents[entry_id]
        while parent is not None and parent in parents and parent not in shown:
            parent = parents[parent]
        if parent is not None:
            inner.add(parent)
    return len(shown - inner)
