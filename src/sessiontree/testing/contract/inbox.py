"""The inbox: messages that arrive while a turn runs are appended at a safe point, in order, once."""

from __future__ import annotations

import pytest

from sessiontree.errors import (
    DuplicateEntryError,
    EntryNotFoundError,
    FencedError,
    InvalidInputError,
    ThreadNotFoundError,
)
from sessiontree.journal import Journal
from sessiontree.model import Entry, Queued
from sessiontree.model.builders import assistant, call, tool_result, user
from sessiontree.testing.clock import ManualClock
from sessiontree.testing.contract.base import Contract, Opened, fill, ids, texts

__all__ = ["InboxContract"]


def _said(journal: Journal, thread_id: str = "t") -> list[str]:
    """What users and models said on the path, in order, with tool calls and results by their type."""
    return [_words(entry) for entry in journal.path(thread_id) if entry.message is not None]


def _words(entry: Entry) -> str:
    return entry.message.text if entry.type in {"user_message", "assistant_message"} and entry.message else entry.type


class InboxContract(Contract):
    def test_a_queued_message_waits_beside_the_path(self, store: Opened) -> None:
        journal = store.journal
        journal.create_thread("t")
        fill(journal, "t", "a")
        first = journal.enqueue("t", user("one"), id="q1")
        journal.enqueue("t", user("two"), when="next_turn")
        assert journal.enqueue("t", user("one"), id="q1") == first
        with pytest.raises(DuplicateEntryError):
            journal.enqueue("t", user("other"), id="q1")
        journal = store.reopen()
        waiting = journal.inbox("t")
        assert [(one.message.text, one.when) for one in waiting] == [("one", "next_step"), ("two", "next_turn")]
        assert waiting[0] == first
        assert texts(journal, "t") == ["a"]
        assert [message.text for message in journal.context("t").messages] == ["a"]
        assert journal.prune("t").entries == 0
        assert len(journal.inbox("t")) == 2
        with pytest.raises(InvalidInputError):
            journal.enqueue("t", assistant("no"))
        with pytest.raises(InvalidInputError):
            journal.enqueue("t", user("no"), when="never")  # type: ignore[arg-type]
        with pytest.raises(ThreadNotFoundError):
            journal.enqueue("nowhere", user("no"))

    def test_a_turn_begins_with_what_waits(self, store: Opened) -> None:
        journal = store.journal
        journal.create_thread("t")
        for text, when in (("one", "next_turn"), ("two", "next_step"), ("three", "next_turn")):
            journal.enqueue("t", user(text), when=when)  # type: ignore[arg-type]
        with journal.turn("t") as turn:
            turn.append(assistant("answer"))
        journal = store.reopen()
        assert _said(journal) == ["one", "two", "three", "answer"]
        assert journal.inbox("t") == []
        with journal.turn("t"):
            pass
        assert _said(journal) == ["one", "two", "three", "answer"]
        placed = [entry for entry in journal.path("t") if entry.type == "user_message"]
        assert {entry.turn_id for entry in placed} == {journal.path("t", limit=20)[0].turn_id}

    def test_a_message_is_never_between_a_call_and_its_result(self, journal: Journal) -> None:
        journal.create_thread("t", contents=[user("go")])
        with journal.turn("t") as turn:
            turn.append(assistant("", calls=[call("c1", "f", "{}"), call("c2", "g", "{}")]))
            journal.enqueue("t", user("stop"))
            journal.enqueue("t", user("later"), when="next_turn")
            assert turn.take_inbox() == []
            turn.append(tool_result("c1", "1"))
            assert "stop" not in _said(journal)
            turn.append(tool_result("c2", "2"))
            assert _said(journal) == ["go", "tool_call", "tool_result", "tool_result", "stop"]
            turn.append(assistant("stopped"))
            assert [one.message.text for one in journal.inbox("t")] == ["later"]
        with journal.turn("t") as turn:
            assert _said(journal)[-1] == "later"
            journal.enqueue("t", user("more"), when="next_turn")
            assert len(turn.take_inbox()) == 1
        assert _said(journal)[-2:] == ["later", "more"]

    def test_what_is_withdrawn_is_not_appended(self, store: Opened) -> None:
        journal = store.journal
        journal.create_thread("t")
        one, two = (journal.enqueue("t", user(text)) for text in ("one", "two"))
        assert journal.withdraw("t", one.id)
        assert journal.withdraw("t", one.id)
        assert [waiting.id for waiting in store.reopen().inbox("t")] == [two.id]
        journal = store.journal
        with journal.turn("t"):
            pass
        assert texts(journal, "t") == ["two"]
        assert not journal.withdraw("t", two.id)
        with pytest.raises(EntryNotFoundError):
            journal.withdraw("t", "nowhere")
        with pytest.raises(InvalidInputError):
            journal.withdraw("t", journal.path("t")[0].id)

    def test_a_turn_that_died_leaves_nothing_lost_and_nothing_twice(self, store: Opened, clock: ManualClock) -> None:
        journal = store.journal
        journal.create_thread("t")
        journal.enqueue("t", user("one"))
        turn = journal.turn("t", owner="dead", ttl_seconds=1_000)
        turn.__enter__()
        journal.enqueue("t", user("two"))
        clock.advance(2_000)
        with journal.turn("t", owner="alive"):
            assert texts(journal, "t") == ["one", "two"]
        assert texts(journal, "t") == ["one", "two"]
        with pytest.raises(FencedError):
            turn.__exit__(None, None, None)
        assert texts(store.reopen(), "t") == ["one", "two"]

    def test_the_inbox_is_read_from_the_oldest_message_that_may_wait(self, store: Opened) -> None:
        journal = store.journal
        journal.create_thread("t")
        with journal.turn("t", owner="o") as turn:
            for number in range(3):
                journal.enqueue("t", user(str(number)), id=f"a{number}")
                turn.take_inbox()
            journal.enqueue("t", user("later"), id="later", when="next_turn")
            for number in range(3):
                turn.append(assistant("", calls=[call(f"c{number}", "f", "{}")]))
                journal.enqueue("t", user(str(number)), id=f"b{number}")
                turn.append(tool_result(f"c{number}", "done"))
        journal = store.reopen()
        queued = [entry.payload for entry in journal.entries("t", types=["queued"])]
        marks = [payload.settled for payload in queued if isinstance(payload, Queued)]
        assert marks == ["", "a0", "a1", "a2", "a2", "a2", "a2"]
        assert [one.id for one in journal.inbox("t")] == ["later"]
        assert journal.enqueue("t", user("later"), id="later", when="next_turn").id == "later"
        with pytest.raises(DuplicateEntryError):
            journal.enqueue("t", user("other"), id="later", when="next_turn")
        with journal.turn("t", owner="o"):
            assert journal.inbox("t") == []
        journal.enqueue("t", user("last"), id="c")
        last = journal.entry("t", "c").payload
        assert isinstance(last, Queued)
        assert last.settled == "b2"
        assert [one.id for one in journal.inbox("t")] == ["c"]
        assert ids(journal.entries("t", types=["queued"], newest_first=True, limit=2)) == ["c", "b2"]
        assert ids(journal.entries("t", types=["queued"], newest_first=True, limit=2, after="b1")) == ["b0", "later"]

    def test_a_watcher_sees_what_is_queued(self, journal: Journal) -> None:
        journal.create_thread("t")
        queued = journal.enqueue("t", user("one"))
        with journal.turn("t"):
            pass
        seen = list(journal.watch("t", after=None, timeout=0))
        assert [entry.type for entry in seen] == ["queued", "turn_marker", "user_message", "turn_marker"]
        assert seen[0].id == queued.id
