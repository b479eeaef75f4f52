"""The 24 promises of floret's own test suite (v0.3.16), each kept here, or kept differently for the reason given."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import sessiontree as st
from floret_rows import ids, say, threads
from opened import open_store
from sessiontree.context import FLORET_SCHEMA, build_context, extract_summary, project, segments_of
from sessiontree.testing.clock import ManualClock
from sessiontree.transfer.formats import import_sessions
from sessiontree.transfer.formats.floret.records import folder_name

DURABLE = ("sqlite", "jsonl", "postgres")


@pytest.fixture
def talk(journal: st.Journal) -> st.Journal:
    journal.create_thread("t")
    return journal


def texts(journal: st.Journal, thread_id: str = "t") -> list[str]:
    return [message.text for message in journal.context(thread_id).messages]


def test_01_an_append_moves_the_leaf_and_contexts_show_messages_only(talk: st.Journal) -> None:
    assert talk.thread("t").leaf is None
    first = talk.append("t", st.user("hello"), turn_id="1")
    talk.append("t", st.ModelChange(provider="fake", model="model"))
    last = talk.append("t", st.assistant("hi"), turn_id="1")
    assert talk.thread("t").leaf == last.id
    assert texts(talk) == ["hello", "hi"]
    assert first.raw
    assert first.raw_hash


def test_02_a_title_does_not_change_the_time_of_the_last_change(journal: st.Journal, clock: ManualClock) -> None:
    journal.create_thread("t", created_ns=9)
    clock.advance(60)
    fields: dict[str, Any] = {
        "title": "Plan",
        "title_status": "ready",
        "title_source": "provider",
        "title_updated_ns": 99,
    }
    journal.update_thread("t", **fields)
    found = journal.thread("t")
    assert {name: getattr(found, name) for name in fields} == fields
    assert found.updated_ns == 9


def test_03_lists_are_ordered_by_creation_whatever_was_updated(journal: st.Journal) -> None:
    for name, created in (("older", 1), ("beta", 3), ("alpha", 3), ("newer", 2)):
        journal.create_thread(name, created_ns=created)
    journal.create_thread("archived", created_ns=4, is_archived=True)
    journal.update_thread("older", updated_ns=100)
    assert journal.thread("older").updated_ns == 100
    first = journal.list_threads(order="created", limit=2)
    assert threads(first) == ["alpha", "beta"]
    assert threads(journal.list_threads(order="created", limit=None, cursor=first.cursor)) == ["newer", "older"]
    assert threads(journal.list_threads(order="created", is_archived=None, limit=1)) == ["archived"]


@pytest.mark.parametrize("kind", DURABLE)
def test_04_long_entries_survive_a_restart(kind: str, tmp_path: Path) -> None:
    long = "weather " * 24_000
    with open_store(kind, tmp_path) as journal:
        journal.create_thread("t")
        say(journal, "t", "start")
        journal.append("t", st.tool_result("f", long, name="web_fetch"), id="long")
    with open_store(kind, tmp_path) as journal:
        assert journal.entries("t")[1].payload == st.tool_result("f", long, name="web_fetch")
        assert ids(journal.path("t", "long")) == ["start", "long"]
        assert journal.append("t", st.user("go on")).parent == "long"


def written(root: Path, thread_id: str, leaf: str, *entries: Mapping[str, object]) -> None:
    folder = root / folder_name(thread_id)
    folder.mkdir(parents=True)
    time = "2026-06-03T00:00:00Z"
    meta = {"id": thread_id, "created_at": time, "updated_at": time, "leaf_id": leaf}
    (folder / "thread.json").write_text(json.dumps(meta))
    lines = [json.dumps({"thread_id": thread_id, "created_at": time, "message": {}, **entry}) for entry in entries]
    (folder / "entries.jsonl").write_text("".join(f"{line}\n" for line in lines))


FIRST = {"id": "a", "type": "user_message", "message": {"Role": "user", "Content": "first"}}
LAST = {"id": "b", "parent_id": "a", "type": "turn_marker", "turn_status": "completed"}


def test_05_a_broken_thread_hides_no_other(journal: st.Journal, tmp_path: Path) -> None:
    """Differently: floret hides the broken thread, too. Here it is imported with what can be read of it."""
    written(tmp_path / "f", "good", "a", FIRST)
    written(tmp_path / "f", "bad", "bad-entry")
    (tmp_path / "f" / folder_name("bad") / "entries.jsonl").write_text('{"id":"bad-entry"')
    report = import_sessions(journal, tmp_path / "f")
    assert texts(journal, "good") == ["first"]
    assert texts(journal, "bad") == []
    assert len(report.damage) == 1


def test_06_an_id_of_a_thread_or_a_fork_is_taken_once(journal: st.Journal) -> None:
    journal.create_thread("source")
    with pytest.raises(st.ThreadExistsError):
        journal.create_thread("source")
    say(journal, "source", "seed")
    journal.create_thread("existing")
    with pytest.raises(st.ThreadExistsError):
        journal.fork("source", new_id="existing")
    assert journal.entries("existing") == []


@pytest.mark.parametrize("kind", DURABLE)
def test_07_ids_that_look_alike_share_neither_entries_nor_leases(kind: str, tmp_path: Path) -> None:
    with open_store(kind, tmp_path) as journal:
        for name in ("a/b", "a_b"):
            journal.create_thread(name)
            say(journal, name, f"in {name}")
            journal.acquire_lease(name, owner=f"owner of {name}")
    with open_store(kind, tmp_path) as journal:
        assert [ids(journal.entries(name)) for name in ("a/b", "a_b")] == [["in a/b"], ["in a_b"]]


def test_08_a_leaf_move_keeps_the_old_branch(talk: st.Journal) -> None:
    say(talk, "t", "root", "a")
    talk.move_leaf("t", "root")
    say(talk, "t", "b")
    assert ids(talk.entries("t")) == ["root", "a", "b"]
    assert (ids(talk.path("t")), ids(talk.path("t", "a"))) == (["root", "b"], ["root", "a"])


def test_09_a_fork_ends_at_a_message_or_before_it(talk: st.Journal) -> None:
    say(talk, "t", "one", "two")
    at, before = talk.fork("t", at="two", new_id="at"), talk.fork("t", before="two", new_id="before")
    assert (texts(talk, at.id), texts(talk, before.id)) == (["one", "two"], ["one"])
    assert before.forked_from_entry == "one"


def test_10_a_compaction_replaces_the_head_and_deletes_nothing(talk: st.Journal) -> None:
    say(talk, "t", "old", "kept")
    talk.append("t", st.Compaction(summary="summary", first_kept_entry_id="kept"))
    say(talk, "t", "tail")
    checkpoint, *rest = talk.context("t").messages
    assert (checkpoint.role, checkpoint.kind) == ("user", "compaction_summary")
    assert "<compaction_summary" in checkpoint.text
    assert [message.text for message in rest] == ["kept", "tail"]
    assert len(talk.entries("t")) == 4


def test_11_kept_users_are_quoted_unless_the_tail_has_them(talk: st.Journal) -> None:
    say(talk, "t", "old", "latest")
    talk.append("t", st.Compaction(summary="S", first_kept_entry_id="latest", kept_user_entry_ids=("old", "latest")))
    talk.append("t", st.assistant("answer"))
    checkpoint, *rest = texts(talk)
    assert rest == ["latest", "answer"]
    assert '"entry_id": "old"' in checkpoint
    assert '"entry_id": "latest"' not in checkpoint


def test_12_kept_users_without_a_first_kept_entry_mean_no_tail(talk: st.Journal) -> None:
    say(talk, "t", "single")
    talk.append("t", st.Compaction(summary="S", kept_user_entry_ids=("single",)))
    (checkpoint,) = talk.context("t").messages
    assert checkpoint.kind == "compaction_summary"
    assert '"entry_id": "single"' in checkpoint.text


def test_13_only_the_last_compaction_counts(talk: st.Journal) -> None:
    say(talk, "t", "old", "kept1")
    talk.append("t", st.Compaction(id="c1", summary="S1", first_kept_entry_id="kept1", kept_user_entry_ids=("old",)))
    say(talk, "t", "kept2", "kept3")
    kept = ("kept2", "kept3")
    second = st.Compaction(
        id="c2",
        previous_id="c1",
        summary="S2",
        first_kept_entry_id="kept3",
        kept_user_entry_ids=kept,
        schema_version=FLORET_SCHEMA,
    )
    talk.append("t", second)
    checkpoint, tail = texts(talk)
    assert (extract_summary(checkpoint), tail) == ("S2", "kept3")
    assert checkpoint.count("<preserved_user_inputs>") == checkpoint.count("<compaction_summary") == 1
    assert "The retained tail follows" in checkpoint
    assert '"entry_id": "kept2"' in checkpoint
    assert '"entry_id": "old"' not in checkpoint


def test_14_a_fork_keeps_the_compaction_with_its_references(talk: st.Journal) -> None:
    """Differently: floret copies entries and rewrites references. A fork here has the same entries with the same ids."""
    say(talk, "t", "old", "kept")
    compaction = st.Compaction(id="c", summary="S", first_kept_entry_id="kept", kept_user_entry_ids=("old",))
    last = talk.append("t", compaction)
    fork = talk.fork("t", at=last.id)
    assert talk.path(fork.id)[-1].payload == last.payload
    assert texts(talk, fork.id) == texts(talk)
    assert texts(talk)[1:] == ["kept"]


def test_15_a_control_signal_becomes_plain_text(talk: st.Journal) -> None:
    say(talk, "t", "hello")
    ask = talk.append("t", st.assistant("x", calls=[st.call("ask", "ask_user", '{"question":"more?"}')]))
    user, signal = project(talk.path("t"))
    assert (user.entry.id, signal.entry.id, signal.message.role) == ("hello", ask.id, "assistant")
    assert signal.message.text == "Agent requested user input: more?"
    assert signal.message.tool_calls == ()
    assert texts(talk) == ["hello", "Agent requested user input: more?"]


def test_16_messages_name_their_entries(talk: st.Journal) -> None:
    say(talk, "t", "first", "second")
    found = talk.context("t").segments
    assert [(one.entry_id, one.parent_entry_id) for one in found] == [("first", ""), ("second", "first")]


def test_17_segments_show_artifacts_and_the_messages_stay_the_same(talk: st.Journal) -> None:
    """Differently: a result without a call is left out of a context, because providers refuse it; project() has it."""
    ref = st.ArtifactRef(id="artifact-1", label="tool-output.log", size=128)
    say(talk, "t", "inspect")
    talk.append("t", st.tool_result("c", "visible", name="read", view=st.ResultView(full_output=ref)))
    view = project(talk.path("t"))
    assert [item.message.role for item in view] == ["user", "tool"]
    shown = segments_of(view, "test_ui")[1]
    assert (shown.artifact_refs, shown.ui_preview) == ((ref,), "visible")
    assert [message.text for message in build_context(talk.path("t"), "test_ui").messages] == ["inspect"]


@pytest.mark.parametrize("kind", DURABLE)
def test_18_threads_entries_and_forks_survive_a_restart(kind: str, tmp_path: Path) -> None:
    with open_store(kind, tmp_path) as journal:
        journal.create_thread("t")
        say(journal, "t", "persist me")
        updated = journal.thread("t").updated_ns
        journal.update_thread("t", title="Title", title_status="ready", title_source="provider")
    with open_store(kind, tmp_path) as journal:
        thread = journal.thread("t")
        assert (thread.leaf, thread.title, thread.updated_ns) == ("persist me", "Title", updated)
        assert texts(journal) == ["persist me"]
        assert journal.fork("t", at="persist me", new_id="fork").leaf == "persist me"
    with open_store(kind, tmp_path) as journal:
        fork = journal.thread("fork")
        assert (fork.forked_from_thread, fork.forked_from_entry) == ("t", "persist me")
        assert texts(journal, "fork") == ["persist me"]


@pytest.mark.parametrize("kind", DURABLE)
def test_19_ids_are_not_given_again_after_a_restart(kind: str, tmp_path: Path) -> None:
    with open_store(kind, tmp_path) as journal:
        journal.create_thread("t")
        first = journal.append("t", st.user("first"))
    with open_store(kind, tmp_path) as journal:
        second = journal.append("t", st.user("second"))
        assert second.parent == first.id != second.id
        assert texts(journal) == ["first", "second"]


def test_20_a_deleted_thread_is_gone(talk: st.Journal) -> None:
    say(talk, "t", "hello")
    talk.delete_thread("t")
    for verb in (talk.thread, talk.entries, talk.delete_thread):
        with pytest.raises(st.ThreadNotFoundError):
            verb("t")


@pytest.mark.parametrize("leaf", ["a", "missing-leaf"])
def test_21_and_22_a_leaf_that_lags_behind_or_is_missing_is_repaired(
    leaf: str, journal: st.Journal, tmp_path: Path
) -> None:
    written(tmp_path / "f", "t", leaf, FIRST, LAST | {"created_at": "2026-06-03T00:00:01Z"})
    import_sessions(journal, tmp_path / "f")
    thread = journal.thread("t")
    assert (thread.leaf, thread.updated_ns) == ("b", journal.entry("t", "b").created_ns)
    assert ids(journal.path("t")) == ["a", "b"]


def test_23_a_leaf_and_a_parent_that_are_missing_do_not_hide_the_thread(journal: st.Journal, tmp_path: Path) -> None:
    """Differently: floret keeps the leaf and cannot read the path. Here the record is shown, and the report names it."""
    written(tmp_path / "f", "t", "missing-leaf", {**LAST, "id": "orphan", "parent_id": "missing-parent"})
    report = import_sessions(journal, tmp_path / "f")
    assert ids(journal.path("t")) == ["orphan"]
    assert any("missing-parent" in note.problem for note in report.notes)


def test_24_an_unknown_parent_is_refused(talk: st.Journal) -> None:
    with pytest.raises(st.InvalidParentError):
        talk.append("t", st.Custom(name="x"), parent="missing")
    assert talk.entries("t") == []
