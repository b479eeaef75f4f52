"""The steps of a turn: each tool call with its result, and what they took together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from sessiontree.model import Compaction, Entry, Record, ToolCallPart, ToolResultPart
from sessiontree.model.prices import reported_usage
from sessiontree.render.branches import Branches
from sessiontree.render.figures import count, duration, plural
from sessiontree.render.gists import Gist, gist_of
from sessiontree.render.turns import Amount, Tokens, Turn, cost_of_entries, is_bookkeeping

__all__ = ["Figures", "Step", "figure_words", "figures_of", "figures_of_turn", "results_in", "steps_of"]


class Step(Record, frozen=True, kw_only=True):
    """A tool call and its result. ``seconds`` is what the result says, or else the time until it was stored."""

    entry: Entry
    call: ToolCallPart
    result: ToolResultPart | None
    gist: Gist
    seconds: float | None = None


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


def figure_words(figures: Figures, *, is_short: bool = False) -> list[str]:
    """Return what a turn or a branch took, in a few words each; ``is_short`` leaves out the model and the tokens."""
    words = (
        "" if is_short else ", ".join(figures.models),
        plural(figures.steps, "step") if figures.steps else "",
        duration(figures.seconds) if figures.seconds else "",
        "" if is_short or figures.tokens.count is None else f"{count(figures.tokens.count)} tokens",
        figures.cost.words,
    )
    return [one for one in words if one]


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


def figures_of(entries: Sequence[Entry], folder: str = "", steps: Sequence[Step] | None = None) -> Figures:
    """Return what some entries of one path took; the time is that between the first and the last of them."""
    found = steps_of(entries, folder) if steps is None else steps
    files: dict[str, tuple[int, int]] = {}
    for step in found:
        for change in () if step.gist.is_failed else step.gist.changes:
            added, removed = files.get(change.path, (0, 0))
            files[change.path] = (added + change.added, removed + change.removed)
    models = [name for entry in entries for name in (getattr(entry.payload, "model", ""),) if name]
    return Figures(
        steps=len(found),
        failures=sum(step.gist.is_failed for step in found),
        added=sum(added for added, _ in files.values()),
        removed=sum(removed for _, removed in files.values()),
        seconds=_seconds(entries),
        tokens=_reported_tokens(entries),
        cost=cost_of_entries(entries),
        models=tuple(dict.fromkeys(models)),
        files=files,
    )


def figures_of_turn(turn: Turn, branches: Branches, folder: str = "", steps: Sequence[Step] | None = None) -> Figures:
    """Return what a turn took. The time of a further answer begins with itself: nobody knows when it was asked for."""
    figures = figures_of(turn.all_entries, folder, steps)
    answers = () if turn.prompt is None else branches.children(turn.prompt.id)
    is_further = bool(answers) and all(entry.id != answers[0].id for entry in turn.entries)
    return replace(figures, seconds=_seconds(turn.entries)) if is_further else figures


def _seconds(entries: Sequence[Entry]) -> float | None:
    shown = [entry for entry in entries if not is_bookkeeping(entry)]
    return (shown[-1].created_ns - shown[0].created_ns) / 1e9 if len(shown) > 1 else None


def _reported_tokens(entries: Sequence[Entry]) -> Tokens:
    for entry in reversed(entries):
        found = reported_usage(entry.payload)
        if found is not None and not isinstance(entry.payload, Compaction) and found[0].context_tokens:
            return Tokens(found[0].context_tokens)
    return Tokens(None)
