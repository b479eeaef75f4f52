"""Several threads and documents in one commit: all of the changes, or none of them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from sessiontree.errors import (
    BlobNotFoundError,
    DuplicateEntryError,
    FencedError,
    InvalidInputError,
    SessionTreeError,
    StaleDocumentError,
    StaleLeafError,
    StaleVersionError,
    ThreadExistsError,
    ThreadNotFoundError,
)
from sessiontree.journal import Journal
from sessiontree.journal.operations.changes import Changes
from sessiontree.journal.operations.entries import NewEntry
from sessiontree.model import ImagePart
from sessiontree.model.builders import assistant, system, user
from sessiontree.testing.contract.base import Contract, Opened, fill, ids, is_on_disk, texts

__all__ = ["CommitContract"]


def _everything(journal: Journal) -> list[object]:
    threads = list(journal.list_threads(is_archived=None, order="created"))
    return [
        threads,
        [(journal.entries(thread), journal.reflog(thread)) for thread in threads],
        [journal.documents.list(scope) for scope in journal.documents.scopes()],
    ]


def _prepared(journal: Journal) -> None:
    """A thread with a fork and a checkpointed branch, another thread, and a document."""
    journal.create_thread("a")
    fill(journal, "a", "1", "2", "3")
    journal.fork("a", at="2", new_id="fork")
    fill(journal, "fork", "4")
    journal.create_thread("b", title="b")
    journal.documents.put("app", "k", 1)


_REFUSED: list[tuple[Callable[[Changes], Changes], type[SessionTreeError]]] = [
    (lambda changes: changes.append("a", user("x"), expect_leaf="2"), StaleLeafError),
    (lambda changes: changes.append("nowhere", user("x")), ThreadNotFoundError),
    (lambda changes: changes.append("a", NewEntry(content=user("other"), id="1")), DuplicateEntryError),
    (lambda changes: changes.update_thread("b", title="x", expect_version=7), StaleVersionError),
    (lambda changes: changes.delete_thread("b", expect_leaf="1"), StaleLeafError),
    (lambda changes: changes.create_thread("a"), ThreadExistsError),
    (lambda changes: changes.put_document("app", "l", 3, expect_version=0), StaleDocumentError),
    (lambda changes: changes.delete_document("app", "missing", expect_version=3), StaleDocumentError),
]


class CommitContract(Contract):
    def test_changes_of_several_threads_and_documents_are_made_together(self, store: Opened) -> None:
        journal = store.journal
        _prepared(journal)
        version = journal.thread("b").version
        changes = (
            Changes()
            .append("a", user("5"), assistant("6"), expect_leaf="3")
            .append("new", NewEntry(content=user("7"), id="7"), create=True, fields={"title": "n"})
            .update_thread("b", title="B", expect_version=version)
            .put_document("app", "k", 2)
            .put_document("user", "k", {"x": 1}, expect_version=0)
            .move_leaf("fork", "1", expect_leaf="4")
        )
        appended, first, updated, document, other, moved = journal.commit(changes)
        assert isinstance(appended, list)
        assert isinstance(first, list)
        journal = store.reopen()
        assert texts(journal, "a") == ["1", "2", "3", "5", "6"]
        assert ids(journal.path("a"))[3:] == ids(appended)
        assert (ids(first), journal.thread("new").title) == (["7"], "n")
        assert journal.thread("b") == updated
        assert journal.thread("b").title == "B"
        assert journal.documents.get("app", "k") == document
        assert journal.documents.get("user", "k") == other
        assert journal.thread("fork") == moved

    def test_if_one_change_is_refused_none_is_made(self, store: Opened) -> None:
        journal = store.journal
        _prepared(journal)
        before = _everything(journal)
        for last, error in _REFUSED:
            changes = (
                Changes()
                .append("a", user("5"))
                .create_thread("new", contents=[user("6")])
                .fork("a", new_id="another")
                .move_leaf("fork", "1")
                .update_thread("b", tags=("x",))
                .put_document("app", "k", 2)
                .put_document("app", "l", 2)
                .delete_document("app", "k")
                .delete_thread("fork")
            )
            with pytest.raises(error):
                journal.commit(last(changes))
            assert _everything(journal) == before
        assert _everything(store.reopen()) == before
        fill(store.journal, "a", "next")
        assert texts(store.journal, "a") == ["1", "2", "3", "next"]

    def test_each_change_sees_those_before_it(self, store: Opened) -> None:
        journal = store.journal
        _prepared(journal)
        journal.commit(
            Changes()
            .append("a", NewEntry(content=user("5"), id="5"))
            .append("a", NewEntry(content=user("6"), id="6"), expect_leaf="5")
            .fork("a", at="5", new_id="new")
            .append("new", NewEntry(content=user("7"), id="7"))
            .put_document("app", "k", 2)
            .delete_document("app", "k")
            .put_document("app", "k", 3, expect_version=0)
            .delete_thread("b", expect_leaf=None)
            .create_thread("b", contents=[user("again")])
            .append("b", assistant("yes"))
        )
        journal = store.reopen()
        assert texts(journal, "a") == ["1", "2", "3", "5", "6"]
        assert texts(journal, "new") == ["1", "2", "3", "5", "7"]
        assert texts(journal, "b") == ["again", "yes"]
        found = journal.documents.get("app", "k")
        assert found is not None
        assert found.value == 3

    def test_a_thread_is_deleted_with_its_forks(self, store: Opened, tmp_path: Path) -> None:
        journal = store.journal
        journal.create_thread("a")
        journal.append("a", user("NEEDLE-one"), id="1")
        journal.fork("a", new_id="fork")
        journal.append("fork", user("NEEDLE-two"), id="2")
        journal.create_thread("other", contents=[user("kept")])
        first, second = journal.commit(Changes().delete_thread("a").delete_thread("fork"))
        assert [getattr(one, "entries_removed") for one in (first, second)] == [0, 2]  # noqa: B009
        journal = store.reopen()
        assert [thread.id for thread in journal.list_threads()] == ["other"]
        assert journal.stats().entries == 1
        if self.has_files:
            journal.close()
            assert not is_on_disk(tmp_path, "NEEDLE")
            store.reopen()

    def test_a_thread_can_be_replaced(self, store: Opened) -> None:
        journal = store.journal
        _prepared(journal)
        journal.commit(
            Changes().delete_thread("a", expect_leaf="3").create_thread("a", contents=[user("x"), user("y")])
        )
        journal = store.reopen()
        assert texts(journal, "a") == ["x", "y"]
        assert texts(journal, "fork") == ["1", "2", "4"]
        journal.commit(Changes().append("b", user("new")).delete_thread("b"))
        with pytest.raises(ThreadNotFoundError):
            store.reopen().thread("b")

    def test_an_artifact_moves_from_one_thread_to_another(self, store: Opened) -> None:
        if not self.has_blobs:
            pytest.skip("the store has no blobs")
        journal = store.journal
        ref = journal.put_artifact(b"picture", mime="image/png")
        journal.create_thread("a", contents=[user([ImagePart(artifact=ref)])])
        journal.create_thread("b")
        journal.commit(Changes().append("b", user([ImagePart(artifact=ref)])).delete_thread("a"))
        assert store.reopen().read_artifact(ref) == b"picture"
        journal = store.journal
        journal.commit(Changes().delete_thread("b").put_document("app", "k", 1))
        with pytest.raises(BlobNotFoundError):
            store.reopen().read_artifact(ref)

    def test_leases_and_system_prompts_count_as_elsewhere(self, journal: Journal) -> None:
        journal.create_thread("a")
        lease = journal.acquire_lease("a", owner="o")
        journal.commit(Changes().append("a", user("1"), lease=lease).put_document("app", "k", 1))
        journal.release_lease(lease)
        with pytest.raises(FencedError):
            journal.commit(Changes().put_document("app", "k", 2).append("a", user("2"), lease=lease))
        found = journal.documents.get("app", "k")
        assert found is not None
        assert found.value == 1
        journal.commit(Changes().append("a", system("be brief")).append("new", system("x"), user("y"), create=True))
        assert journal.context("a").system == "be brief"
        assert journal.thread("a").tokens == journal.context("a").tokens

    def test_a_system_prompt_replaces_the_one_that_the_changes_before_leave(self, journal: Journal) -> None:
        journal.append_many("t", [NewEntry(content=system("Be brief and kind."), id="p"), user("hello")], create=True)
        long, short = system("Answer in full sentences, and give reasons."), system("Be brief.")

        journal.commit(Changes().move_leaf("t", None).append("t", short))
        assert journal.thread("t").tokens == journal.context("t").tokens
        journal.commit(Changes().move_leaf("t", "p").append("t", user("again")).append("t", long).append("t", short))
        assert [entry.message.text for entry in journal.path("t") if entry.message] == [
            "Be brief and kind.",
            "again",
            "Answer in full sentences, and give reasons.",
            "Be brief.",
        ]
        assert journal.thread("t").tokens == journal.context("t").tokens
        journal.commit(Changes().create_thread("new", contents=[long]).append("new", short))
        assert journal.thread("new").tokens == journal.context("new").tokens

    def test_no_changes_are_no_commit(self, journal: Journal) -> None:
        assert journal.commit(Changes()) == []
        with pytest.raises(InvalidInputError):
            journal.commit([])  # type: ignore[arg-type]

    def test_of_many_writers_none_sees_half_a_commit(self, journal: Journal) -> None:
        if type(journal) is not Journal:
            pytest.skip("one loop cannot be used by several threads")
        names = ["a", "b"]
        for name in names:
            journal.create_thread(name)
        journal.documents.put("app", "count", 0)

        def count(order: list[str]) -> None:
            done = 0
            while done < 4:
                now = journal.documents.get("app", "count")
                assert now is not None
                changes = Changes().put_document("app", "count", now.value + 1, expect_version=now.version)
                for name in order:
                    changes.append(name, user(str(now.value)))
                try:
                    journal.commit(changes)
                except StaleDocumentError:
                    continue
                done += 1

        writers = [threading.Thread(target=count, args=(order,)) for order in (names, names[::-1], names)]
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.join()
        assert texts(journal, "a") == texts(journal, "b") == [str(number) for number in range(12)]
