"""The lowest rungs of the ladder: the first open, and a sample of everything else. ``make torture`` climbs all of it."""

from __future__ import annotations

import random

import pytest

from torture import ladder, script, tracer

pytestmark = pytest.mark.skipif(not tracer.is_possible(), reason="this system does not let a process trace its child")

ROUNDS = 12
IMAGES = 20
SEED = 17


@pytest.mark.parametrize("kind", ladder.KINDS)
def test_a_kill_at_any_call_of_the_first_open_left_a_path_that_could_not_be_opened(kind: str) -> None:
    tally = ladder.Tally()
    pictures = script.expected()
    for number in range(1, ladder.calls_of(kind, steps=0) + 1):
        ladder.sweep(ladder.Round(kind, "kill", number), tally, pictures, steps=0)
    assert tally.rounds["kill"] > 10
    assert tally.failures == []


@pytest.mark.parametrize("kind", ladder.KINDS)
def test_a_call_that_fails_or_never_returns_loses_nothing_that_was_acknowledged(kind: str) -> None:
    tally = ladder.Tally()
    pictures = script.expected()
    rounds = [
        ladder.Round(kind, action, number)
        for number in range(1, ladder.calls_of(kind) + 1)
        for action in ladder.ACTIONS
    ]
    for what in random.Random(SEED).sample(rounds, ROUNDS):
        ladder.sweep(what, tally, pictures)
    assert tally.failures == []
    assert tally.counts["acknowledged"] > ROUNDS


@pytest.mark.parametrize("kind", ladder.KINDS)
def test_a_power_cut_at_any_moment_leaves_what_was_acknowledged(kind: str) -> None:
    tally = ladder.Tally()
    pictures = script.expected()
    for seed in range(IMAGES):
        ladder.cut_power(ladder.Round(kind, "power", seed), tally, pictures)
    assert tally.failures == []


@pytest.mark.parametrize("kind", ladder.KINDS)
def test_a_store_that_does_not_sync_would_be_caught(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    recording = ladder.record(kind)
    unsynced = [change for change in recording.changes if change.kind != "sync"]
    monkeypatch.setattr(ladder, "record", lambda _: recording._replace(changes=unsynced))
    tally = ladder.Tally()
    for seed in range(IMAGES):
        ladder.cut_power(ladder.Round(kind, "power", seed), tally, script.expected())
    assert tally.failures != []


@pytest.mark.parametrize("kind", ladder.KINDS)
def test_four_writers_that_are_killed_lose_nothing_that_was_acknowledged(kind: str) -> None:
    tally = ladder.Tally()
    for seed in range(2):
        ladder.crowd(ladder.Round(kind, "crowd", seed), tally)
    assert tally.failures == []
    assert tally.counts["acknowledged"] > 0


def test_a_store_that_does_not_keep_its_word_is_caught() -> None:
    pictures = script.expected()
    told = script.Told(acknowledged=3, problem="")
    assert script.violations("memory:", ladder.PAGE.parent, told, pictures) != []
