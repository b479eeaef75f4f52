"""After the commit of a delete: no failure changes an outcome, no reader stops the writers, a crash leaves no copy behind."""

from __future__ import annotations

import asyncio
import errno
import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

import sessiontree as st
from jsonl_commands import append, create, delete, do, fork, ids
from known import of_kind
from sessiontree.search._fts_index import SearchIndex, SourceState
from sessiontree.stores import erasing
from sessiontree.stores.embedded import EmbeddedStore
from sessiontree.stores.jsonl import JsonlBackend
from sessiontree.stores.sqlite.erasure import Erasure
from sessiontree.testing.contract.base import is_on_disk
from sessiontree.testing.faults import FaultyFiles, FileCall

NEEDLE = "correct-horse-battery-staple"
KINDS = ("sqlite", "jsonl")


def url_of(kind: str, folder: Path) -> str:
    return f"{kind}:///{folder / 'store'}"


def index_of(kind: str, folder: Path) -> Path:
    return folder / "store-search" if kind == "sqlite" else folder / "store" / "search.db"


@contextmanager
def locked(database: Path) -> Iterator[None]:
    """Another program writes to a database for as long as the block lasts."""
    with closing(sqlite3.connect(database, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield


@contextmanager
def read(database: Path) -> Iterator[None]:
    """Another program reads a database for as long as the block lasts."""
    with closing(sqlite3.connect(database, isolation_level=None)) as connection:
        connection.execute("BEGIN")
        connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        yield


@pytest.mark.parametrize("kind", KINDS)
def test_a_locked_search_index_made_committed_writes_of_others_look_failed(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(erasing, "ERASE_SECONDS", 0.05)

    async def run() -> list[object]:
        async with st.open_async(url_of(kind, tmp_path)) as journal:
            for name in ("a", "b", "doomed"):
                await journal.create_thread(name)
            await journal.append("doomed", st.user(NEEDLE))
            assert (await journal.search(NEEDLE)).hits
            with locked(index_of(kind, tmp_path)):
                outcomes = await asyncio.gather(
                    journal.append("a", st.user("one")),
                    journal.delete_thread("doomed"),
                    journal.append("a", st.user("two")),
                    journal.append("b", st.user("three")),
                    return_exceptions=True,
                )
            assert [(await journal.thread(name)).entries for name in "ab"] == [2, 1]
            return list(outcomes)

    outcomes = asyncio.run(run())
    assert not [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
    assert not is_on_disk(tmp_path, NEEDLE), "erased when the store was closed, at the latest"


@pytest.mark.parametrize("kind", KINDS)
def test_a_broken_search_index_made_a_committed_delete_look_failed(tmp_path: Path, kind: str) -> None:
    with st.open(url_of(kind, tmp_path)) as journal:
        journal.create_thread("doomed")
        journal.append("doomed", st.user(NEEDLE))
        assert journal.search(NEEDLE).hits
    index = index_of(kind, tmp_path)
    index.write_bytes(b"not a database, but it mentions " + NEEDLE.encode())
    with st.open(url_of(kind, tmp_path)) as journal:
        assert journal.delete_thread("doomed").entries_removed == 1
        assert not is_on_disk(tmp_path, NEEDLE)
        assert not journal.search(NEEDLE).hits


KILLED_AFTER_COMMIT = """
import os, signal, sys
import sessiontree as st
journal = st.open(sys.argv[1])
journal.append("other", st.user("the log has this and the delete"))
backend = journal.store.backend
write = backend.write
def write_and_die(commands):
    write(commands)
    os.kill(os.getpid(), signal.SIGKILL)
backend.write = write_and_die
journal.store.committer._write = write_and_die
journal.delete_thread(sys.argv[2])
"""


@pytest.mark.parametrize("kind", KINDS)
def test_a_kill_after_the_commit_of_a_delete_left_the_text_in_logs_and_indexes(tmp_path: Path, kind: str) -> None:
    url = url_of(kind, tmp_path)
    thread_id = f"id-{NEEDLE}"
    with st.open(url) as journal:
        journal.create_thread("other")
        journal.create_thread(thread_id, title=f"title-{NEEDLE}")
        for number in range(20):
            journal.append(thread_id, st.user(f"{NEEDLE} {number} " * 40))
        fork = journal.fork(thread_id, new_id=f"fork-{NEEDLE}")
        journal.append(fork.id, st.user(f"{NEEDLE} in a fork"))
        journal.list_threads()
        assert journal.search("correct").hits
    for doomed in (fork.id, thread_id):
        done = subprocess.run([sys.executable, "-c", KILLED_AFTER_COMMIT, url, doomed], check=False)
        assert done.returncode == -9
    with st.open(url) as journal:
        assert not is_on_disk(tmp_path, NEEDLE)
        assert [thread.id for thread in journal.list_threads()] == ["other"]
        assert journal.check() == []


@pytest.mark.parametrize("kind", KINDS)
def test_the_id_of_a_deleted_thread_stayed_in_the_search_index(tmp_path: Path, kind: str) -> None:
    with st.open(url_of(kind, tmp_path)) as journal:
        journal.create_thread(f"id-{NEEDLE}")
        journal.append(f"id-{NEEDLE}", st.user("findable"))
        assert journal.search("findable").hits
        journal.delete_thread(f"id-{NEEDLE}")
        assert not is_on_disk(tmp_path, NEEDLE)


@pytest.mark.parametrize("note", [b"", b"not a note", b'{"tree": "\xff"}', b"{}"])
def test_a_damaged_note_of_an_erasure_kept_all_deleted_text_in_the_indexes(tmp_path: Path, note: bytes) -> None:
    url = url_of("jsonl", tmp_path)
    with st.open(url) as journal:
        journal.create_thread("kept")
        journal.append("kept", st.user("findable"))
        journal.fork("kept", new_id="fork")
        journal.create_thread(f"id-{NEEDLE}")
        journal.append(f"id-{NEEDLE}", st.user(NEEDLE))
        assert journal.search(NEEDLE).hits
        journal.list_threads()
        (tmp_path / "store" / "erasing" / "0.json").write_bytes(note)
        assert [finding.kind for finding in journal.check()] == ["erasure"]
        journal.delete_thread(f"id-{NEEDLE}")
        assert not is_on_disk(tmp_path, NEEDLE)
        assert journal.check() == []
        assert len(journal.search("findable").hits) == 1
        assert {thread.id for thread in journal.list_threads()} == {"kept", "fork"}
    with st.open(url) as journal:
        assert [entry.message.text for entry in journal.path("fork") if entry.message] == ["findable"]


def test_a_damaged_note_erases_what_the_delete_behind_it_left(tmp_path: Path) -> None:
    url = url_of("jsonl", tmp_path)
    thread_id = f"id-{NEEDLE}"
    with st.open(url) as journal:
        journal.create_thread("other")
        journal.append("other", st.user("before"))
        journal.fork("other", new_id=thread_id)
        journal.append(thread_id, st.user(NEEDLE))
        assert journal.search(NEEDLE).hits
        journal.list_threads()
    done = subprocess.run([sys.executable, "-c", KILLED_AFTER_COMMIT, url, thread_id], check=False)
    assert done.returncode == -9
    for note in (tmp_path / "store" / "erasing").iterdir():
        note.write_bytes(b"{")
    assert is_on_disk(tmp_path, NEEDLE)
    with st.open(url) as journal:
        assert not is_on_disk(tmp_path, NEEDLE)
        assert journal.check() == []


def test_an_idle_reader_and_a_delete_stalled_every_writer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While the delete waits for the reader, appends are written, and they do not try to empty the log themselves."""
    is_erasing = threading.Event()
    give_room_back = Erasure._give_room_back

    def noticed(self: Erasure, connection: sqlite3.Connection) -> None:
        is_erasing.set()
        give_room_back(self, connection)

    monkeypatch.setattr(Erasure, "_give_room_back", noticed)
    with st.open(url_of("sqlite", tmp_path)) as journal:
        for name in ("a", "doomed"):
            journal.create_thread(name)
        journal.append("doomed", st.user(NEEDLE))
        with read(tmp_path / "store"):
            deleting = threading.Thread(target=journal.delete_thread, args=("doomed",))
            deleting.start()
            assert is_erasing.wait(60)
            for number in range(50):
                journal.append("a", st.user(str(number)))
            assert deleting.is_alive(), "50 appends took less time than the delete waits for the reader"
            assert [finding.kind for finding in journal.check()] == ["erasure"]
            deleting.join()
        journal.delete_thread("a")
        assert not is_on_disk(tmp_path, NEEDLE)
        assert journal.check() == []


def test_a_delete_is_erased_as_soon_as_the_reader_is_gone_without_another_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(erasing, "ERASE_SECONDS", 0.01)
    monkeypatch.setattr(erasing, "_LONGEST_PAUSE_SECONDS", 0.01)
    with st.open(url_of("sqlite", tmp_path)) as journal:
        journal.create_thread("doomed")
        journal.append("doomed", st.user(NEEDLE))
        with read(tmp_path / "store"):
            journal.delete_thread("doomed")
            assert is_on_disk(tmp_path, NEEDLE)
        of_kind(EmbeddedStore, journal.store).eraser.wait(1, timeout=60)
        assert not is_on_disk(tmp_path, NEEDLE)


def test_a_full_disk_after_the_delete_of_a_checkpoint_made_the_delete_look_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The packs of the JSONL store are rewritten without the blobs of a deleted checkpoint, which takes room."""
    from sessiontree.stores.jsonl.packs import PackFolder  # noqa: PLC0415

    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "secret.txt").write_text("a file of the folder")
    with st.open(url_of("jsonl", tmp_path)) as journal:
        journal.create_thread("doomed")
        entry = journal.append("doomed", st.user("before"))
        journal.workspace.snapshot("doomed", entry.id, folder)

        def full(self: PackFolder, hashes: object) -> None:
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr(PackFolder, "drop", full)
            patch.setattr(erasing, "ERASE_SECONDS", 0.01)
            journal.delete_thread("doomed")
        with pytest.raises(st.ThreadNotFoundError):
            journal.delete_thread("doomed")
    with st.open(url_of("jsonl", tmp_path)) as journal:
        assert journal.check() == []
        assert not list((tmp_path / "store" / "blobs").iterdir())


def test_a_search_index_that_could_not_be_opened_for_a_moment_kept_the_deleted_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = SearchIndex(tmp_path / "index")
    index.with_rebuild(index.newest)
    index.close()

    def failing(*arguments: object, **options: object) -> int:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", failing)
        is_erased = index.forget(None, SourceState(name="", identity="", version="", last_number=0))  # type: ignore[arg-type]
    assert not is_erased
    index.close()


@pytest.mark.parametrize("at", range(1, 9))
def test_a_full_disk_at_the_sync_of_a_folder_made_a_delete_look_as_if_nothing_was_deleted(
    tmp_path: Path, at: int
) -> None:
    backend = JsonlBackend(tmp_path / "store")
    do(backend, create("t"), append("t", "a"), fork("t", "f"))
    backend.close()
    backend = JsonlBackend(tmp_path / "store", files=FaultyFiles("sync_folder", at, errno.ENOSPC))
    try:
        do(backend, delete("t"))
    except st.StoreFullError:
        assert ids(backend, "t") == ["a"]
    except st.StorePoisonedError:
        pass
    backend.close()
    again = JsonlBackend(tmp_path / "store")
    assert again.erase_copies()
    assert ids(again, "f") == ["a"]
    assert again.inspect() == []
    again.close()


@pytest.mark.parametrize("call", ["write_new", "open_append", "append"])
def test_a_full_disk_in_a_delete_raised_an_error_of_the_system(tmp_path: Path, call: FileCall) -> None:
    backend = JsonlBackend(tmp_path / "store")
    do(backend, create("t"), append("t", "a"), fork("t", "f"))
    backend.close()
    backend = JsonlBackend(tmp_path / "store", files=FaultyFiles(call, 1, errno.ENOSPC))
    with pytest.raises(st.StoreFullError):
        do(backend, delete("t"))
    assert ids(backend, "t") == ["a"]
    do(backend, delete("t"))
    assert ids(backend, "f") == ["a"]
    assert backend.inspect() == [] or backend.erase_copies()
    backend.close()
