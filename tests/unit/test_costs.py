"""Costs by thread, day and model: what providers reported, what a table of prices adds, and what has no price."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import timedelta, timezone
from pathlib import Path

import pytest

import sessiontree as st
from opened import open_store
from sessiontree.model.prices import cost_of

STORES = ["memory", "sqlite", "jsonl", "postgres"]
DAY = 86_400 * 10**9


def answer(model: str, tokens: int = 0, cost: float = 0.0) -> st.AssistantMessage:
    usage = st.Usage(input_tokens=tokens, output_tokens=tokens, cost=cost, currency="EUR" if cost else "")
    message = st.Message(role="assistant", parts=(st.TextPart(text="x"),))
    return st.AssistantMessage(message=message, model=model, usage=usage)


@pytest.fixture(params=STORES)
def journal(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[st.Journal]:
    with open_store(request.param, tmp_path) as journal:
        yield journal


def test_costs_are_added_up_for_each_thread_day_and_model(journal: st.Journal) -> None:
    prices = {"m": st.Price(input=1, output=3)}
    for name in ("a", "b"):
        journal.create_thread(name, is_archived=name == "b")
    journal.append("a", answer("m", 1_000_000), created_ns=0)
    journal.append("a", answer("m", cost=0.5), created_ns=DAY)
    journal.append("b", answer("other", 5), created_ns=DAY)
    report = journal.costs(prices=prices)
    assert report.total.total == {"EUR": 0.5, "USD": 4.0}
    assert (report.total.reported, report.total.estimated) == ({"EUR": 0.5}, {"USD": 4.0})
    assert report.threads["a"].total == {"EUR": 0.5, "USD": 4.0}
    assert report.days["1970-01-01"].total == {"USD": 4.0}
    assert report.models["m"].total == {"EUR": 0.5, "USD": 4.0}
    assert (report.models["other"].total, report.models["other"].unpriced_tokens) == ({}, 10)
    assert journal.costs("b", prices=prices).total == report.threads["b"]
    assert list(journal.costs(after_ns=1, before_ns=DAY + 1).days) == ["1970-01-02"]
    assert list(journal.costs(zone=timezone(timedelta(hours=-1))).days) == ["1969-12-31", "1970-01-01"]


def test_a_dated_name_has_the_price_of_the_model_unless_it_has_its_own() -> None:
    usage = st.Usage(input_tokens=1_000_000)
    for model, dollars in (
        ("gpt-5-2025-08-07", 1.25), ("gpt-4o-2024-11-20", 2.5), ("gpt-4o-2024-05-13", 5.0),
        ("claude-sonnet-4-5-20250929", 3.0), ("claude-opus-4-5-20251101", 5.0), ("claude-opus-4-20250514", 15.0),
    ):  # fmt: skip
        assert cost_of(usage, model, st.PRICES).estimated == {"USD": dollars}


def test_each_turn_has_its_usage(journal: st.Journal) -> None:
    chat = journal.open_thread("t", create=True)
    for tokens in (5, 7):
        with chat.turn(owner="w", turn_id=f"turn-{tokens}") as turn:
            turn.append(answer("m", tokens))
            turn.append(answer("m", 1))
    chat.append(answer("m", 100))
    report = chat.costs()
    assert {name: cost.input_tokens for name, cost in report.turns.items()} == {"turn-5": 6, "turn-7": 8}
    assert report.total.input_tokens == 114


def test_a_request_counts_once_however_many_forks_show_it(journal: st.Journal) -> None:
    journal.create_thread("t")
    journal.append("t", answer("m", cost=1.0))
    for name in ("f", "g"):
        journal.fork("t", new_id=name)
    journal.append("f", st.UsageReport(usage=st.Usage(cost=2.0), model="m"))
    assert journal.costs().total.total == {"EUR": 1.0, "USD": 2.0}
    assert journal.costs("f").total.total == {"USD": 2.0}
    journal.delete_thread("t")
    assert journal.costs().total.total == {"EUR": 1.0, "USD": 2.0}
    assert set(journal.costs().threads) == {"t", "f"}


def test_the_cost_of_summaries_counts(journal: st.Journal) -> None:
    journal.create_thread("t")
    journal.append("t", st.Compaction(summary="s", summary_usage=st.Usage(cost=0.25)))
    assert journal.costs("t").models[""].reported == {"USD": 0.25}


def test_an_unknown_thread_has_no_costs(journal: st.Journal) -> None:
    with pytest.raises(st.ThreadNotFoundError):
        journal.costs("unknown")
    assert journal.costs() == st.CostReport()


def test_the_table_can_be_extended_and_replaced() -> None:
    usage = st.Usage(input_tokens=1_000_000, cache_read_tokens=2_000_000, cache_write_tokens=1_000_000)
    assert st.Price(input=4, output=9, cache_read=1).amount(usage) == 4 + 2 + 4
    with st.open("memory:") as journal:
        journal.create_thread("t")
        journal.append("t", answer("gpt-4o", 1_000_000))
        assert journal.costs().total.estimated == {"USD": 12.5}
        assert journal.costs(prices={}).total.estimated == {}
        mine = {**st.PRICES, "gpt-4o": st.Price(input=0, output=1, currency="CHF")}
        assert journal.costs(prices=mine).total.estimated == {"CHF": 1.0}


def test_a_name_that_only_resembles_a_known_model_has_no_price() -> None:
    usage = st.Usage(input_tokens=1_000_000)
    for name in ("GPT-4o", "openai/gpt-4o", "gpt-4", "ft:gpt-4o-2024-08-06:acme", "gpt-4o-2024", "2024-08-06", ""):
        assert cost_of(usage, name, st.PRICES).unpriced_tokens == 1_000_000


def test_the_async_journal_counts_too() -> None:
    async def count() -> st.CostReport:
        async with st.open_async("memory:") as journal:
            await journal.create_thread("t")
            await journal.append("t", answer("m", cost=1.0))
            return await journal.costs()

    assert asyncio.run(count()).total.reported == {"EUR": 1.0}
