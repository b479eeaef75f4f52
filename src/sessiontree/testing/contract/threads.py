"""Threads: create, read, update, archive, label, children, statistics."""

from __future__ import annotations

from pathlib import Path

import pytest

from sessiontree.errors import (
    DuplicateEntryError,
    EntryNotFoundError,
    InvalidInputError,
    StaleVersionError,
    StoreClosedError,
    ThreadArchivedError,
    ThreadExistsError,
    ThreadNotFoundError,
)
from sessiontree.journal import Journal
from sessiontree.journal.operations.entries import NewEntry
from sessiontree.model import SessionKey
from sessiontree.model.builders import assistant, call, system, tool_result, user
from sessiontree.testing.clock import ManualClock
from sessiontree.testing.contract.base import Contract, Opened, fill, ids

__all__ = ["ThreadContract"]


ALL_FIELDS = {
    "title": "Plan",
    "title_status": "ready",
    "title_source": "host",
    "title_error": "none",
    "title_updated_ns": 5,
    "status": "unread",
    "last_viewed_ns": 6,
    "updated_ns": 7,
    "is_archived": True,
    "parent_thread": "elsewhere",
    "workspace": "/srv/project",
    "vendor": "acme",
    "endpoint": "https://api.example",
    "model": "large-1",
    "key": SessionKey(agent="a", channel="c", peer="p", thread="t"),
    "state": "open",
    "tags": ("x", "y"),
    "custom": {"deep": [1, {"two": None}], "float": 0.5},
    "origin": {"file": "old.jsonl"},
}


class ThreadContract(Contract):
    def test_a_thread_gets_its_title_from_the_first_text_of_a_user(self, store: Opened) -> None:
        journal = store.journal
        for name, fields in (("t", {}), ("named", {"title": "Mine"}), ("host", {"title_source": "host"})):
            journal.create_thread(name, **fields)  # type: ignore[arg-type]
            journal.append_many(name, [system("Be brief."), user("/new"), assistant("hello")])
            assert journal.thread(name).title_source == fields.get("title_source", "")
            journal.append_many(name, [user("Fix the\n login page"), user("and the logout")])
            journal.append(name, user("now"))
        again = store.reopen()
        thread = again.thread("t")
        assert (thread.title, thread.title_status, thread.title_source) == (
            "Fix the login page",
            "ready",
            "first_message",
        )
        assert (thread.version, thread.title_updated_ns > 0) == (1, True)
        assert [again.thread(name).title for name in ("named", "host")] == ["Mine", ""]
        assert [found.id for found in again.list_threads(title_contains="LOGIN")] == ["t"]
        changed = again.update_thread("t", title="Login", expect_version=1)
        assert (changed.title, changed.title_source, changed.version) == ("Login", "", 2)
        made = again.create_thread("made", contents=[user("Plan the week")])
        assert (made.title, again.thread("made").title_source) == ("Plan the week", "first_message")

    def test_a_title_that_was_removed_is_made_again(self, journal: Journal) -> None:
        journal.create_thread("t")
        journal.append("t", user("Fix the login page"))
        journal.update_thread("t", title="", title_source="")
        journal.append("t", user("Fix the logout page"))
        assert journal.thread("t").title == "Fix the logout page"

    def test_a_thread_of_another_program_gets_no_title(self, journal: Journal) -> None:
        journal.create_thread("t", origin={"format": "other"})
        journal.append("t", user("Fix the login page"))
        assert journal.thread("t").title == ""

    def test_a_fork_gets_its_title_from_its_own_first_text(self, journal: Journal) -> None:
        journal.create_thread("t")
        journal.append("t", user("the first question"))
        journal.fork("t", new_id="f")
        assert journal.thread("f").title == ""
        journal.append("f", user("another one"))
        assert [journal.thread(name).title for name in ("t", "f")] == ["the first question", "another one"]

    def test_a_user_has_interacted_once_there_is_text_of_the_user(self, journal: Journal) -> None:
        journal.create_thread("t")
        journal.append_many("t", [system("Be brief."), user(" \n"), assistant("hello"), tool_result("1", "text")])
        assert journal.has_user_interaction("t") is False
        journal.append("t", user("hi"))
        assert journal.has_user_interaction("t") is True
        journal.reset("t")
        assert journal.has_user_interaction("t") is True

    def test_a_new_thread_is_empty_and_counts_nothing(self, journal: Journal, clock: ManualClock) -> None:
        thread = journal.create_thread("t", title="demo")
        assert (thread.id, thread.tree, thread.title, thread.version) == ("t", "t", "demo", 1)
        assert (thread.leaf, thread.entries, thread.messages, thread.tokens) == (None, 0, 0, 0)
        assert thread.created_ns == thread.updated_ns == clock()
        assert journal.thread("t") == thread
        assert journal.path("t") == journal.entries("t") == []
        assert journal.reflog("t") == []

    def test_generated_ids_are_unique_and_grow(self, journal: Journal) -> None:
        made = [journal.create_thread().id for _ in range(5)]
        assert sorted(set(made)) == made

    def test_every_field_comes_back_after_a_restart(self, store: Opened) -> None:
        created = store.journal.create_thread("t", **ALL_FIELDS)  # type: ignore[arg-type]
        again = store.reopen().thread("t")
        assert again == created
        assert {name: getattr(again, name) for name in ALL_FIELDS} == ALL_FIELDS

    def test_a_thread_id_is_taken_once(self, journal: Journal) -> None:
        journal.create_thread("t", title="first")
        with pytest.raises(ThreadExistsError, match="'t'") as caught:
            journal.create_thread("t", title="second")
        assert caught.value.thread_id == "t"
        assert journal.thread("t").title == "first"

    def test_an_unknown_thread_is_not_found_by_any_verb(self, journal: Journal) -> None:
        verbs = (
            lambda: journal.thread("no"),
            lambda: journal.update_thread("no", title="x"),
            lambda: journal.delete_thread("no"),
            lambda: journal.fork("no"),
            lambda: journal.append("no", user("x")),
            lambda: journal.append_many("no", []),
            lambda: journal.entry("no", "x"),
            lambda: journal.entries("no"),
            lambda: journal.path("no"),
            lambda: journal.path("no", None),
            lambda: journal.children("no", None),
            lambda: journal.label("no", "x", "y"),
            lambda: journal.labels("no"),
            lambda: journal.move_leaf("no", None),
            lambda: journal.rewind("no", "x"),
            lambda: journal.reset("no"),
            lambda: journal.undo("no"),
            lambda: journal.redo("no"),
            lambda: journal.reflog("no"),
            lambda: journal.acquire_lease("no", owner="me"),
            lambda: journal.active_lease("no"),
            lambda: journal.clear_expired_lease("no"),
            lambda: journal.turn("no").__enter__(),
            lambda: journal.resume("no"),
            lambda: journal.retry("no"),
            lambda: journal.context("no"),
            lambda: next(iter(journal.watch("no", timeout=0))),
        )
        for verb in verbs:
            with pytest.raises(ThreadNotFoundError, match="'no'") as caught:
                verb()
            assert caught.value.thread_id == "no"
        assert journal.stats().threads == 0

    def test_an_update_changes_what_it_names_and_nothing_else(self, journal: Journal, clock: ManualClock) -> None:
        before = journal.create_thread("t", title="old", model="m", tags=("a",))
        clock.advance(10)
        after = journal.update_thread("t", title="new", tags=("b", "c"))
        assert (after.title, after.model, after.tags, after.version) == ("new", "m", ("b", "c"), 2)
        assert after.updated_ns == before.updated_ns
        assert journal.thread("t") == after

    def test_the_time_of_the_last_change_can_be_set(self, store: Opened, clock: ManualClock) -> None:
        journal = store.journal
        created = journal.create_thread("t").updated_ns
        clock.advance(10)
        fill(journal, "t", "a")
        for time_ns in (created, 5, clock() + 1):
            assert journal.update_thread("t", updated_ns=time_ns).updated_ns == time_ns
            journal = store.reopen()
            assert journal.thread("t").updated_ns == time_ns
            assert [thread.updated_ns for thread in journal.list_threads()] == [time_ns]
        journal.update_thread("t", updated_ns=7, title="renamed")
        clock.advance(10)
        fill(journal, "t", "b")
        assert store.reopen().thread("t").updated_ns == clock()

    def test_an_update_with_a_stale_version_changes_nothing(self, journal: Journal) -> None:
        journal.create_thread("t", title="one")
        journal.update_thread("t", title="two", expect_version=1)
        with pytest.raises(StaleVersionError) as caught:
            journal.update_thread("t", title="three", expect_version=1)
        assert (caught.value.expected, caught.value.actual) == (1, 2)
        assert journal.thread("t").title == "two"

    def test_appends_do_not_count_as_updates(self, journal: Journal) -> None:
        version = journal.create_thread("t").version
        fill(journal, "t", "a")
        assert journal.update_thread("t", title="new", expect_version=version).leaf == "a"

    def test_an_update_after_an_append_keeps_the_leaf(self, store: Opened) -> None:
        store.journal.create_thread("t")
        fill(store.journal, "t", "a", "b")
        store.journal.update_thread("t", title="new")
        thread = store.reopen().thread("t")
        assert (thread.leaf, thread.entries, thread.title) == ("b", 2, "new")

    def test_fields_that_do_not_exist_are_refused(self, journal: Journal) -> None:
        journal.create_thread("t")
        with pytest.raises(InvalidInputError, match="colour"):
            journal.update_thread("t", colour="red")  # type: ignore[call-arg]
        with pytest.raises(InvalidInputError, match="leaf"):
            journal.create_thread("u", leaf="x")  # type: ignore[call-arg]
        with pytest.raises(InvalidInputError, match="title"):
            journal.update_thread("t", title=5)  # type: ignore[arg-type]
        with pytest.raises(InvalidInputError, match="empty"):
            journal.create_thread("")
        assert journal.thread("t").version == 1
        assert journal.stats().threads == 1

    def test_archiving_can_be_taken_back(self, journal: Journal) -> None:
        journal.create_thread("t")
        fill(journal, "t", "a")
        journal.update_thread("t", is_archived=True)
        assert not journal.list_threads().threads
        assert ids(journal.path("t")) == ["a"]
        journal.update_thread("t", is_archived=False)
        assert [thread.id for thread in journal.list_threads()] == ["t"]

    def test_counters_follow_the_active_path(self, journal: Journal) -> None:
        journal.create_thread("t")
        journal.append("t", system("be brief"), id="s")
        journal.append("t", user("hello there"), id="u")
        counted = journal.thread("t")
        assert (counted.entries, counted.messages) == (2, 1)
        assert counted.tokens > 0
        journal.append("t", assistant(calls=[call("c", "read")]))
        journal.append("t", tool_result("c", "text"))
        assert journal.thread("t").messages == 3
        journal.rewind("t", "u")
        assert journal.thread("t").tokens == counted.tokens

    def test_labels_name_entries_and_can_be_taken_away(self, store: Opened) -> None:
        journal = store.journal
        journal.create_thread("t")
        fill(journal, "t", "a", "b")
        journal.label("t", "a", "start")
        journal.label("t", "b", "end")
        assert journal.labels("t") == {"start": "a", "end": "b"}
        with pytest.raises(EntryNotFoundError):
            journal.label("t", "nowhere", "x")
        journal.label("t", "a", "")
        assert store.reopen().labels("t") == {"end": "b"}

    def test_a_label_that_is_given_to_another_entry_moves_there(self, journal: Journal) -> None:
        journal.create_thread("t")
        fill(journal, "t", "a", "b")
        journal.label("t", "a", "here")
        journal.label("t", "b", "here")
        assert journal.labels("t") == {"here": "b"}
        journal.label("t", "b", "")
        assert journal.labels("t") == {}

    def test_children_are_listed_in_the_order_of_their_commits(self, journal: Journal) -> None:
        journal.create_thread("t")
        fill(journal, "t", "a", "b")
        journal.append("t", user("c"), id="c", parent="a")
        journal.append("t", user("r"), id="r", parent=None)
        assert ids(journal.children("t", "a")) == ["b", "c"]
        assert ids(journal.children("t", None)) == ["a", "r"]
        assert journal.children("t", "b") == []
        with pytest.raises(EntryNotFoundError):
            journal.children("t", "nowhere")

    def test_a_thread_and_its_first_entries_are_one_commit(self, store: Opened) -> None:
        born = store.journal.create_thread("t", title="demo", contents=[system("Be kind."), user("hello")])
        assert (born.entries, born.messages) == (2, 1)
        assert store.reopen().thread("t") == born
        assert [entry.type for entry in store.journal.path("t")] == ["system_message", "user_message"]
        store.journal.append("t", user("again"))
        assert len(store.reopen().path("t")) == 3
        with pytest.raises(ThreadExistsError):
            store.journal.create_thread("t", contents=[user("never")])
        assert len(store.journal.entries("t")) == 3

    def test_the_first_entries_of_a_thread_may_bring_unused_ids(self, journal: Journal) -> None:
        given = [NewEntry(content=user(name), id=name) for name in ("a", "b")]
        journal.create_thread("t", contents=given)
        assert ids(journal.path("t")) == ["a", "b"]
        with pytest.raises(InvalidInputError):
            journal.create_thread("u", contents=[given[0], given[0]])
        journal.fork("t", new_id="f")
        journal.delete_thread("t")
        with pytest.raises(DuplicateEntryError):
            journal.create_thread("t", contents=[NewEntry(content=user("new"), id="n"), given[1]])
        with pytest.raises(ThreadNotFoundError):
            journal.thread("t")
        assert ids(journal.path("f")) == ["a", "b"]

    def test_a_thread_tells_when_it_was_put_away_or_brought_back(self, store: Opened, clock: ManualClock) -> None:
        store.journal.create_thread("t")
        assert store.journal.thread("t").archive_changed_ns == 0
        clock.advance(10)
        store.journal.update_thread("t", is_archived=True)
        archived = clock()
        clock.advance(10)
        store.journal.update_thread("t", is_archived=True, title="still away")
        assert store.reopen().thread("t").archive_changed_ns == archived
        clock.advance(10)
        store.journal.update_thread("t", is_archived=False)
        assert store.reopen().thread("t").archive_changed_ns == clock()

    def test_an_archived_thread_refuses_an_append_that_expects_it_to_live(self, journal: Journal) -> None:
        journal.create_thread("t")
        journal.append("t", user("a"), id="a", expect_live=True)
        journal.update_thread("t", is_archived=True)
        with pytest.raises(ThreadArchivedError):
            journal.append("t", user("b"), id="b", expect_live=True)
        assert journal.append("t", user("a"), id="a", expect_live=True).id == "a"
        assert ids(journal.path("t")) == ["a"]
        journal.append("t", user("b"), id="b")

    def test_statistics_count_everything_in_the_store(self, journal: Journal) -> None:
        journal.create_thread("t")
        journal.create_thread("u", is_archived=True)
        fill(journal, "t", "a", "b")
        journal.rewind("t", "a")
        journal.acquire_lease("t", owner="me")
        stats = journal.stats()
        assert (stats.threads, stats.archived, stats.entries, stats.moves, stats.leases) == (2, 1, 2, 1, 1)
        assert stats.bytes > 0

    def test_a_closed_journal_refuses_and_loses_nothing(self, tmp_path: Path) -> None:
        journal = self.open_journal(tmp_path)
        journal.create_thread("t")
        journal.close()
        journal.close()
        if self.is_durable:
            with self.open_journal(tmp_path) as again:
                assert again.thread("t").id == "t"

    def test_a_closed_store_says_so(self, tmp_path: Path) -> None:
        journal = self.open_journal(tmp_path)
        journal.create_thread("t")
        journal.store.close()
        for verb in (lambda: journal.thread("t"), lambda: journal.append("t", user("x"))):
            with pytest.raises(StoreClosedError, match="open it again"):
                verb()
        journal.close()
