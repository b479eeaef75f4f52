"""Copying a store into another kind of store: everything that a reader can see comes along."""

import random
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import sessiontree as st
from postgres_server import process_database, with_options
from sessiontree.model.codec import encode_payload
from sessiontree.stores.commands import Command, DeleteThread, Draft, ImportHistory, PositionedDraft, Result
from sessiontree.stores.protocol import Store
from stores import ALL, FailingStore, Interrupted, open_journal

OpenStore = Callable[[str, str], st.Journal]
"""Opens a store, given its kind and its name."""
KINDS = ("memory", "jsonl", "sqlite", "postgres")


@pytest.fixture
def open_store(tmp_path: Path) -> OpenStore:
    """A new store of a kind each time."""

    def open_store(kind: str, name: str) -> st.Journal:
        match kind:
            case "memory":
                return st.open("memory:")
            case "jsonl":
                return st.open(f"jsonl:///{tmp_path}/{name}")
            case "sqlite":
                return st.open(tmp_path / f"{name}.db")
            case _:
                return st.open(with_options(process_database(), namespace=f"{tmp_path}/{name}"))

    return open_store


def fill(journal: st.Journal) -> None:
    """A bit of everything: branches, forks of forks, deleted and reborn threads, odd ids, reflogs."""
    journal.create_thread("root\0", title="the root", tags=("a", "b"), custom={"n": 1})
    entries = journal.append_many("root\0", [st.user(f"q{n}") for n in range(5)])
    journal.rewind("root\0", entries[2].id)
    journal.append("root\0", st.assistant("another way"))
    journal.undo("root\0")
    journal.append("root\0", st.user("on a branch"), parent=entries[0].id)
    journal.fork("root\0", at=entries[3].id, new_id="fork", title="f", workspace="w")
    own = journal.append("fork", st.user("own"), id="own")
    journal.fork("fork", at="own", new_id="grandchild")
    journal.append("grandchild", st.user("far"), turn_id="turn")
    journal.fork("root\0", before=entries[0].id, new_id="empty")
    journal.append("empty", st.Custom(name="c", data={"x": [1, None]}))
    journal.update_thread("empty", is_archived=True)
    journal.delete_thread("fork")
    journal.create_thread("lonely")
    journal.create_thread("gone", title="old")
    kept = journal.append("gone", st.user("kept by a fork"))
    journal.append("gone", st.user("seen by nobody"))
    journal.fork("gone", at=kept.id, new_id="keeper")
    journal.delete_thread("gone")
    journal.create_thread("gone", title="reborn")
    journal.append("gone", st.user("a new life"))
    journal.fork("gone", new_id="child of the reborn")
    assert own.thread_id == "fork"
    fill_beside_the_path(journal)


def fill_beside_the_path(journal: st.Journal) -> None:
    """Messages in an inbox, entries that never were the leaf, and documents."""
    journal.create_thread("busy")
    first = journal.append("busy", st.user("work"))
    for number in range(3):
        journal.enqueue("busy", st.user(f"also {number}"), id=f"q{number}")
        journal.append("busy", st.assistant(f"step {number}"))
    journal.withdraw("busy", "q1")
    journal.append_many("busy", [st.user("beside"), st.user("below it")], moves_leaf=False)
    journal.append("busy", st.user("another way"), parent=first.id)
    journal.enqueue("busy", st.user("last"), id="q3")
    with journal.turn("busy", owner="o"):
        journal.enqueue("busy", st.user("for the next turn"), id="q4", when="next_turn")
    journal.fork("busy", new_id="fork of the busy")
    journal.enqueue("fork of the busy", st.user("to the fork"), id="q5")
    journal.documents.put("app", "state", {"n": [1]})
    journal.documents.put("app", "é\u2028", None, ttl_seconds=1000)
    journal.documents.put("user\0", "state", "x")


def content(journal: st.Journal) -> dict[str, object]:
    """Everything that a reader can see."""
    threads = list(journal.list_threads(is_archived=None, limit=1000))
    return {
        thread.id: (
            thread,
            journal.entries(thread.id),
            journal.path(thread.id),
            journal.reflog(thread.id),
            journal.inbox(thread.id),
        )
        for thread in threads
    } | {scope: journal.documents.list(scope) for scope in journal.documents.scopes()}


@pytest.mark.parametrize("source", KINDS)
@pytest.mark.parametrize("target", KINDS)
def test_a_copy_shows_the_same_as_its_source(open_store: OpenStore, source: str, target: str) -> None:
    with open_store(source, "source") as old, open_store(target, "target") as new:
        fill(old)
        report = st.copy_store(old, new)
        assert content(new) == content(old)
        assert new.check() == []
        assert report.threads == old.stats().threads
        assert report.documents == 3
        assert new.stats().entries == old.stats().entries, "shared entries stay shared"
        again = st.copy_store(old, new)
        assert again.copied == 0
        assert content(new) == content(old)


@pytest.mark.parametrize("target", KINDS)
def test_a_copy_goes_on_living(open_store: OpenStore, target: str) -> None:
    with open_store("memory", "source") as old, open_store(target, "target") as new:
        fill(old)
        st.copy_store(old, new)
        for journal in (old, new):
            journal.undo("root\0")
            journal.append("keeper", st.user("after the copy"), id="later", created_ns=5)
            journal.delete_thread("grandchild")
        assert content(new)["keeper"] == content(old)["keeper"]
        assert new.stats().entries == old.stats().entries
        assert new.check() == []


def take_checkpoints(journal: st.Journal, root: Path) -> str:
    """Files in three checkpoints: one seen by a fork alone, one with a file of several pieces, one that lists changes."""
    journal.create_thread("files")
    (root / "a").write_text("first")
    (root / "empty").touch()
    first = journal.append("files", st.user("first"))
    checkpoint = journal.workspace.snapshot("files", first.id, root)
    journal.fork("files", at=checkpoint.id, new_id="sees the first")
    (root / "a").write_text("second")
    (root / "large").write_bytes(random.Random(1).randbytes(2_500_000))
    journal.workspace.snapshot("files", journal.append("files", st.user("second")).id, root)
    journal.fork("files", new_id="sees all")
    journal.delete_thread("files")
    return checkpoint.id


@pytest.mark.parametrize("source", KINDS)
@pytest.mark.parametrize("target", KINDS)
def test_files_of_checkpoints_come_along(open_store: OpenStore, tmp_path: Path, source: str, target: str) -> None:
    root = tmp_path / "root"
    root.mkdir()
    with open_store(source, "source") as old, open_store(target, "target") as new:
        checkpoint = take_checkpoints(old, root)
        report = st.copy_store(old, new)
        assert report.blobs == 6, "four files and two manifests"
        assert st.copy_store(old, new).blobs == 0
        assert new.check() == []
        new.rewind("sees all", checkpoint, files=root, conflicts="force")
        assert (root / "a").read_text() == "first"
        assert not (root / "large").exists()
        new.undo("sees all")
        assert (root / "large").read_bytes() == random.Random(1).randbytes(2_500_000)


class CollectingStore:
    """A store in which somebody deletes a thread just before the first history comes in."""

    def __init__(self, store: Store, thread_id: str) -> None:
        self._store = store
        self._doomed = thread_id

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def commit(self, command: Command) -> Result:
        if isinstance(command, ImportHistory) and self._doomed:
            self._store.commit(DeleteThread(thread_id=self._doomed))
            self._doomed = ""
        return self._store.commit(command)


@pytest.mark.parametrize("target", KINDS)
def test_blobs_that_the_target_collects_meanwhile_are_put_again(
    open_store: OpenStore, tmp_path: Path, target: str
) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "a").write_text("in both stores")
    with open_store("memory", "source") as old, open_store(target, "target") as new:
        for journal, name in ((old, "t"), (new, "doomed")):
            journal.create_thread(name)
            journal.workspace.snapshot(name, journal.append(name, st.user("x")).id, root)
        st.copy_store(old, st.Journal(CollectingStore(new.store, "doomed")))
        assert content(new) == content(old)
        assert new.check() == []


def test_a_blob_that_is_damaged_is_not_copied(open_store: OpenStore, tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    with open_store("sqlite", "source") as old, open_store("memory", "target") as new:
        old.create_thread("t")
        (root / "a").write_bytes(random.Random(2).randbytes(5000))
        old.workspace.snapshot("t", old.append("t", st.user("x")).id, root)
        with closing(sqlite3.connect(tmp_path / "source.db")) as connection, connection:
            connection.execute("UPDATE chunk SET body = zeroblob(length(body))")
        with pytest.raises(st.DamagedDataError):
            st.copy_store(old, new)


@pytest.mark.parametrize("target", KINDS)
def test_a_copy_that_was_interrupted_anywhere_can_be_repeated(open_store: OpenStore, target: str) -> None:
    with open_store("memory", "source") as old:
        fill(old)
        for commits in range(0, 30, 1 if target == "memory" else 4):
            with open_store(target, f"target{commits}") as new:
                try:
                    st.copy_store(old, st.Journal(FailingStore(new.store, commits)))
                except Interrupted:
                    st.copy_store(old, new)
                assert content(new) == content(old)
                assert new.check() == []


@pytest.mark.parametrize("seed", range(25))
def test_random_histories_come_along(seed: int) -> None:
    choose = random.Random(seed)
    with st.open("memory:") as old, st.open("memory:") as new:
        threads = [old.create_thread("t0").id]
        for number in range(60):
            thread = choose.choice(threads)
            entries = old.entries(thread)
            match choose.choice(["append", "append", "branch", "fork", "move", "undo", "redo", "delete"]):
                case "append":
                    old.append(thread, st.user(str(number)))
                case "branch" if entries:
                    old.append(thread, st.user(str(number)), parent=choose.choice(entries).id)
                case "fork":
                    at = choose.choice(entries).id if entries else None
                    threads.append(old.fork(thread, at=at, new_id=f"fork-{number}").id)
                case "move" if entries:
                    old.move_leaf(thread, choose.choice([None, *(entry.id for entry in entries)]))
                case "undo" | "redo" as verb:
                    try:
                        getattr(old, verb)(thread)
                    except st.NotFoundError:
                        continue
                case "delete" if len(threads) > 3:
                    threads.remove(thread)
                    old.delete_thread(thread)
        st.copy_store(old, new)
        assert content(new) == content(old)
        assert new.stats().entries == old.stats().entries
        assert new.check() == []


def test_a_target_that_holds_something_else_is_refused() -> None:
    with st.open("memory:") as old, st.open("memory:") as new:
        fill(old)
        new.create_thread("keeper")
        with pytest.raises(st.ThreadExistsError):
            st.copy_store(old, new)
    with st.open("memory:") as old, st.open("memory:") as new:
        old.create_thread("t", created_ns=1)
        old.append("t", st.user("here"), id="e")
        new.create_thread("t", created_ns=1)
        new.append("t", st.user("there"), id="e")
        with pytest.raises(st.ConflictError):
            st.copy_store(old, new)


@pytest.mark.parametrize("target", KINDS)
def test_names_of_deleted_threads_may_live_again_in_other_trees(open_store: OpenStore, target: str) -> None:
    with open_store("sqlite", "source") as old, open_store(target, "target") as new:
        for root, gone, heir in (("a", "e", "heir of e"), ("b", "g", "e")):
            old.create_thread(root)
            old.append(root, st.user("the start"), id="same id in both trees")
            old.fork(root, new_id=gone)
            old.append(gone, st.user(f"kept by {heir}"))
            old.fork(gone, new_id=heir)
            old.append(heir, st.user("goes on"))
            old.delete_thread(gone)
        old.create_thread("g", title="reborn, and alone")
        for _ in range(2):
            assert st.copy_store(old, new).threads == 5
        for name in ("a", "b", "e", "g", "heir of e"):
            assert new.entries(name) == old.entries(name)
            assert new.thread(name) == old.thread(name)
        assert [entry.thread_id for entry in new.path("e")] == ["b", "g", "e"]
        assert new.check() == []


@pytest.mark.parametrize("store", ALL)
def test_a_history_that_names_an_id_twice_is_refused_whole(store: str, tmp_path: Path) -> None:
    drafts = [
        Draft(id="twice", payload=st.user(text), body=encode_payload(st.user(text)), created_ns=1) for text in "ab"
    ]
    steps = (PositionedDraft(parent=None, draft=drafts[0]), PositionedDraft(parent="twice", draft=drafts[1]))
    with open_journal(store, tmp_path) as journal:
        journal.create_thread("t")
        with pytest.raises(st.DuplicateEntryError):
            journal.store.commit(ImportHistory(thread_id="t", steps=steps))
        assert journal.entries("t") == []
        journal.append("t", st.user("goes on"))
        assert journal.check() == []


@pytest.mark.parametrize("target", KINDS)
def test_a_name_may_be_deleted_twice_and_be_that_of_its_own_heir(open_store: OpenStore, target: str) -> None:
    with open_store("sqlite", "source") as old, open_store(target, "target") as new:
        old.create_thread("h")
        first = old.append("h", st.user("of the first life"))
        old.fork("h", at=first.id, new_id="g")
        old.delete_thread("h")
        old.append("g", st.user("between the lives"))
        old.fork("g", new_id="h")
        second = old.append("h", st.user("of the second life"))
        old.fork("h", at=second.id, new_id="passing")
        old.delete_thread("h")
        old.fork("passing", at=second.id, new_id="h", title="the third life")
        old.delete_thread("passing")
        for _ in range(2):
            assert st.copy_store(old, new).threads == 2
        assert {thread.id for thread in new.list_threads()} == {"g", "h"}
        assert [entry.thread_id for entry in new.path("h")] == ["h", "g", "h"]
        assert new.entries("h") == old.entries("h")
        assert new.check() == []
