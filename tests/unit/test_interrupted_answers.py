"""However a streamed answer is interrupted, what was shown of it is stored once, as a partial answer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

import sessiontree as st
from cli_shell import Shell
from provider_answers import Script, anthropic_events
from sessiontree.render.html import PageContent, render_html
from sessiontree.render.turns import is_cut_off

EVENTS: list[Any] = [
    json.loads(event.split(b"data: ", 1)[1]) for event in anthropic_events(Script(text=["one ", "two ", "three"]))
]
WORDS = {"one": 4, "two": 5, "three": 6, "all": len(EVENTS)}
"""How many events there are up to a word."""


@pytest.fixture
def chat(tmp_path: Path) -> Iterator[st.ThreadHandle]:
    with st.open(tmp_path / "journal.db") as journal:
        yield journal.open_thread("t", create=True)


def answers(entries: list[st.Entry]) -> list[tuple[str, bool]]:
    """Text and partial flag of each answer."""
    return [
        (entry.payload.message.text, entry.payload.is_partial)
        for entry in entries
        if isinstance(entry.payload, st.AssistantMessage)
    ]


@pytest.mark.parametrize("seconds", [None, 0, 60])
def test_a_caller_that_stops_leaves_what_it_has_seen(chat: st.ThreadHandle, seconds: float | None) -> None:
    with chat.turn(owner="w") as turn:
        for _ in turn.stream("anthropic", EVENTS, durable_every_seconds=seconds):
            break
        assert answers(chat.path()) == [("one ", True)]
        turn.append(st.assistant("instead"))
    assert answers(chat.path()) == [("one ", True), ("instead", False)]
    assert chat.path()[-1].payload == st.TurnMarker(status="completed")
    assert "## Assistant (partial answer)\n\none " in chat.export()


def test_readers_see_that_an_answer_is_partial(chat: st.ThreadHandle, tmp_path: Path) -> None:
    with chat.turn(owner="w") as turn:
        for _ in turn.stream("anthropic", EVENTS):
            break
    page = render_html(PageContent(thread=chat.journal.thread("t"), entries=tuple(chat.entries())))
    assert "<h2>partial answer" in page
    shown = Shell(tmp_path, "journal.db")("show", "t")
    assert "## partial answer · " in shown
    assert is_cut_off(chat.path()[:-1])


@pytest.mark.parametrize("seconds", [None, 0])
def test_an_error_of_the_caller_keeps_what_was_shown(chat: st.ThreadHandle, seconds: float | None) -> None:
    with pytest.raises(ZeroDivisionError), chat.turn(owner="w") as turn:  # noqa: PT012  the turn is what is interrupted
        answer = turn.stream("anthropic", EVENTS, durable_every_seconds=seconds)
        for text in answer:
            if text == "two ":
                raise ZeroDivisionError
    path = chat.path()
    assert answers(path) == [("one two ", True)]
    assert [type(entry.payload).__name__ for entry in path[-3:]] == ["AssistantMessage", "RunFailure", "TurnMarker"]


def test_an_interrupt_of_the_caller_keeps_what_was_shown(chat: st.ThreadHandle) -> None:
    with pytest.raises(KeyboardInterrupt), chat.turn(owner="w") as turn:  # noqa: PT012  the turn is what is interrupted
        for _ in turn.stream("anthropic", EVENTS):
            raise KeyboardInterrupt
    assert answers(chat.path()) == [("one ", True)]


def test_an_answer_whose_end_has_arrived_is_whole_even_if_the_caller_stops(chat: st.ThreadHandle) -> None:
    with chat.turn(owner="w") as turn:
        answer = turn.stream("anthropic")
        for event in EVENTS:
            answer.feed(event)
    assert answers(chat.path()) == [("one two three", False)]
    assert answer.message.text == "one two three"


def test_nothing_is_stored_of_an_answer_that_showed_nothing(chat: st.ThreadHandle) -> None:
    with chat.turn(owner="w") as turn:
        turn.stream("anthropic").feed(EVENTS[0])
    assert [entry.type for entry in chat.path()] == ["turn_marker", "turn_marker"]


def test_events_can_be_fed_one_by_one(chat: st.ThreadHandle) -> None:
    with chat.turn(owner="w") as turn:
        with turn.stream("anthropic") as answer:
            with pytest.raises(st.InvalidInputError, match="not stored yet"):
                _ = answer.entry
            assert "".join(answer.feed(event) for event in EVENTS) == "one two three"
        assert answer.entry.payload == chat.path()[-1].payload
        with pytest.raises(st.InvalidInputError, match="has ended"):
            answer.feed(EVENTS[0])
        with pytest.raises(st.AnswerInterruptedError), turn.stream("anthropic") as cut:  # noqa: PT012  the turn is what is interrupted
            for event in EVENTS[: WORDS["two"]]:
                cut.feed(event)
    assert answers(chat.path()) == [("one two three", False), ("one two ", True)]


@pytest.mark.parametrize("wrong", [-1, float("nan")])
def test_wrong_uses_of_a_stream_are_refused(chat: st.ThreadHandle, wrong: float) -> None:
    with chat.turn(owner="w") as turn:
        with pytest.raises(st.InvalidInputError, match="durable_every_seconds"):
            turn.stream("anthropic", EVENTS, durable_every_seconds=wrong)
        with pytest.raises(st.InvalidInputError, match="no dialect is named"):
            turn.stream("claude", EVENTS)
        with pytest.raises(st.InvalidInputError, match="no events"):
            list(turn.stream("anthropic"))


async def _events(count: int) -> AsyncIterator[Any]:
    for event in EVENTS[:count]:
        yield event
    await asyncio.Event().wait()


@pytest.mark.parametrize("seconds", [None, 0, 0.01])
def test_a_cancelled_task_keeps_what_was_shown(tmp_path: Path, seconds: float | None) -> None:
    async def run() -> None:
        async with st.open_async(tmp_path / "journal.db") as journal:
            chat = await journal.open_thread("t", create=True)
            seen = asyncio.Event()

            async def talk() -> None:
                async with chat.turn(owner="w") as turn:
                    async for text in turn.stream("anthropic", _events(WORDS["two"]), durable_every_seconds=seconds):
                        if text == "two ":
                            seen.set()

            task = asyncio.create_task(talk())
            await seen.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            async for entry in journal.watch(chat, after=None, timeout=10):
                if isinstance(entry.payload, st.TurnMarker) and entry.payload.status == "aborted":
                    break
            assert answers(await chat.path()) == [("one two ", True)]

    asyncio.run(run())


def test_async_iteration_stores_the_answer_and_a_break_leaves_a_part(tmp_path: Path) -> None:
    async def whole() -> AsyncIterator[Any]:
        for event in EVENTS:
            yield event

    async def run() -> None:
        async with st.open_async(tmp_path / "journal.db") as journal:
            chat = await journal.open_thread("t", create=True)
            async with chat.turn(owner="w") as turn:
                answer = turn.stream("anthropic", whole())
                assert [text async for text in answer] == ["one ", "two ", "three"]
                assert answer.message.text == "one two three"
                async for _ in turn.stream("anthropic", whole()):
                    break
            assert answers(await chat.path()) == [("one two three", False), ("one ", True)]

    asyncio.run(run())
