"""The weaknesses of seed 001's session store (its list 2.5), each named after what goes wrong there."""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

import sessiontree as st
from sessiontree.model import Message, TextPart
from sessiontree.sessions.simple_store import SimpleStore
from stores import ALL, DURABLE, open_journal, reopened

on_all = pytest.mark.parametrize("store", ALL)


def says(simple: SimpleStore, key: str) -> list[str]:
    return [message.text for message in simple.get_history(key)]


@pytest.fixture
def simple() -> Iterator[SimpleStore]:
    with st.open("memory:") as journal:
        yield SimpleStore(journal)


def test_1_a_torn_end_of_the_file_does_not_take_the_next_message_with_it(tmp_path: Path) -> None:
    with open_journal("jsonl", tmp_path) as journal:
        simple = SimpleStore(journal)
        simple.add_message("k", "user", "first")
    (file,) = [path for path in tmp_path.rglob("*.jsonl") if b"first" in path.read_bytes()]
    with file.open("ab") as end:
        end.write(b'{"kind":"entry","torn')
    with open_journal("jsonl", tmp_path) as journal:
        simple = SimpleStore(journal)
        simple.add_message("k", "user", "second")
        assert says(simple, "k") == ["first", "second"]
    with open_journal("jsonl", tmp_path) as journal:
        assert says(SimpleStore(journal), "k") == ["first", "second"]


@on_all
def test_2_keys_that_look_alike_do_not_share_a_history(store: str, tmp_path: Path) -> None:
    keys = ["a:b", "a_b", "a/b", "a\\b", "../a", ".", " a:b", "A:B"]
    with open_journal(store, tmp_path) as journal:
        simple = SimpleStore(journal)
        for key in keys:
            simple.add_message(key, "user", f"in {key}")
        assert [says(simple, key) for key in keys] == [[f"in {key}"] for key in keys]


@pytest.mark.parametrize("store", DURABLE)
def test_3_a_message_of_12_megabytes_does_not_empty_the_history(store: str, tmp_path: Path) -> None:
    journal = open_journal(store, tmp_path)
    simple = SimpleStore(journal)
    simple.add_message("k", "user", "before")
    simple.add_message("k", "assistant", "x" * 12_000_000)
    simple.add_message("k", "user", "after")
    journal = reopened(journal, store, tmp_path)
    simple = SimpleStore(journal)
    assert [len(text) for text in says(simple, "k")] == [6, 12_000_000, 5]
    simple.truncate_history("k", 1)
    assert says(simple, "k") == ["after"]
    journal.close()


@pytest.mark.parametrize("store", DURABLE)
def test_4_a_key_of_1000_bytes_works_and_errors_are_raised(store: str, tmp_path: Path) -> None:
    with open_journal(store, tmp_path) as journal:
        simple = SimpleStore(journal)
        simple.add_message("k" * 1_000, "user", "hello")
        assert says(simple, "k" * 1_000) == ["hello"]
        with pytest.raises(st.InvalidInputError):
            simple.add_message("k", "user", "\ud800")
        assert says(simple, "k") == []
        with pytest.raises(st.InvalidInputError):
            simple.save("")
    with pytest.raises(st.StoreClosedError):
        simple.add_message("k", "user", "too late")


def test_5_keeping_the_last_one_keeps_a_message_not_a_piece_of_bookkeeping(simple: SimpleStore) -> None:
    for number in range(5):
        simple.add_message("k", "user", str(number))
    simple.journal.label(simple.thread_id("k"), simple.journal.path(simple.thread_id("k"))[0].id, "start")
    simple.truncate_history("k", 1)
    assert says(simple, "k") == ["4"]


@on_all
def test_6_truncating_and_saving_destroys_nothing(store: str, tmp_path: Path) -> None:
    journal = open_journal(store, tmp_path)
    simple = SimpleStore(journal)
    for number in range(6):
        simple.add_message("k", "user", str(number))
    simple.set_summary("k", "six numbers")
    simple.truncate_history("k", 2)
    simple.save("k")
    journal = reopened(journal, store, tmp_path)
    simple = SimpleStore(journal)
    assert (says(simple, "k"), simple.get_summary("k")) == (["4", "5"], "six numbers")
    assert [message.text for message in simple.get_full_history("k")] == list("012345")
    simple.undo("k")
    assert says(simple, "k") == list("012345")
    journal.close()


def test_6_truncating_does_not_part_a_tool_call_from_its_result(simple: SimpleStore) -> None:
    for payload in (
        st.user("look"),
        st.assistant(calls=[st.call("a", "ls"), st.call("b", "ls")]),
        st.tool_result("a", "1"),
        st.tool_result("b", "2"),
        st.assistant("done"),
    ):
        simple.add_full_message("k", payload.message)
    for keep, kept in ((1, 1), (2, 4), (3, 4), (4, 4)):
        simple.truncate_history("k", keep)
        assert len(simple.get_history("k")) == kept
        simple.undo("k")


@on_all
def test_7_replacing_a_history_is_one_step_that_a_crash_cannot_halve(store: str, tmp_path: Path) -> None:
    journal = open_journal(store, tmp_path)
    simple = SimpleStore(journal)
    simple.add_message("k", "user", "old")
    simple.set_summary("k", "what was")
    simple.set_history("k", [Message(role="user", parts=(TextPart(text="new"),))])
    journal = reopened(journal, store, tmp_path)
    simple = SimpleStore(journal)
    assert (says(simple, "k"), simple.get_summary("k")) == (["new"], "what was")
    simple.undo("k")
    assert says(simple, "k") == ["old"]
    journal.close()


def test_7_an_emptied_history_comes_back(simple: SimpleStore) -> None:
    simple.add_message("k", "user", "old")
    simple.set_history("k", [])
    assert says(simple, "k") == []
    simple.undo("k")
    assert says(simple, "k") == ["old"]
    simple.truncate_history("k", 0)
    assert says(simple, "k") == []
    simple.add_message("k", "user", "next")
    assert says(simple, "k") == ["next"]
    simple.undo("k")
    assert says(simple, "k") == ["old", "next"]


def test_8_messages_have_ids_and_times_and_sessions_can_be_listed(simple: SimpleStore) -> None:
    simple.add_message("k", "user", "hello")
    (entry,) = simple.journal.path(simple.thread_id("k"))
    assert entry.id
    assert entry.created_ns > 0
    assert [thread.title for thread in simple.journal.list_threads()] == ["k"]


def test_8_what_is_read_cannot_change_what_is_stored(simple: SimpleStore) -> None:
    simple.add_full_message("k", st.assistant(calls=[st.call("a", "ls")]).message)
    (read,) = simple.get_history("k")
    with pytest.raises(AttributeError):
        read.parts = ()  # type: ignore[misc]
    simple.get_history("k").clear()
    assert len(simple.get_history("k")) == 1


def test_9_a_session_of_2000_messages_is_not_rewritten_for_each_one(tmp_path: Path) -> None:
    with st.open(f"jsonl:///{tmp_path / 'journal'}", durability="process_crash") as journal:
        simple = SimpleStore(journal)
        simple.add_message("k", "user", "x" * 1_000)
        sizes = []
        for _ in range(200):
            simple.add_message("k", "user", "x" * 1_000)
            sizes.append(sum(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file()))
        growth = [after - before for before, after in pairwise(sizes)]
        assert max(growth) < 4_000


def test_unknown_keys_have_an_empty_history_and_no_summary_and_reading_creates_nothing(simple: SimpleStore) -> None:
    assert (simple.get_history("no"), simple.get_summary("no")) == ([], "")
    simple.truncate_history("no", 3)
    assert len(simple.journal.list_threads()) == 0


def test_a_summary_set_on_an_unknown_session_is_kept(simple: SimpleStore) -> None:
    simple.set_summary("k", "notes")
    assert simple.get_summary("k") == "notes"
    simple.add_message("k", "user", "hello")
    assert (says(simple, "k"), simple.get_summary("k")) == (["hello"], "notes")
    simple.set_summary("k", "")
    assert (says(simple, "k"), simple.get_summary("k")) == (["hello"], "")


def test_messages_of_the_system_are_part_of_the_history(simple: SimpleStore) -> None:
    simple.add_message("k", "system", "be brief")
    simple.add_message("k", "user", "hello")
    assert [message.role for message in simple.get_history("k")] == ["system", "user"]


def test_undo_without_anything_to_undo_says_so(simple: SimpleStore) -> None:
    simple.add_message("k", "user", "hello")
    with pytest.raises(st.NothingToUndoError):
        simple.undo("k")
