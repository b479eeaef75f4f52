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
    ToolCallPart,
    ToolResultPart,
    TurnMarker,
    UsageReport,
    UserMessage,
)
from sessiontree.model.prices import PRICES, Cost, cost_of, reported_usage, sum_of
from sessiontree.render.gists import Gist, gist_of

__all__ = [
    "Amount",
    "Figures",
    "Step",
    "Tokens",
    "Turn",
    "amount_of",
    "answer_of",
    "branch_count",
    "cost_of_entries",
    "figures_of",
    "is_bookkeeping",
    "is_cut_off",
    "is_prompt",
    "results_in",
    "steps_of",
    "tokens_of",
    "turns_of",
]


class Step(Record, frozen=True, kw_only=True):
    """A tool call and its result. ``seconds`` is what the result says, or else the time until it was stored."""

    entry: Entry
    call: ToolCallPart
    result: ToolResultPart | None
    gist: Gist
    seconds: float | None = None


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


class Figures(Record, frozen=True, kw_only=True):
    """What a turn or a branch took."""

    steps: int = 0
    failures: int = 0
    added: int = 0
    removed: int = 0
    seconds: float | None = None
    tokens: Tokens = Tokens(None)
    cost: Amount = Amount(None)
    models: tuple[str, ...] = ()
    files: dict[str, tuple[int, int]] = {}


def is_prompt(entry: Entry) -> bool:
    """Return whether an entry is a message of the user; results that a provider sends as the user's are not."""
    return isinstance(entry.payload, UserMessage) and not entry.payload.message.tool_results


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


def results_in(entries: Iterable[Entry]) -> dict[str, tuple[Entry, ToolResultPart]]:
    """Return the results of tool calls by the id of the call."""
    return {
        result.call_id: (entry, result)
        for entry in entries
        if entry.message is not None
        for result in entry.message.tool_results
    }


def steps_of(entries: Sequence[Entry], folder: str = "") -> list[Step]:
    """Return the tool calls of some entries, each with its result if that is among them."""
    results = results_in(entries)
    steps: list[Step] = []
    for entry in entries:
        for call in entry.message.tool_calls if entry.message is not None else ():
            at, result = results.get(call.id, (None, None))
            gist = gist_of(call, result, folder)
            passed = (at.created_ns - entry.created_ns) / 1e9 if at is not None else None
            steps.append(Step(entry=entry, call=call, result=result, gist=gist, seconds=gist.seconds or passed))
    return steps


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
            case TurnMarker(status="failed" | "aborted") | RunFailure():
                waiting = {entry.id}
            case TurnMarker(status="completed" | "waiting") | UserMessage() | AssistantMessage():
                waiting = set()
            case _ if entry.message is not None:
                waiting |= {call.id for call in entry.message.tool_calls}
                waiting -= {result.call_id for result in entry.message.tool_results}
            case _:
                continue
    return bool(waiting)


def figures_of(entries: Sequence[Entry], folder: str = "", steps: Sequence[Step] | None = None) -> Figures:
    """Return what some entries of one path took; the time is that between the first and the last of them."""
    found = steps_of(entries, folder) if steps is None else steps
    files: dict[str, tuple[int, int]] = {}
    for step in found:
        for change in () if step.gist.is_failed else step.gist.changes:
            added, removed = files.get(change.path, (0, 0))
            files[change.path] = (added + change.added, removed + change.removed)
    shown = [entry for entry in entries if not is_bookkeeping(entry)]
    models = [name for entry in entries for name in (getattr(entry.payload, "model", ""),) if name]
    return Figures(
        steps=len(found),
        failures=sum(step.gist.is_failed for step in found),
        added=sum(added for added, _ in files.values()),
        removed=sum(removed for _, removed in files.values()),
        seconds=(shown[-1].created_ns - shown[0].created_ns) / 1e9 if len(shown) > 1 else None,
        tokens=_reported_tokens(entries),
        cost=cost_of_entries(entries),
        models=tuple(dict.fromkeys(models)),
        files=files,
    )


def _reported_tokens(entries: Sequence[Entry]) -> Tokens:
    for entry in reversed(entries):
        found = reported_usage(entry.payload)
        if found is not None and not isinstance(entry.payload, Compaction) and found[0].context_tokens:
            return Tokens(found[0].context_tokens)
    return Tokens(None)


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
    return Amount(total[currency], bool(cost.estimated.get(currency)), currency)


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
