"""What tokens cost: a table of prices, and the cost of usage that was reported without one.

>>> mine = {**PRICES, "my-model": Price(input=2.0, output=8.0)}
>>> cost_of(Usage(input_tokens=500_000, output_tokens=100_000), "my-model", mine).estimated
{'USD': 1.8}

A function can decide instead of a table, such as by the beginning of the name:

>>> cost_of(Usage(output_tokens=1_000_000), "my-model-2026", lambda name: mine.get(name.removesuffix("-2026"))).estimated
{'USD': 8.0}

A model that is not in the table has no price, and its tokens are counted instead:

>>> unknown = cost_of(Usage(input_tokens=7), "unheard-of", mine)
>>> unknown.total, unknown.unpriced_tokens
({}, 7)
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

from sessiontree.model._base import Record
from sessiontree.model.entry import AssistantMessage, Compaction, Payload, ToolCallMessage, Usage, UsageReport

__all__ = ["PRICES", "Cost", "Price", "Prices", "cost_of", "reported_usage", "sum_of"]


_MILLION = 1_000_000
_DATE = re.compile(r"-(\d{8}|\d{4}-\d{2}-\d{2})$")


class Price(Record, frozen=True, kw_only=True):
    """The price of a million tokens. Without one for the cache, its tokens cost as much as other input."""

    input: float
    output: float
    cache_read: float | None = None
    cache_write: float | None = None
    currency: str = "USD"

    def amount(self, usage: Usage) -> float:
        """Return what the tokens of a request cost; input tokens do not include those of the cache."""
        read = self.input if self.cache_read is None else self.cache_read
        write = self.input if self.cache_write is None else self.cache_write
        return (
            usage.input_tokens * self.input
            + usage.output_tokens * self.output
            + usage.cache_read_tokens * read
            + usage.cache_write_tokens * write
        ) / _MILLION


Prices = Mapping[str, Price] | Callable[[str], Price | None]
"""Prices by the name of the model, as entries record it: a table, or a function that returns the price of a model."""


class Cost(Record, frozen=True, kw_only=True):
    """Amounts by currency, and the tokens that they are for.

    ``reported`` was reported by providers, ``estimated`` was computed from a table of prices where they reported none.
    ``unpriced_tokens`` are those of models without a price; they are in neither.
    """

    reported: dict[str, float] = {}
    estimated: dict[str, float] = {}
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    unpriced_tokens: int = 0

    @property
    def total(self) -> dict[str, float]:
        """Reported and estimated amounts together."""
        return _merged([self.reported, self.estimated])


def cost_of(usage: Usage, model: str, prices: Prices) -> Cost:
    """Return the cost of one request: what was reported, or else what the table says."""
    price = prices(model) if callable(prices) else _price_in(prices, model)
    reported, estimated, unpriced = {}, {}, 0
    if usage.cost:
        reported[usage.currency or "USD"] = usage.cost
    elif price is not None:
        estimated[price.currency] = price.amount(usage)
    else:
        unpriced = usage.context_tokens
    return Cost(
        reported=reported,
        estimated=estimated,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cache_read_tokens=usage.cache_read_tokens,
        cache_write_tokens=usage.cache_write_tokens,
        unpriced_tokens=unpriced,
    )


def _price_in(prices: Mapping[str, Price], model: str) -> Price | None:
    """Return the price of a model; that of the model without its date if the dated one has none."""
    return prices.get(model) or prices.get(_DATE.sub("", model))


def sum_of(costs: Iterable[Cost]) -> Cost:
    """Return several costs as one."""
    parts = list(costs)
    return Cost(
        reported=_merged(part.reported for part in parts),
        estimated=_merged(part.estimated for part in parts),
        input_tokens=sum(part.input_tokens for part in parts),
        output_tokens=sum(part.output_tokens for part in parts),
        cache_read_tokens=sum(part.cache_read_tokens for part in parts),
        cache_write_tokens=sum(part.cache_write_tokens for part in parts),
        unpriced_tokens=sum(part.unpriced_tokens for part in parts),
    )


def reported_usage(payload: Payload) -> tuple[Usage, str] | None:
    """Return the usage that an entry reports and its model; the model of a summary is not recorded."""
    match payload:
        case AssistantMessage(usage=Usage() as usage) | ToolCallMessage(usage=Usage() as usage):
            return usage, payload.model
        case UsageReport():
            return payload.usage, payload.model
        case Compaction(summary_usage=Usage() as usage):
            return usage, ""
        case _:
            return None


def _merged(amounts: Iterable[Mapping[str, float]]) -> dict[str, float]:
    total: dict[str, float] = {}
    for one in amounts:
        for currency, amount in one.items():
            total[currency] = total.get(currency, 0.0) + amount
    return total


_OPUS_4 = Price(input=15, output=75, cache_read=1.5, cache_write=18.75)
_OPUS_45 = Price(input=5, output=25, cache_read=0.5, cache_write=6.25)
_SONNET = Price(input=3, output=15, cache_read=0.3, cache_write=3.75)

PRICES: Mapping[str, Price] = {
    "gpt-4o": Price(input=2.5, output=10, cache_read=1.25),
    "gpt-4o-2024-05-13": Price(input=5, output=15),
    "gpt-4o-mini": Price(input=0.15, output=0.6, cache_read=0.075),
    "gpt-4.1": Price(input=2, output=8, cache_read=0.5),
    "gpt-4.1-mini": Price(input=0.4, output=1.6, cache_read=0.1),
    "gpt-4.1-nano": Price(input=0.1, output=0.4, cache_read=0.025),
    "gpt-5": Price(input=1.25, output=10, cache_read=0.125),
    "gpt-5-mini": Price(input=0.25, output=2, cache_read=0.025),
    "gpt-5-nano": Price(input=0.05, output=0.4, cache_read=0.005),
    "gpt-5.2": Price(input=1.75, output=14, cache_read=0.175),
    "gpt-5.4": Price(input=2.5, output=15, cache_read=0.25),
    "gpt-5.4-mini": Price(input=0.75, output=4.5, cache_read=0.075),
    "gpt-5.4-nano": Price(input=0.2, output=1.25, cache_read=0.02),
    "gpt-5.5": Price(input=5, output=30, cache_read=0.5),
    "o3": Price(input=2, output=8, cache_read=0.5),
    "o4-mini": Price(input=1.1, output=4.4, cache_read=0.275),
    "claude-3-5-haiku": Price(input=0.8, output=4, cache_read=0.08, cache_write=1),
    "claude-3-7-sonnet": _SONNET,
    "claude-haiku-4-5": Price(input=1, output=5, cache_read=0.1, cache_write=1.25),
    "claude-opus-4": _OPUS_4,
    "claude-opus-4-1": _OPUS_4,
    "claude-opus-4-5": _OPUS_45,
    "claude-opus-4-6": _OPUS_45,
    "claude-opus-4-7": _OPUS_45,
    "claude-opus-4-8": _OPUS_45,
    "claude-opus-5": _OPUS_45,
    "claude-sonnet-4": _SONNET,
    "claude-sonnet-4-5": _SONNET,
    "claude-sonnet-4-6": _SONNET,
    "claude-sonnet-5": Price(input=2, output=10, cache_read=0.2, cache_write=2.5),
}
"""List prices of some models in US dollars, as of November 2026; a name with a date has the price of the name without it.

Looked up on 2026-11-17: those of Anthropic on its page platform.claude.com/docs/en/about-claude/pricing, with cache writes
for five minutes; those of OpenAI in public tables that cite developers.openai.com/api/docs/pricing. Models that are no
longer listed have their last price. They are for short contexts and without discounts. Prices change: pass a table of
your own for others, such as ``{**PRICES, "my-model": Price(input=1, output=2)}``.
"""
