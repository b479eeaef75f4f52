"""The defects of floret's file store (seed 000), each named after what goes wrong there."""

import contextlib
import errno
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

import sessiontree as st
from known import present
from sessiontree.stores.embedded import EmbeddedStore
from sessiontree.stores.jsonl import JsonlBackend
from sessiontree.testing import FaultyFiles, ManualClock
from stores import ALL, DURABLE, fill, ids, open_journal, reopened, sqlite_backend

on_all = pytest.mark.parametrize("store", ALL)
on_durable = pytest.mark.parametrize("store", DURABLE)


@on_all
def test_a_rewind_is_not_undone_by_the_next_call_or_a_restart(store: str, tmp_path: Path) -> None:
    journal = open_journal(store, tmp_path)
    journal.create_thread("t")
    fill(journal, "t", "a", "b", "c")
    journal.rewind("t", "a")
    assert journal.thread("t").leaf == "a"
    journal = reopened(journal, store, tmp_path)
    assert journal.append("t", st.user("x")).parent == "a"
    journal.reset("t")
    journal = reopened(journal, store, tmp_path)
    assert journal.thread("t").leaf is None
    assert journal.append("t", st.user("y")).parent is None
    journal.close()


@on_all
def test_a_fork_before_the_first_entry_does_not_copy_everything(store: str, tmp_path: Path) -> None:
    with open_journal(store, tmp_path) as journal:
        journal.create_thread("t")
        fill(journal, "t", "a", "b")
        fork = journal.fork("t", before="a")
        assert (fork.leaf, journal.entries(fork.id)) == (None, [])


def test_a_torn_last_line_does_not_hide_the_thread_or_free_its_id(tmp_path: Path) -> None:
    journal = open_journal("jsonl", tmp_path)
    journal.create_thread("t")
    fill(journal, "t", "a", "b")
    journal.close()
    file = next(tmp_path.rglob("trees/*.jsonl"))
    with file.open("ab") as tail:
        tail.write(file.read_bytes()[-60:-20])
    with open_journal("jsonl", tmp_path) as journal:
        assert ids(journal.path("t")) == ["a", "b"]
        with pytest.raises(st.ThreadExistsError):
            journal.create_thread("t")
        fill(journal, "t", "c")
        assert ids(journal.path("t")) == ["a", "b", "c"]


def test_a_torn_end_of_the_write_ahead_log_does_not_hide_the_thread(tmp_path: Path) -> None:
    journal = open_journal("sqlite", tmp_path)
    journal.create_thread("t")
    fill(journal, "t", "a")
    log = Path(f"{journal.store.place}-wal")
    whole = (Path(journal.store.place).read_bytes(), log.read_bytes())
    journal.close()
    copy = tmp_path / "copy.db"
    copy.write_bytes(whole[0])
    Path(f"{copy}-wal").write_bytes(whole[1] + whole[1][-2000:-1000])
    with st.open(copy) as journal:
        assert ids(journal.path("t")) == ["a"]
        fill(journal, "t", "b")
        assert journal.check() == []


@on_durable
def test_two_journals_on_one_store_do_not_corrupt_each_other(store: str, tmp_path: Path) -> None:
    journals = [open_journal(store, tmp_path) for _ in range(2)]
    journals[0].create_thread("t")
    acknowledged: list[list[str]] = [[], []]

    def write(number: int) -> None:
        for _ in range(60):
            acknowledged[number].append(journals[number].append("t", st.user("x")).id)

    writers = [threading.Thread(target=write, args=(number,)) for number in range(2)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert sorted(ids(journals[0].path("t"))) == sorted(acknowledged[0] + acknowledged[1])
    assert len(set(acknowledged[0] + acknowledged[1])) == 120
    for journal in journals:
        assert journal.check() == []
        journal.close()


def test_reading_one_thread_does_not_read_the_other_files(tmp_path: Path) -> None:
    with open_journal("jsonl", tmp_path) as journal:
        for name in ("wanted", "other"):
            journal.create_thread(name)
            fill(journal, name, f"{name}-entry")
    with open_journal("jsonl", tmp_path) as journal, _opened_files() as opened:
        journal.thread("wanted")
        journal.acquire_lease("wanted", owner="me")
        journal.append("wanted", st.user("x"))
    trees = {name for name in opened if name.endswith(".jsonl")}
    assert any(Path(name).name.startswith("wanted") for name in trees)
    assert not any(Path(name).name.startswith("other") for name in trees)


def test_reading_one_thread_costs_the_same_in_a_big_store(tmp_path: Path) -> None:
    costs = []
    for size in (64, 640):
        with open_journal("sqlite", tmp_path / str(size), durability="process_crash") as journal:
            for number in range(size):
                journal.create_thread(f"t{number}")
                fill(journal, f"t{number}", "a", "b")
            journal.thread("t1")
            costs.append(_steps(journal, partial(journal.thread, "t1")))
    assert costs[1] <= costs[0] * 1.2


@on_durable
def test_generated_ids_do_not_start_over_after_a_restart(store: str, tmp_path: Path) -> None:
    clock = ManualClock()
    made = []
    for _ in range(3):
        with open_journal(store, tmp_path, clock=clock) as journal:
            thread = journal.create_thread()
            made += [thread.id, *(journal.append(thread.id, st.user("x")).id for _ in range(5))]
    assert len(set(made)) == len(made)


@pytest.mark.parametrize("kept", [0, 1, 40])
def test_a_crash_in_a_metadata_write_does_not_make_the_thread_vanish(kept: int, tmp_path: Path) -> None:
    with open_journal("jsonl", tmp_path) as journal:
        journal.create_thread("t", title="old")
        fill(journal, "t", "a")
    with _faulty(tmp_path, keep=kept) as journal, pytest.raises(st.StoreError):
        journal.update_thread("t", title="new")
    with open_journal("jsonl", tmp_path) as journal:
        assert (journal.thread("t").title, journal.thread("t").leaf) == ("old", "a")


@pytest.mark.parametrize("kept", [0, 1, 40])
def test_a_crash_in_a_lease_write_does_not_lock_the_thread(kept: int, tmp_path: Path) -> None:
    with open_journal("jsonl", tmp_path) as journal:
        journal.create_thread("t")
    with _faulty(tmp_path, keep=kept) as journal, pytest.raises(st.StoreError):
        journal.acquire_lease("t", owner="gone")
    with open_journal("jsonl", tmp_path) as journal:
        assert journal.active_lease("t") is None
        assert journal.acquire_lease("t", owner="next").owner == "next"


@on_all
def test_ids_that_look_alike_do_not_share_a_thread_and_long_ones_work(store: str, tmp_path: Path) -> None:
    names = ["a", " a", "a ", "A", "a/b", "a_b", "a:b", "x" * 190, "x" * 5000, "x" * 5000 + "y"]
    journal = open_journal(store, tmp_path)
    for name in names:
        journal.create_thread(name, title=name)
        fill(journal, name, f"in {name}")
        journal.acquire_lease(name, owner=name)
    journal = reopened(journal, store, tmp_path)
    for name in names:
        assert journal.thread(name).title == name
        assert ids(journal.path(name)) == [f"in {name}"]
        assert present(journal.active_lease(name)).owner == name
    journal.close()


@on_all
def test_a_fork_keeps_the_times_of_its_entries_and_copies_nothing(store: str, tmp_path: Path) -> None:
    clock = ManualClock()
    with open_journal(store, tmp_path, clock=clock) as journal:
        journal.create_thread("t")
        originals = [journal.append("t", st.user(f"text <{number}>")) for number in range(50)]
        clock.advance(1000)
        journal.fork("t", new_id="f")
        assert journal.path("f") == originals
        assert journal.stats().entries == 50
    copies = sum(path.read_bytes().count(b"text <7>") for path in tmp_path.rglob("*") if path.is_file())
    assert copies == (0 if store == "memory" else 1)


@on_durable
def test_a_text_is_written_once_and_its_hash_is_checked(store: str, tmp_path: Path) -> None:
    with open_journal(store, tmp_path) as journal:
        journal.create_thread("t", title="a title of its own")
        journal.append("t", st.user("remarkable words"))
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert sum(path.read_bytes().count(b"remarkable words") for path in files) == 1
    spoiled = next(path for path in files if b"remarkable words" in path.read_bytes())
    spoiled.write_bytes(spoiled.read_bytes().replace(b"remarkable words", b"remarkable w0rds"))
    with open_journal(store, tmp_path) as journal:
        assert journal.check() != []


def test_a_failed_append_is_not_in_memory_either(tmp_path: Path) -> None:
    files = FaultyFiles("append", at=3, error=errno.ENOSPC, keep=10)
    with st.Journal(EmbeddedStore(JsonlBackend(tmp_path / "journal", files=files))) as journal:
        journal.create_thread("t")
        before = journal.thread("t")
        files.at = files.calls["append"] + 1
        with pytest.raises(st.StoreFullError):
            journal.append("t", st.user("lost"), id="lost")
        assert journal.thread("t") == before
        assert journal.entries("t") == []
        fill(journal, "t", "a")
        assert ids(journal.path("t")) == ["a"]


@on_all
def test_a_crashed_turn_locks_for_its_lease_and_a_live_one_is_never_taken_over(store: str, tmp_path: Path) -> None:
    clock = ManualClock()
    with open_journal(store, tmp_path, clock=clock) as journal:
        journal.create_thread("t")
        lease = journal.acquire_lease("t", owner="alive", ttl_seconds=60)
        for _ in range(60 * 25):
            clock.advance(59)
            lease = journal.renew_lease(lease, ttl_seconds=60)
        with pytest.raises(st.ActiveTurnError):
            journal.acquire_lease("t", owner="other")
        clock.advance(61)
        assert journal.acquire_lease("t", owner="other").owner == "other"


@contextlib.contextmanager
def _faulty(folder: Path, keep: int) -> Iterator[st.Journal]:
    """A journal whose next write to a tree file is torn, and which can then only be closed."""
    files = FaultyFiles("append", error=errno.EIO, keep=keep)
    backend = JsonlBackend(folder / "journal", files=files)
    files.at = files.calls["append"] + 1
    with st.Journal(EmbeddedStore(backend)) as journal:
        yield journal


_listeners: list[Callable[[str, tuple[object, ...]], None]] = []


def _tell(event: str, arguments: tuple[object, ...]) -> None:
    for listener in _listeners:
        listener(event, arguments)


sys.addaudithook(_tell)


@contextlib.contextmanager
def _opened_files() -> Iterator[list[str]]:
    opened: list[str] = []

    def listener(event: str, arguments: tuple[object, ...]) -> None:
        if event == "open":
            opened.append(str(arguments[0]))

    _listeners.append(listener)
    try:
        yield opened
    finally:
        _listeners.remove(listener)


def _steps(journal: st.Journal, verb: Callable[[], object]) -> int:
    """How many steps SQLite's machine takes for a read."""
    steps = [0]

    def count() -> None:
        steps[0] += 1

    (connection,) = sqlite_backend(journal)._idle
    connection.set_progress_handler(count, 1)
    verb()
    connection.set_progress_handler(None, 1)
    assert steps[0] > 0
    return steps[0]
