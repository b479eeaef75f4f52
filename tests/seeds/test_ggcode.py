"""ggcode's session package, called by its names here and compared with what ggcode does."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest

import sessiontree as st
from known import of_kind
from seed_rows import covers
from sessiontree.context.markdown import markdown
from sessiontree.journal import Journal
from sessiontree.journal.address import default_url
from sessiontree.model.entry import Event
from sessiontree.model.thread import Thread
from sessiontree.stores.protocol import Store
from sessiontree.testing.clock import ManualClock
from sessiontree.workspace.location import workspace_path


@covers("CurrentWorkspacePath", "NormalizeWorkspacePath")
def test_a_workspace_has_one_spelling(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path.resolve() / "project"
    folder.mkdir()
    (tmp_path / "link").symlink_to(folder)
    monkeypatch.chdir(folder)
    assert workspace_path() == workspace_path("") + str(folder) == os.path.realpath(os.curdir)
    for path in (f"{folder}/", f"{tmp_path}/link", f"{folder}/../project", "../project/", folder):
        assert workspace_path(path) == str(folder)
    assert workspace_path(f"{folder}/missing/../gone/") == f"{folder}/gone"
    assert workspace_path("") == ""


@covers("DefaultDir", "NewDefaultStore")
def test_the_default_store_is_below_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SESSIONTREE_STORE", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert Path(default_url()).is_relative_to(tmp_path)
    with st.open() as journal:
        journal.create_thread("t")
    assert Path(default_url()).is_file()


@covers("NewJSONLStore", "JSONLStore", "JSONLStore.Dir", "Store")
def test_a_store_is_opened_by_its_folder_which_is_created(tmp_path: Path) -> None:
    with st.open(f"jsonl:///{tmp_path}/deep/sessions") as journal:
        assert isinstance(journal, Journal)
        assert all(hasattr(journal.store, name) for name in vars(Store) if not name.startswith("_"))
        assert journal.store.place == str(tmp_path / "deep" / "sessions")
        assert Path(journal.store.place).is_dir()


@covers("NewSession", "Session", "JSONLStore.EnsureMeta", "Session.HasUserInteraction")
def test_a_session_is_a_thread_that_is_empty_until_it_is_used(journal: st.Journal) -> None:
    first = journal.create_thread(vendor="openai", endpoint="main", model="m")
    second = journal.create_thread(title="New session")
    assert isinstance(first, Thread)
    assert first.id < second.id
    assert (first.vendor, first.endpoint, first.model, first.created_ns) == ("openai", "main", "m", first.updated_ns)
    assert list(journal.list_threads(is_empty=False)) == []
    journal.append(first.id, st.tool_result("1", "not the user"))
    journal.append(first.id, st.user("  "))
    assert journal.has_user_interaction(first.id) is False
    journal.append(first.id, st.user("hello"))
    assert journal.has_user_interaction(first.id) is True
    assert [thread.id for thread in journal.list_threads(is_empty=False)] == [first.id]
    with pytest.raises(st.ThreadNotFoundError):
        journal.thread("third")
    journal.append("third", st.user("hello"), create=True, fields={"model": "m"})
    assert {thread.id for thread in journal.list_threads(is_empty=False)} == {"third", first.id}


@covers("JSONLStore.AppendMessage", "JSONLStore.AppendMessageToDisk", "JSONLStore.Load", "Store.Load")
def test_an_appended_message_is_loaded_again(journal: st.Journal, clock: ManualClock) -> None:
    journal.create_thread("t", title="old")
    clock.advance(1)
    entry = journal.append("t", st.user("hello"))
    assert [entry.message for entry in journal.path("t")] == [entry.message]
    assert journal.thread("t").updated_ns == entry.created_ns
    with pytest.raises(st.ThreadNotFoundError, match="unknown"):
        journal.path("unknown")


@covers("JSONLStore.AppendCheckpoint", "JSONLStore.AppendCheckpointToDisk", "Store.AppendCheckpoint")
def test_a_checkpoint_replaces_what_is_loaded_and_keeps_the_history(journal: st.Journal) -> None:
    journal.create_thread("t")
    journal.append_many("t", [st.user("one"), st.assistant("two"), st.user("three")])
    for summary, kept in (("first", 1), ("last", 0)):
        entry = journal.replace_context("t", summary, kept)
        assert of_kind(st.Compaction, entry.payload).summary == summary
        messages = journal.context("t").messages
        assert (summary in messages[0].text, len(messages)) == (True, kept + 1)
    journal.append("t", st.user("four"))
    assert [message.text for message in journal.context("t").messages][1:] == ["four"]
    texts = [entry.message.text for entry in journal.path("t") if entry.message]
    assert texts == ["one", "two", "three", "four"]


@covers("JSONLStore.AppendTunnelEventToDisk", "TunnelEvent")
def test_an_event_is_stored_in_order_and_is_not_in_the_context(journal: st.Journal) -> None:
    journal.create_thread("t")
    sent = [Event(event_id=f"ev-{n}", stream="s", name="status", data={"n": n, "f": 1.5}) for n in range(3)]
    stored = [journal.append("t", event) for event in sent]
    assert [entry.payload for entry in journal.events("t")] == sent
    assert [entry.id for entry in journal.events("t", after=stored[0].id)] == [entry.id for entry in stored[1:]]
    assert journal.context("t").messages == ()


@covers("JSONLStore.Save", "Store.Save")
def test_saving_changes_metadata_and_loses_no_message(journal: st.Journal) -> None:
    journal.create_thread("t", title="old", model="m")
    journal.append("t", st.user("hello"))
    journal.replace_context("t", "notes")
    assert journal.update_thread("t", title="new", model="n").title == "new"
    assert (journal.thread("t").model, len(journal.path("t"))) == ("n", 2)


@covers("JSONLStore.List", "Store.List")
def test_a_list_is_newest_first_whole_and_changes_nothing(journal: st.Journal, clock: ManualClock) -> None:
    for number in range(60):
        journal.create_thread(f"t{number:02}")
        clock.advance(1)
    journal.append("t05", st.user("hello"))
    names = [thread.id for thread in journal.iter_threads()]
    assert names == ["t05", *(f"t{number:02}" for number in range(59, -1, -1) if number != 5)]
    assert len(journal.list_threads()) == 50
    assert [thread.id for thread in journal.list_threads(limit=None)] == names


@covers("JSONLStore.Delete", "Store.Delete")
def test_a_delete_removes_one_session(journal: st.Journal) -> None:
    for name in ("a", "b"):
        journal.create_thread(name)
    assert journal.delete_thread("a").thread_id == "a"
    assert [thread.id for thread in journal.list_threads()] == ["b"]
    with pytest.raises(st.ThreadNotFoundError):
        journal.delete_thread("a")


@covers("JSONLStore.CleanupOlderThan", "Store.CleanupOlderThan")
def test_a_cleanup_removes_what_is_older_than_a_time(journal: st.Journal) -> None:
    for second in range(4):
        journal.create_thread(f"t{second}", created_ns=second)
    assert len(journal.delete_older_than(2, is_dry_run=True)) == 2
    assert {thread.id for thread in journal.delete_older_than(2)} == {"t0", "t1"}
    assert {thread.id for thread in journal.list_threads()} == {"t2", "t3"}
    assert journal.delete_older_than(2) == []


@pytest.mark.parametrize("time", [None, 2.0, "2", True])
@pytest.mark.parametrize("is_dry_run", [True, False])
def test_a_cleanup_without_a_time_removes_nothing(journal: st.Journal, time: Any, is_dry_run: bool) -> None:
    journal.create_thread("t")
    with pytest.raises(st.InvalidInputError, match="in nanoseconds"):
        journal.delete_older_than(time, is_dry_run=is_dry_run)
    assert [thread.id for thread in journal.list_threads()] == ["t"]


def test_a_checkpoint_without_a_text_is_refused(journal: st.Journal) -> None:
    journal.append("t", st.user("hello"), create=True)
    missing: Any = None
    with pytest.raises(st.InvalidInputError, match="summary must be a text"):
        journal.replace_context("t", missing, 1)
    assert [message.text for message in journal.context("t").messages] == ["hello"]


@covers("ExportSessionMarkdown", "JSONLStore.ExportMarkdown", "Store.ExportMarkdown")
def test_markdown_has_the_head_and_every_message(journal: st.Journal) -> None:
    journal.create_thread("t", title="Fix it", vendor="openai", endpoint="main", model="m")
    calls = [st.call("1", "ls", '{"path":"."}')]
    journal.append_many("t", [st.user("hello"), st.assistant("look", calls=calls), st.tool_result("1", "a.txt")])
    text = journal.export("t")
    assert text == markdown(journal.thread("t"), journal.path("t"))
    assert text.startswith("# Fix it\n\n**Session:** t")
    assert "openai / main / m" in text
    assert re.findall(r"^## (\w+)", text, re.MULTILINE) == ["User", "Assistant", "tool"]
    assert '{"path":"."}' in text
