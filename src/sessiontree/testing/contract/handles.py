"""Handles: the verbs of a journal bound to one thread."""

from __future__ import annotations

import pytest

from sessiontree.errors import InvalidInputError, ThreadNotFoundError
from sessiontree.journal import Journal
from sessiontree.model import SessionKey
from sessiontree.model.builders import assistant, user
from sessiontree.testing.clock import ManualClock
from sessiontree.testing.contract.base import Contract, Opened, texts

__all__ = ["HandleContract"]


class HandleContract(Contract):
    def test_a_handle_does_what_the_journal_does(self, store: Opened) -> None:
        journal = store.journal
        chat = journal.open_thread("t", create=True, title="demo")
        first = chat.append(user("hello"))
        with chat.turn(owner="w") as turn:
            turn.append(assistant("hi"))
        assert chat.title == chat.thread().title == "demo"
        chat.title = "renamed"
        assert [message.text for message in chat.context().messages] == ["hello", "hi"]
        fork = chat.fork(at=first.id, new_id="f")
        fork.append(assistant("hello yourself"))
        chat.rewind(first.id)
        assert texts(journal, "t") == ["hello"]
        chat.undo()
        assert chat.path() == journal.path("t")
        assert [move.reason for move in chat.reflog()] == ["rewind", "undo"]
        journal = store.reopen()
        assert journal.thread("t").title == "renamed"
        assert texts(journal, "f") == ["hello", "hello yourself"]

    def test_every_verb_takes_an_id_a_thread_or_a_handle(self, journal: Journal) -> None:
        thread = journal.create_thread("t")
        handle = journal.open_thread("t")
        for named in ("t", thread, handle):
            journal.append(named, user("x"))
            assert journal.thread(named).id == "t"
            assert journal.context(named).messages
        assert journal.open_thread(thread).id == journal.open_thread(handle).id == "t"
        assert journal.costs(handle).threads == {}
        journal.delete_thread(handle)
        for wrong in (None, 5, journal):
            with pytest.raises(InvalidInputError, match="named by its id"):
                journal.append(wrong, user("x"))  # type: ignore[arg-type]

    def test_a_missing_thread_is_created_only_if_asked_for(self, journal: Journal) -> None:
        with pytest.raises(ThreadNotFoundError):
            journal.open_thread("t")
        journal.open_thread("t", create=True, title="first")
        assert journal.open_thread("t", create=True, title="second").title == "first"
        assert journal.open_thread().id != journal.open_thread().id

    def test_a_key_names_one_conversation(self, store: Opened, clock: ManualClock) -> None:
        journal = store.journal
        key = SessionKey(agent="bot", channel="web", peer="ann: 100%")
        with pytest.raises(ThreadNotFoundError):
            journal.open_thread(key)
        chat = journal.open_thread(key, create=True)
        chat.append(user("hello"))
        journal = store.reopen()
        assert journal.open_thread(key).id == journal.open_thread(key, create=True).id == chat.id
        assert journal.thread(chat.id).key == key
        other = journal.open_thread(SessionKey(agent="bot", channel="web", peer="bob"), create=True)
        assert other.id != chat.id
        clock.advance(seconds=1)
        newer = journal.create_thread("newer", key=key, contents=[user("later")])
        assert journal.open_thread(key).id == newer.id
        for name in (newer.id, chat.id):
            journal.update_thread(name, is_archived=True)
        assert journal.open_thread(key, create=True).id in {newer.id, chat.id}
