"""What SimpleStore promises beyond picoclaw: any role, storage that is given back, reads of what is in force."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar, cast

import pytest

import sessiontree as st
from opened import open_store, url_of
from sessiontree.sessions.simple_store import SimpleStore
from sessiontree.stores.protocol import Store
from sessiontree.stores.queries import Query

KEY = "telegram:42"


@pytest.fixture(params=["memory", "sqlite", "jsonl", "postgres"])
def journal(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[st.Journal]:
    with open_store(request.param, tmp_path) as opened:
        yield opened


@pytest.fixture
def store(journal: st.Journal) -> SimpleStore:
    return SimpleStore(journal)


def texts(store: SimpleStore, key: str = KEY) -> list[str]:
    return [message.text for message in store.get_history(key)]


def fill(store: SimpleStore, count: int, key: str = KEY) -> list[str]:
    said = [f"m{number}" for number in range(count)]
    for text in said:
        store.add_message(key, "user", text)
    return said


@pytest.mark.parametrize("role", ["user", "assistant", "system", "tool", "developer", "function", "", "thought"])
def test_a_message_of_any_role_comes_back_as_it_was(store: SimpleStore, role: str) -> None:
    store.add_message(KEY, role, "hello")
    store.add_message(KEY, role, "")
    assert [(message.role, message.text) for message in store.get_history(KEY)] == [(role, "hello"), (role, "")]
    store.set_history(KEY, store.get_history(KEY)[:1])
    assert [(message.role, message.text) for message in store.get_history(KEY)] == [(role, "hello")]


@pytest.mark.parametrize(("role", "content"), [(None, "hello"), (5, "hello"), ("user", None), ("user", 5)])
def test_a_message_that_is_not_text_is_refused_and_nothing_changes(store: SimpleStore, role: Any, content: Any) -> None:
    store.add_message(KEY, "user", "before")
    with pytest.raises(st.InvalidInputError):
        store.add_message(KEY, role, content)
    with pytest.raises(st.InvalidInputError):
        store.set_history(KEY, cast("list[st.Message]", [{"role": role, "content": content}]))
    assert texts(store) == ["before"]


@pytest.mark.parametrize("keep_last", [None, 1.5, "2", True])
def test_a_number_of_messages_to_keep_is_an_integer(store: SimpleStore, keep_last: Any) -> None:
    said = fill(store, 3)
    with pytest.raises(st.InvalidInputError, match="keep_last must be an integer"):
        store.truncate_history(KEY, keep_last)
    assert texts(store) == said


def test_save_changes_nothing_and_compact_storage_reclaims_what_was_truncated(
    store: SimpleStore, journal: st.Journal
) -> None:
    fill(store, 6)
    store.save(KEY)
    assert store.compact_storage(KEY) == 0
    store.truncate_history(KEY, 2)
    store.save(KEY)
    assert len(store.get_full_history(KEY)) == 6
    assert store.compact_storage(KEY) == 4
    assert [message.text for message in store.get_full_history(KEY)] == ["m4", "m5"] == texts(store)
    assert store.compact_storage(KEY) == store.compact_storage("unknown") == 0
    with pytest.raises(st.NothingToUndoError):
        store.undo(KEY)
    store.add_message(KEY, "user", "next")
    store.truncate_history(KEY, 1)
    store.undo(KEY)
    assert texts(store) == ["m4", "m5", "next"]
    with pytest.raises(st.InvalidInputError):
        store.save("")
    assert journal.check() == []


@pytest.mark.parametrize("kind", ["sqlite", "jsonl"])
def test_an_erased_message_takes_less_than_300_bytes_however_long_it_was(kind: str, tmp_path: Path) -> None:
    with open_store(kind, tmp_path, durability="process_crash") as journal:
        store = SimpleStore(journal)
        store.set_history(KEY, [st.user(f"{number} " + "words " * 200).message for number in range(2_000)])
        before = _size(tmp_path)
        store.truncate_history(KEY, 1)
        assert store.compact_storage(KEY) == 1_999
    assert _size(tmp_path) < 300 * 2_000 < before


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def test_compact_storage_leaves_what_a_fork_or_a_label_shows(store: SimpleStore, journal: st.Journal) -> None:
    fill(store, 8)
    path = journal.path(KEY)
    journal.fork(KEY, at=path[1].id, new_id="fork")
    journal.label(KEY, path[3].id, "here")
    store.truncate_history(KEY, 2)
    assert store.compact_storage(KEY) == 2
    assert [message.text for message in store.get_full_history(KEY)] == ["m0", "m1", "m2", "m3", "m6", "m7"]
    assert texts(store, "fork") == ["m0", "m1"]


def test_compact_storage_erases_replaced_histories_and_old_summaries(store: SimpleStore, journal: st.Journal) -> None:
    fill(store, 3)
    store.set_summary(KEY, "an old summary")
    store.set_history(KEY, [st.user("new").message])
    store.set_summary(KEY, "a new summary")
    assert store.compact_storage(KEY) == 5
    assert (texts(store), store.get_summary(KEY)) == (["new"], "a new summary")
    assert "old summary" not in journal.export(KEY, format="json")


T = TypeVar("T")


class Counting:
    """A store that counts the entries that it returns."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.entries = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def read(self, query: Query[T]) -> T:
        answer = self._store.read(query)
        self.entries += len(answer) if isinstance(answer, list) else 0
        return answer


def test_reading_and_undoing_read_only_what_is_in_force(journal: st.Journal) -> None:
    journal.create_thread(KEY, contents=[st.user(f"m{number}") for number in range(2_000)])
    store = SimpleStore(journal)
    store.truncate_history(KEY, 10)
    counting = Counting(journal.store)
    journal.store = counting
    assert len(store.get_history(KEY)) == 10
    store.set_summary(KEY, "numbers")
    assert store.get_summary(KEY) == "numbers"
    store.undo(KEY)
    store.undo(KEY)
    assert counting.entries < 200
    assert len(store.get_history(KEY)) == 2_000


def test_the_async_store_does_the_same(tmp_path: Path) -> None:
    async def play() -> None:
        async with st.open_async(url_of("sqlite", tmp_path)) as journal:
            store = st.AsyncSimpleStore(journal)
            for number in range(6):
                await store.add_message(KEY, "developer", f"m{number}")
            await store.truncate_history(KEY, 2)
            assert await store.compact_storage(KEY) == 4
            assert [message.role for message in await store.get_full_history(KEY)] == ["developer", "developer"]

    asyncio.run(play())
