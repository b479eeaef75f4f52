"""LangGraph's long-term memory on our documents, beside its own InMemoryStore."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langgraph.store.base import BaseStore, GetOp, Item, Op, PutOp, SearchOp
from langgraph.store.memory import InMemoryStore

import sessiontree as st
from opened import url_of
from sessiontree.adapters.langgraph import SessionTreeStore

STORES = ("memory", "sqlite", "jsonl", "postgres")


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SessionTreeStore]:
    with SessionTreeStore(url_of(request.param, tmp_path)) as made:
        yield made


def fill(store: BaseStore) -> None:
    for number in range(4):
        store.put(("users", f"u{number % 2}"), f"k{number}", {"age": 10 * number, "at": {"city": f"c{number}"}})
    store.put(("users", "u0", "deep/er"), "k/9", {"age": 0.5})
    store.put(("teams",), "k0", {"name": "blue", "age": 1})
    store.put(("users", "u1"), "k1", {"age": 11})
    store.delete(("users", "u0"), "k2")
    store.delete(("nowhere",), "k")


def seen(items: Any) -> list[Any]:
    return [(item.namespace, item.key, item.value) for item in items]


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"filter": {"age": 11}},
        {"filter": {"age": {"$gte": 11}}},
        {"filter": {"age": {"$lt": 11, "$ne": 0}}},
        {"filter": {"at": {"city": "c3"}}},
        {"limit": 1},
        {"limit": 2, "offset": 1},
    ],
    ids=str,
)
def test_a_search_finds_what_theirs_finds(store: SessionTreeStore, arguments: dict[str, Any]) -> None:
    theirs = InMemoryStore()
    fill(theirs)
    fill(store)
    for prefix in ((), ("users",), ("users", "u1"), ("user",)):
        found, expected = seen(store.search(prefix, **arguments)), seen(theirs.search(prefix, **arguments))
        if "limit" in arguments:
            assert len(found) == len(expected)
        else:
            assert sorted(found, key=str) == sorted(expected, key=str)


@pytest.mark.parametrize(
    "arguments",
    [{}, {"prefix": ("users",)}, {"suffix": ("*", "u1")}, {"max_depth": 1}, {"prefix": ("users", "*"), "limit": 1}],
    ids=str,
)
def test_namespaces_are_those_of_theirs(store: SessionTreeStore, arguments: dict[str, Any]) -> None:
    theirs = InMemoryStore()
    fill(theirs)
    fill(store)
    assert store.list_namespaces(**arguments) == [
        namespace for namespace in theirs.list_namespaces(**arguments) if namespace != ("nowhere",)
    ]


def test_an_item_knows_when_it_was_created_and_changed(store: SessionTreeStore) -> None:
    store.put(("a",), "k", {"v": 1})
    first = store.get(("a",), "k")
    store.put(("a",), "k", {"v": 2})
    second = store.get(("a",), "k")
    assert isinstance(first, Item)
    assert isinstance(second, Item)
    assert second.value == {"v": 2}
    assert second.created_at == first.created_at < second.updated_at


def test_a_batch_reads_before_it_writes_in_one_commit(store: SessionTreeStore) -> None:
    store.put(("a",), "old", {"v": 1})
    given: list[Op] = [
        PutOp(("a",), "old", None),
        PutOp(("a",), "new", {"v": 2}),
        GetOp(("a",), "old"),
        SearchOp(("a",)),
    ]
    results = asyncio.run(store.abatch(given))
    assert results[:2] == [None, None]
    assert isinstance(results[2], Item)
    assert seen(results[3]) == [(("a",), "old", {"v": 1})]
    assert seen(store.search(("a",))) == [(("a",), "new", {"v": 2})]


def test_a_query_ranks_by_common_words(store: SessionTreeStore) -> None:
    store.put(("a",), "1", {"text": "the cat sat"})
    store.put(("a",), "2", {"text": "a dog and a cat ran"})
    store.put(("a",), "3", {"text": "nothing"})
    found = store.search(("a",), query="dog cat")
    assert [(item.key, item.score) for item in found] == [("2", 1.0), ("1", 0.5), ("3", 0.0)]


def test_items_expire_unless_they_are_read(tmp_path: Path) -> None:
    now = 1_700_000_000_000_000_000
    minute = 60_000_000_000

    with st.open("memory:", clock=lambda: now) as journal:
        store = SessionTreeStore(journal)
        store.put(("a",), "k", {"v": 1}, ttl=2)
        store.put(("a",), "l", {"v": 1}, ttl=2)
        now += minute
        assert store.get(("a",), "k") is not None
        assert store.get(("a",), "l", refresh_ttl=False) is not None
        now += minute
        assert store.get(("a",), "k", refresh_ttl=False) is not None
        assert store.get(("a",), "l") is None
        now += minute
        assert store.search(("a",)) == []


def test_an_unknown_operator_is_refused(store: SessionTreeStore) -> None:
    store.put(("a",), "k", {"v": 1})
    with pytest.raises(st.InvalidInputError, match="near"):
        store.search(("a",), filter={"v": {"$near": 1}})
