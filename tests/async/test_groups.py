"""Commands of many callers that are committed as one group mean what they mean one after the other."""

import asyncio
import random
from pathlib import Path
from random import Random
from typing import Any

import pytest

import sessiontree as st
from sessiontree.testing import ManualClock
from stores import DURABLE, url_of

THREADS = ("a", "b", "f")
ENTRIES = tuple(f"e{number}" for number in range(8))
_LATER_NS = ManualClock()()

Step = tuple[str, tuple[Any, ...], dict[str, Any]]


def _step(dice: Random, number: int) -> Step:
    """One verb that is one command, by name and arguments, so that both journals can be asked."""
    thread, entry = dice.choice(THREADS), dice.choice(ENTRIES)
    parent: dict[str, Any] = dice.choice([{}, {}, {"parent": entry}, {"parent": None}])
    steps: list[Step] = [
        ("append", (thread, st.user("x")), {"id": entry, "created_ns": _LATER_NS + number, **parent}),
        ("append", (thread, st.user("x")), {"id": f"new{number}", "expect_leaf": entry}),
        ("append_many", (thread, [st.NewEntry(content=st.user("y"), id=f"{n}{number}") for n in "pq"]), parent),
        ("update_thread", (thread,), {"title": f"title {number}"}),
        ("move_leaf", (thread, entry), {}),
        ("reset", (thread,), {}),
        ("fork", (dice.choice("ab"),), {"new_id": "f"}),
        ("acquire_lease", (thread,), {"owner": dice.choice("xy"), "turn_id": "t"}),
        ("delete_thread", (thread,), {}),
        ("create_thread", (thread,), {}),
    ]
    return dice.choice(steps)


def _outcome(result: Any) -> Any:
    return (type(result), str(result)) if isinstance(result, Exception) else result


def _look(journal: st.Journal) -> dict[tuple[str, str], Any]:
    seen: dict[tuple[str, str], Any] = {}
    for thread in THREADS:
        for verb in ("thread", "entries", "path", "reflog", "active_lease"):
            try:
                seen[thread, verb] = getattr(journal, verb)(thread)
            except st.ThreadNotFoundError:
                seen[thread, verb] = None
    return seen


async def _together(url: str, clock: ManualClock, steps: list[Step]) -> list[Any]:
    async with st.open_async(url, clock=clock) as journal:
        calls = [getattr(journal, verb)(*arguments, **options) for verb, arguments, options in steps]
        return [_outcome(result) for result in await asyncio.gather(*calls, return_exceptions=True)]


def _one_by_one(journal: st.Journal, steps: list[Step]) -> list[Any]:
    outcomes = []
    for verb, arguments, options in steps:
        try:
            outcomes.append(getattr(journal, verb)(*arguments, **options))
        except st.SessionTreeError as refusal:
            outcomes.append(_outcome(refusal))
    return outcomes


@pytest.mark.parametrize("store", DURABLE)
@pytest.mark.parametrize("seed", range(12))
def test_a_group_means_what_its_commands_mean_one_by_one(store: str, seed: int, tmp_path: Path) -> None:
    dice, clock = random.Random(seed), ManualClock()
    steps: list[Step] = [("create_thread", (thread,), {}) for thread in "ab"]
    steps += [_step(dice, number) for number in range(60)]
    with st.open("memory:", clock=clock) as model:
        expected, end = _one_by_one(model, steps), _look(model)
    assert asyncio.run(_together(url_of(store, tmp_path), clock, steps)) == expected
    with st.open(url_of(store, tmp_path), clock=clock) as journal:
        assert _look(journal) == end
        assert journal.check() == []
