"""Streamed answers: stored once when they are whole, and as partial answers when they are not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sessiontree.errors import AnswerInterruptedError, DuplicateEntryError, FencedError
from sessiontree.journal import Journal
from sessiontree.model import AssistantMessage, Entry, Event
from sessiontree.testing.contract.base import Contract, Opened, is_on_disk

__all__ = ["AnswerContract"]


def _chunk(**choice: Any) -> dict[str, Any]:
    return {"model": "m", "choices": [{"index": 0, "delta": {}, "finish_reason": None, **choice}]}


_WORDS = ("one ", "two ", "three")
_EVENTS = [*(_chunk(delta={"content": word}) for word in _WORDS), _chunk(finish_reason="stop")]
"""The chunks of a streamed completion."""


def _answers(entries: list[Entry]) -> list[tuple[str, bool]]:
    found = [entry.payload for entry in entries if isinstance(entry.payload, AssistantMessage)]
    return [(answer.message.text, answer.is_partial) for answer in found]


def _saved(journal: Journal) -> str:
    events = [entry.payload for entry in journal.events("t")]
    return "".join(event.data["text"] for event in events if isinstance(event, Event))


class AnswerContract(Contract):
    @pytest.mark.parametrize("seconds", [None, 0, 60])
    def test_a_streamed_answer_is_stored_once(self, store: Opened, seconds: float | None) -> None:
        chat = store.journal.open_thread("t", create=True)
        with chat.turn(owner="w") as turn:
            answer = turn.stream("openai-chat", _EVENTS, durable_every_seconds=seconds)
            assert tuple(answer) == _WORDS
            assert answer.message.text == "one two three"
        assert _answers(store.reopen().path("t")) == [("one two three", False)]
        assert store.journal.path("t")[-2] == answer.entry

    def test_what_was_shown_of_an_interrupted_answer_is_stored(self, store: Opened) -> None:
        journal = store.journal
        chat = journal.open_thread("t", create=True)
        with chat.turn(owner="w") as turn:
            for text in turn.stream("openai-chat", _EVENTS):
                if text == "two ":
                    break
            with pytest.raises(AnswerInterruptedError):
                list(turn.stream("openai-chat", _EVENTS[:1]))
            turn.stream("openai-chat").feed(_EVENTS[2])
        assert _answers(chat.path()) == [("one two ", True), ("one ", True), ("three", True)]
        assert journal.context("t").messages == ()
        assert len(journal.context("t", include_partial=True).messages) == 3
        assert (journal.thread("t").messages, journal.thread("t").tokens) == (3, 0)

    def test_erasing_an_answer_erases_what_was_saved_of_it(self, store: Opened, tmp_path: Path) -> None:
        chat = store.journal.open_thread("t", create=True)
        secret = [_chunk(delta={"content": word}) for word in ("needle-", "51c7", "-answer ")]
        with chat.turn(owner="w") as turn:
            answer = turn.stream("openai-chat", [*secret, *_EVENTS], durable_every_seconds=0)
            list(answer)
            list(turn.stream("openai-chat", _EVENTS, durable_every_seconds=0))
        journal = store.journal
        assert journal.erase("t", [answer.id]).entries == 7
        journal = store.reopen()
        assert not is_on_disk(tmp_path, "needle-")
        assert not is_on_disk(tmp_path, "51c7")
        assert _answers(journal.path("t")) == [("one two three", False)]
        assert _saved(journal) == "one two three"

    @pytest.mark.parametrize("seconds", [0, 0.01])
    def test_what_was_saved_of_an_answer_is_found_after_a_crash(self, store: Opened, seconds: float) -> None:
        journal = store.journal
        chat = journal.open_thread("t", create=True)
        turn = chat.turn(owner="w")
        turn.__enter__()  # and never leaves
        answer = turn.stream("openai-chat", durable_every_seconds=seconds)
        for event in _EVENTS[:2]:
            answer.feed(event)
        for _ in journal.watch("t", after=None, timeout=60):
            if _saved(journal) == "one two ":
                break
        assert _answers(chat.path()) == []
        chat.resume(owner="w")
        assert _answers(chat.path()) == [("one two ", True)]
        with pytest.raises((FencedError, DuplicateEntryError)):  # noqa: PT012  a save may be the first to fail
            for event in _EVENTS[2:]:
                answer.feed(event)
            answer.finish()
        with pytest.raises(FencedError):
            turn.__exit__(None, None, None)
        assert _answers(chat.path()) == [("one two ", True)]
