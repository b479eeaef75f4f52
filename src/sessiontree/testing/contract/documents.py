"""Documents: JSON values under a scope and a key, with versions and an end."""

from __future__ import annotations

import threading

import pytest
from msgspec.structs import replace

from sessiontree.errors import InvalidInputError, StaleDocumentError
from sessiontree.journal import Journal
from sessiontree.model.documents import Document
from sessiontree.testing.clock import ManualClock
from sessiontree.testing.contract.base import Contract, Opened

__all__ = ["DocumentContract"]

_VALUES: list[object] = [None, True, 7, -1.5, "text \u2028 \0", [], [1, {"a": None}], {}, {"a": {"b": ["c"]}}]


class DocumentContract(Contract):
    @pytest.mark.parametrize("value", _VALUES)
    def test_a_document_comes_back_as_it_was_put(self, store: Opened, value: object) -> None:
        put = store.journal.documents.put("app", "k/1 \u00e9", value)
        assert (put.scope, put.key, put.value) == ("app", "k/1 \u00e9", value)
        assert store.reopen().documents.get("app", "k/1 \u00e9") == put
        assert store.journal.documents.get("user", "k/1 \u00e9") is None

    def test_versions_grow_and_are_compared(self, store: Opened, clock: ManualClock) -> None:
        documents = store.journal.documents
        first = documents.put("app", "k", 1, expect_version=0)
        clock.advance(1)
        with pytest.raises(StaleDocumentError) as caught:
            documents.put("app", "k", 2, expect_version=0)
        assert (caught.value.key, caught.value.expected, caught.value.actual) == ("k", 0, first.version)
        second = documents.put("app", "k", 2, expect_version=first.version)
        assert second.version > first.version
        with pytest.raises(StaleDocumentError):
            documents.delete("app", "k", expect_version=first.version)
        assert documents.delete("app", "k", expect_version=second.version)
        assert not documents.delete("app", "k")
        clock.advance(1)
        third = store.reopen().documents.put("app", "k", 3)
        assert third.version > second.version
        with pytest.raises(StaleDocumentError):
            store.journal.documents.put("app", "missing", 1, expect_version=first.version)
        assert store.journal.documents.get("app", "missing") is None

    def test_documents_are_listed_by_prefix(self, store: Opened) -> None:
        for key in ("b", "a/2", "a/1", "a\u00e9", "a"):
            store.journal.documents.put("app", key, key)
        store.journal.documents.put("other", "a/3", 1)
        documents = store.reopen().documents
        assert [held.key for held in documents.list("app")] == ["a", "a/1", "a/2", "a\u00e9", "b"]
        assert [held.key for held in documents.list("app", "a/")] == ["a/1", "a/2"]
        assert [held.key for held in documents.list("app", "a", after="a/1", limit=1)] == ["a/2"]
        assert documents.list("app", limit=0) == documents.list("nowhere") == []

    def test_scopes_are_listed(self, store: Opened, clock: ManualClock) -> None:
        for scope in ("user/b", "app", "user/\u00e9", "user/a"):
            store.journal.documents.put(scope, "k", 1)
            store.journal.documents.put(scope, "l", 1)
        store.journal.documents.put("short", "k", 1, ttl_seconds=1)
        clock.advance(2)
        documents = store.reopen().documents
        assert documents.scopes() == ["app", "user/a", "user/b", "user/\u00e9"]
        assert documents.scopes(after="app", limit=2) == ["user/a", "user/b"]
        with pytest.raises(InvalidInputError):
            documents.scopes(limit=-1)

    def test_a_document_of_another_store_comes_in_as_it_is(self, store: Opened) -> None:
        there = Document(scope="app", key="k", value={"a": [1]}, version=7, updated_ns=5)
        assert store.journal.import_document(there) == there
        assert store.reopen().import_document(there) == store.journal.documents.get("app", "k") == there
        with pytest.raises(StaleDocumentError):
            store.journal.import_document(replace(there, value=2))
        assert store.journal.documents.put("app", "k", 3, expect_version=7).version > 7

    def test_a_document_expires(self, store: Opened, clock: ManualClock) -> None:
        documents = store.journal.documents
        put = documents.put("app", "k", 1, ttl_seconds=10)
        documents.put("app", "l", 1)
        clock.advance(9)
        assert documents.get("app", "k") == put
        clock.advance(1)
        assert documents.get("app", "k") is None
        assert [held.key for held in documents.list("app")] == ["l"]
        assert not documents.delete("app", "k")
        documents.put("app", "m", 1, ttl_seconds=1)
        clock.advance(5)
        assert documents.put("app", "m", 2, expect_version=0).value == 2
        documents.put("app", "n", 1, ttl_seconds=1)
        clock.advance(5)
        documents.purge()
        assert [held.key for held in store.reopen().documents.list("app")] == ["l", "m"]

    def test_of_many_writers_one_gets_each_version(self, journal: Journal) -> None:
        if type(journal) is not Journal:
            pytest.skip("one loop cannot be used by several threads")
        journal.documents.put("app", "count", 0)

        def count() -> None:
            done = 0
            while done < 5:
                now = journal.documents.get("app", "count")
                assert now is not None
                try:
                    journal.documents.put("app", "count", now.value + 1, expect_version=now.version)
                except StaleDocumentError:
                    continue
                done += 1

        threads = [threading.Thread(target=count) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        found = journal.documents.get("app", "count")
        assert found is not None
        assert found.value == 20

    @pytest.mark.parametrize("value", [float("nan"), b"x", {1: 2}, {"a": (1,)}, object(), "\ud800"])
    def test_what_is_not_json_is_refused(self, journal: Journal, value: object) -> None:
        with pytest.raises(InvalidInputError):
            journal.documents.put("app", "k", value)
        with pytest.raises(InvalidInputError):
            journal.documents.put("", "k", 1)
        with pytest.raises(InvalidInputError):
            journal.documents.put("app", "k", 1, ttl_seconds=0)
        assert journal.documents.list("app") == []
