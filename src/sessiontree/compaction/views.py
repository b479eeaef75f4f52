"""Tool results that the model has not read are never summarised. Those that do not fit are cut to views.

>>> from sessiontree.model.builders import tool_result
>>> from sessiontree.model.tokens import estimate_text
>>> message = tool_result("c1", "a long line of text\\n" * 1000).message
>>> items = [CutItem(entry_id="e1", message=message, original=message, tokens=estimate_message(message))]
>>> cuts = fit_results(items, 500, estimate_text)
>>> with_cuts(items, cuts, estimate_text)[0].tokens <= 500 < items[0].tokens
True
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from sessiontree.compaction.cuts import CutItem
from sessiontree.context.result_views import result_text, show_cuts, view_text
from sessiontree.model import ArtifactRef, ResultCut
from sessiontree.model._base import Record
from sessiontree.model.blobs import hash_of
from sessiontree.model.tokens import TokenCounter, estimate_message

__all__ = ["fit_results", "with_cuts"]


_LEAST_TOKENS = 200
"""A view has as much in any case, so that it tells what the result is about."""


class _Result(Record, frozen=True, kw_only=True):
    """A result that may be cut; ``tokens`` are those of the text that is shown now."""

    entry_id: str
    call_id: str
    name: str
    text: str
    tokens: int


def fit_results(items: Sequence[CutItem], available: int, count: TokenCounter) -> tuple[ResultCut, ...]:
    """Return how to cut the largest results so that the items fit into ``available`` tokens; nothing if they do."""
    excess = sum(item.tokens for item in items) - available
    if excess <= 0:
        return ()
    results = [result for item in items for result in _results(item, count)]
    largest = _largest([result.tokens for result in results], excess)
    return tuple(_cut(result, largest, count) for result in results if result.tokens > largest)


def with_cuts(items: Sequence[CutItem], cuts: Sequence[ResultCut], count: TokenCounter) -> list[CutItem]:
    """Return the items with views in place of the results that were cut."""
    by_entry: dict[str, list[ResultCut]] = {}
    for cut in cuts:
        by_entry.setdefault(cut.entry_id, []).append(cut)
    return [_viewed(item, by_entry[item.entry_id], count) if item.entry_id in by_entry else item for item in items]


def _viewed(item: CutItem, cuts: Sequence[ResultCut], count: TokenCounter) -> CutItem:
    cut_calls = {cut.call_id for cut in cuts}
    # From the original: what an earlier compaction cut may be cut again, and must not lose its notice.
    parts = tuple(
        original if getattr(original, "call_id", None) in cut_calls else shown
        for original, shown in zip(item.original.parts, item.message.parts, strict=True)
    )
    message = show_cuts(replace(item.message, parts=parts), cuts)
    return replace(item, message=message, tokens=estimate_message(message, count))


def _results(item: CutItem, count: TokenCounter) -> list[_Result]:
    return [
        _Result(
            entry_id=item.entry_id,
            call_id=result.call_id,
            name=result.name,
            text=result_text(item.original, result.call_id),
            tokens=count(result_text(item.message, result.call_id)),
        )
        for result in item.message.tool_results
    ]


def _largest(sizes: Sequence[int], excess: int) -> int:
    """Return the most tokens that a result may have, so that all of them together lose ``excess`` tokens.

    >>> _largest([100, 900, 5000], 4000), _largest([1000, 1000], 1000)
    (1000, 500)
    """
    smaller = sorted(sizes)
    room = sum(smaller) - excess
    for index, size in enumerate(smaller):
        share = room // (len(smaller) - index)
        if size > share:
            return max(share, _LEAST_TOKENS)
        room -= size
    return max(smaller, default=0)


def _cut(result: _Result, tokens: int, count: TokenCounter) -> ResultCut:
    """Return the cut whose view has at most ``tokens`` tokens, two thirds of it from the beginning."""
    data = result.text.encode()
    whole = ArtifactRef(sha256=hash_of(data), size=len(data), mime="text/plain", kind="tool_result", label=result.name)
    keep = len(result.text) * tokens // max(1, count(result.text))
    while True:
        head = keep * 2 // 3
        cut = ResultCut(
            entry_id=result.entry_id, call_id=result.call_id, head=head, tail=keep - head, full_output=whole
        )
        if keep == 0 or count(view_text(result.text, cut)) <= tokens:
            return cut
        keep = keep * 9 // 10
