"""No change of a SimpleStore is lost when two are made at once: the result is that of one after the other."""

import asyncio
import threading
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import sessiontree as st
from opened import open_store, url_of
from sessiontree.sessions.simple_store import SimpleStore
from simple_races import PAIRS, call, make, outcomes, prepare, state_of

KINDS = ("memory", "sqlite", "jsonl", "postgres")
ROUNDS = 8
MANY = 200


def race(store: SimpleStore, pair: tuple[str, str], key: str, pool: ThreadPoolExecutor) -> None:
    gate = threading.Barrier(2)

    def one(side: int) -> None:
        gate.wait()
        make(store, key, pair[side], side)

    prepare(store, key)
    for finished in [pool.submit(one, side) for side in (0, 1)]:
        finished.result()
    assert state_of(store, key) in outcomes(pair), (pair, key)


def race_in_threads(kind: str, folder: Path, pairs: Iterable[tuple[str, str]], rounds: int) -> None:
    with open_store(kind, folder, durability="process_crash") as journal, ThreadPoolExecutor(2) as pool:
        store = SimpleStore(journal)
        for pair in pairs:
            for number in range(rounds):
                race(store, pair, f"{pair} {number}", pool)
        assert journal.check() == []


@pytest.mark.parametrize("kind", KINDS)
def test_two_changes_in_two_threads_are_made_one_after_the_other(kind: str, tmp_path: Path) -> None:
    race_in_threads(kind, tmp_path, PAIRS, ROUNDS)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("pair", [("set_summary", "truncate"), ("set_summary", "set_history")], ids="-".join)
def test_a_summary_that_is_set_while_the_history_changes_is_kept(
    kind: str, pair: tuple[str, str], tmp_path: Path
) -> None:
    race_in_threads(kind, tmp_path, [pair], 200)


@pytest.mark.deep
@pytest.mark.parametrize("kind", KINDS)
def test_a_thousand_races_in_two_threads_lose_nothing(kind: str, tmp_path: Path) -> None:
    race_in_threads(kind, tmp_path, PAIRS, MANY)


@pytest.mark.parametrize("kind", KINDS)
def test_two_changes_in_two_tasks_are_made_one_after_the_other(kind: str, tmp_path: Path) -> None:
    async def play() -> None:
        async with st.open_async(url_of(kind, tmp_path), durability="process_crash") as journal:
            store = st.AsyncSimpleStore(journal)
            for pair in PAIRS:
                for number in range(ROUNDS):
                    key = f"{pair} {number}"
                    await store.set_history(key, [st.user(f"m{number}").message for number in range(8)])
                    await store.set_summary(key, "first")
                    await store.truncate_history(key, 5)
                    calls = [call(change, side) for side, change in enumerate(pair)]
                    made = [getattr(store, name)(key, *values) for name, values in calls]
                    for outcome in await asyncio.gather(*made, return_exceptions=True):
                        assert outcome is None or isinstance(
                            outcome, int | st.NothingToUndoError | st.NothingToRedoError
                        )
                    texts = tuple(message.text for message in await store.get_history(key))
                    assert (texts, await store.get_summary(key)) in outcomes(pair), (pair, key)

    asyncio.run(play())


@pytest.mark.parametrize("kind", KINDS)
def test_the_first_messages_of_a_new_key_are_all_kept(kind: str, tmp_path: Path) -> None:
    with open_store(kind, tmp_path, durability="process_crash") as journal, ThreadPoolExecutor(4) as pool:
        store = SimpleStore(journal)
        for number in range(50):
            said = [pool.submit(store.add_message, f"new {number}", "user", str(who)) for who in range(4)]
            for one in said:
                one.result()
            assert sorted(message.text for message in store.get_history(f"new {number}")) == ["0", "1", "2", "3"]
