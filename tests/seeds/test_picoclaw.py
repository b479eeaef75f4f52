"""Every symbol of picoclaw's session package, called by its name here and compared with what picoclaw does."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import sessiontree as st
from opened import open_store
from seed_rows import covers
from sessiontree.model.thread import Thread
from sessiontree.sessions.simple_store import SimpleStore
from sessiontree.testing.clock import ManualClock

KEY = "telegram:42/a\\b"


def verbs(*names: str) -> tuple[str, ...]:
    """The rows of methods of the interface and both of its implementations."""
    return tuple(f"{store}.{name}" for store in ("SessionStore", "JSONLBackend", "SessionManager") for name in names)


@pytest.fixture
def store(journal: st.Journal) -> SimpleStore:
    return SimpleStore(journal)


def texts(store: SimpleStore, key: str = KEY) -> list[str]:
    return [message.text for message in store.get_history(key)]


def fill(store: SimpleStore, count: int, key: str = KEY) -> None:
    for number in range(count):
        store.add_message(key, "user" if number % 2 == 0 else "assistant", str(number))


@covers(*verbs("AddMessage", "GetHistory"))
def test_messages_come_back_in_order_and_keys_do_not_mix(store: SimpleStore) -> None:
    assert store.get_history(KEY) == []
    fill(store, 3)
    store.add_message("telegram_42_a_b", "developer", "other")
    store.add_message(KEY, "user", "")
    assert texts(store) == ["0", "1", "2", ""]
    assert [message.role for message in store.get_history(KEY)] == ["user", "assistant", "user", "user"]
    assert [(one.role, one.text) for one in store.get_history("telegram_42_a_b")] == [("developer", "other")]


@covers(*verbs("AddFullMessage"))
def test_calls_results_and_reasoning_survive(store: SimpleStore) -> None:
    said = [
        st.assistant("look", calls=[st.call("c1", "ls", '{"path": 1.50}')], reasoning="why").message,
        st.tool_result("c1", "a\nb").message,
    ]
    for message in said:
        store.add_full_message(KEY, message)
    assert store.get_history(KEY) == said


@covers(*verbs("GetSummary", "SetSummary"))
def test_a_summary_is_set_replaced_and_kept_apart_from_the_history(store: SimpleStore) -> None:
    assert store.get_summary(KEY) == ""
    # The JSONL store of picoclaw sets it for a new key as well; its SessionManager silently does not.
    store.set_summary(KEY, "first")
    assert (store.get_summary(KEY), store.get_history(KEY)) == ("first", [])
    fill(store, 2)
    store.set_summary(KEY, "second")
    assert (store.get_summary(KEY), texts(store)) == ("second", ["0", "1"])
    store.set_summary(KEY, "")
    assert (store.get_summary(KEY), texts(store)) == ("", ["0", "1"])


@covers(*verbs("SetHistory"))
def test_a_history_is_replaced_and_the_summary_stays(store: SimpleStore) -> None:
    fill(store, 6)
    store.set_summary(KEY, "so far")
    store.truncate_history(KEY, 2)
    store.set_history(KEY, [st.user("new").message, st.assistant("answer").message])
    assert (texts(store), store.get_summary(KEY)) == (["new", "answer"], "so far")
    store.add_message(KEY, "user", "more")
    assert texts(store) == ["new", "answer", "more"]
    store.set_history(KEY, [])
    assert texts(store) == []
    store.undo(KEY)
    assert texts(store) == ["new", "answer", "more"]


@covers(*verbs("TruncateHistory"))
@pytest.mark.parametrize(("keep", "left"), [(3, ["3", "4", "5"]), (0, []), (-1, []), (6, None), (99, None)])
def test_the_last_messages_are_kept(keep: int, left: list[str] | None, store: SimpleStore) -> None:
    fill(store, 6)
    store.truncate_history(KEY, keep)
    assert texts(store) == (["0", "1", "2", "3", "4", "5"] if left is None else left)
    store.add_message(KEY, "user", "next")
    assert texts(store)[-1] == "next"


@covers("JSONLBackend", "SessionStore")
def test_a_cut_never_separates_a_call_from_its_result(store: SimpleStore) -> None:
    store.add_message(KEY, "user", "hi")
    store.add_full_message(KEY, st.assistant(calls=[st.call("c", "ls")]).message)
    store.add_full_message(KEY, st.tool_result("c", "x").message)
    store.truncate_history(KEY, 1)
    assert [message.role for message in store.get_history(KEY)] == ["assistant", "tool"]


@covers(*verbs("Save"))
def test_saving_deletes_nothing_and_compact_storage_gives_the_room_back(store: SimpleStore) -> None:
    fill(store, 6)
    store.set_summary(KEY, "S")
    store.truncate_history(KEY, 2)
    store.save(KEY)
    assert [message.text for message in store.get_full_history(KEY)] == ["0", "1", "2", "3", "4", "5"]
    assert store.compact_storage(KEY) >= 4
    assert (texts(store), store.get_summary(KEY)) == (["4", "5"], "S")
    store.save("unknown")
    with pytest.raises(st.InvalidInputError):
        store.save("")


@covers(*verbs("Close"), "NewJSONLBackend", "NewSessionManager")
@pytest.mark.parametrize("kind", ["sqlite", "jsonl", "postgres"])
def test_a_closed_store_is_there_again_when_it_is_opened(kind: str, tmp_path: Path) -> None:
    for key in (KEY, "..", "x" * 300):
        store = SimpleStore(open_store(kind, tmp_path))
        fill(store, 2, key)
        store.set_summary(key, "S")
        store.close()
        with pytest.raises(st.StoreError):
            store.add_message(key, "user", "late")
        again = SimpleStore(open_store(kind, tmp_path))
        assert (texts(again, key), again.get_summary(key)) == (["0", "1"], "S")
        again.close()


@covers("SessionManager.GetOrCreate", "Session", "SessionManager")
def test_a_session_is_created_once_and_has_its_key_and_times(store: SimpleStore, clock: ManualClock) -> None:
    created = store.get_or_create(KEY)
    assert isinstance(created, Thread)
    assert (created.id, created.created_ns, created.updated_ns, created.messages) == (KEY, clock(), clock(), 0)
    clock.advance(60)
    fill(store, 2)
    again = store.get_or_create(KEY)
    assert (again.created_ns, again.updated_ns, again.messages) == (created.created_ns, clock(), 2)
    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(lambda number: store.get_or_create(f"new {number % 10}").id, range(40)))
    assert len(set(made)) == 10
    with pytest.raises(st.InvalidInputError):
        store.get_or_create("")
