"""``cp backup.db live.db`` under a running program: it is noticed before anything more is acknowledged."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

import pytest

import sessiontree as st
from sessiontree.stores.commands import Command
from sessiontree.stores.protocol import Outcome
from sessiontree.stores.sqlite.store import SqliteBackend

WRITER = """
import sys, sessiontree as st
journal = st.open(sys.argv[1])
number = 0
while True:
    number += 1
    journal.append("t", st.user(f"{number} " * 200), id=f"{sys.argv[2]}{number}")
    print(number, flush=True)
"""


def fill(journal: st.Journal, name: str, count: int) -> None:
    """Append in groups, so that the log is checkpointed now and then."""
    for start in range(0, count, 25):
        journal.append_many(name, [st.user(f"{number} " * 5_000) for number in range(start, min(start + 25, count))])


def checkpoint(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "live.db"
    with st.open(path) as journal:
        journal.create_thread("t")
        fill(journal, "t", 50)
    shutil.copy(path, tmp_path / "backup.db")
    with st.open(tmp_path / "other.db") as journal:
        journal.create_thread("t")
        fill(journal, "t", 300)
    return path


@pytest.mark.parametrize("source", ["backup.db", "other.db"])
@pytest.mark.parametrize("is_log_empty", [False, True])
def test_appends_were_acknowledged_into_a_file_that_cp_had_overwritten(
    store: Path, source: str, is_log_empty: bool
) -> None:
    with st.open(store) as journal:
        fill(journal, "t", 600)
        if is_log_empty:
            checkpoint(store)
        fill(journal, "t", 1)
        if is_log_empty:
            checkpoint(store)
        shutil.copy(store.with_name(source), store)
        for _ in range(2):
            with pytest.raises(st.StoreGoneError):
                journal.append("t", st.user("to nowhere"))
    assert store.read_bytes() == store.with_name(source).read_bytes(), "the log of the former file was written into it"


def test_a_backup_made_since_the_last_checkpoint_could_be_copied_over_the_store_unnoticed(
    store: Path, tmp_path: Path
) -> None:
    with st.open(store) as journal:
        fill(journal, "t", 20)
        journal.backup(tmp_path / "backups")
        fill(journal, "t", 20)
        checkpoint(store)
        fill(journal, "t", 1)
        restored = tmp_path / "restored.db"
        st.restore_backup(tmp_path / "backups", restored)
        shutil.copy(restored, store)
        with pytest.raises(st.StoreGoneError):
            journal.append("t", st.user("to nowhere"))
    assert store.read_bytes() == restored.read_bytes()


def test_a_restored_backup_with_the_log_of_the_former_file_is_refused_until_the_log_is_moved_away(store: Path) -> None:
    with st.open(store) as journal:
        fill(journal, "t", 300)
        checkpoint(store)
        fill(journal, "t", 1)
        checkpoint(store)
        fill(journal, "t", 20)
        shutil.copy(store.with_name("backup.db"), store)
        with pytest.raises(st.StoreGoneError):
            journal.append("t", st.user("to nowhere"))
    with pytest.raises(st.StoreError, match=r"move live\.db-wal away"):
        st.open(store)
    store.with_name("live.db-wal").rename(store.with_name("former-wal"))
    with st.open(store) as journal:
        assert journal.thread("t").entries == 50
        journal.append("t", st.user("goes on"))
        assert journal.check() == []


def test_two_processes_that_write_all_the_time_notice_a_copy_over_their_store(store: Path) -> None:
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, store, name], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for name in "ab"
    ]
    for writer in writers:
        assert writer.stdout is not None
        while int(writer.stdout.readline()) < 400:
            pass
    shutil.copy(store.with_name("backup.db"), store)
    for writer in writers:
        _, problem = writer.communicate()
        noticed = ("replaced while open", "outcome of the commit is unknown", "is damaged at byte")
        assert any(words in problem for words in noticed), problem


def test_checkpoints_and_vacuum_by_other_programs_are_not_taken_for_a_copy(store: Path) -> None:
    with st.open(store) as journal, st.open(store) as second:
        for number, statement in enumerate(
            ("PRAGMA wal_checkpoint", "VACUUM", "PRAGMA wal_checkpoint(TRUNCATE)", "REINDEX", "VACUUM") * 3
        ):
            with closing(sqlite3.connect(store, isolation_level=None)) as connection:
                connection.execute(statement).fetchone()
            (journal, second)[number % 2].append("t", st.user(str(number)))
            if number % 4 == 0:
                journal.create_thread(f"doomed {number}")
                second.delete_thread(f"doomed {number}")
        fill(journal, "t", 400)
        fill(second, "t", 5)
        assert journal.thread("t").entries == 50 + 15 + 405
        assert journal.check() == []


def remove(file: Path) -> None:
    file.unlink()


def move_away(file: Path) -> None:
    file.rename(file.with_name("away"))


def replace_by_a_copy(file: Path) -> None:
    # Not shutil.copy of the index in this process: closing it would release the locks of SQLite.
    subprocess.run(["cp", file, file.with_name("copy")], check=True)
    file.with_name("copy").replace(file)


@pytest.mark.parametrize("take_away", [remove, move_away, replace_by_a_copy])
@pytest.mark.parametrize("side_file", ["live.db-wal", "live.db-shm"])
def test_appends_were_acknowledged_into_a_log_without_a_name(
    store: Path, side_file: str, take_away: Callable[[Path], None]
) -> None:
    with st.open(store) as journal:
        journal.append("t", st.user("acknowledged"), id="acknowledged")
        take_away(store.with_name(side_file))
        for _ in range(2):
            with pytest.raises(st.StoreGoneError, match=r"its log .* was deleted or replaced"):
                journal.append("t", st.user("to nowhere"))


@pytest.mark.parametrize("take_away", [remove, move_away, replace_by_a_copy])
@pytest.mark.parametrize("side_file", ["live.db-wal", "live.db-shm"])
def test_a_log_that_is_taken_away_long_after_the_folder_changed_is_noticed(
    store: Path, side_file: str, take_away: Callable[[Path], None]
) -> None:
    with st.open(store) as journal:
        os.utime(store.parent, (1, 1))
        journal.append("t", st.user("acknowledged"), id="acknowledged")
        take_away(store.with_name(side_file))
        for _ in range(2):
            with pytest.raises(st.StoreGoneError):
                journal.append("t", st.user("to nowhere"))


@pytest.mark.parametrize("side_files", [["live.db-wal"], ["live.db-shm"], ["live.db-wal", "live.db-shm"]])
def test_closing_a_store_whose_log_was_removed_keeps_what_was_acknowledged(store: Path, side_files: list[str]) -> None:
    with st.open(store) as journal:
        journal.append("t", st.user("acknowledged"), id="acknowledged")
        for side_file in side_files:
            store.with_name(side_file).unlink()
        with pytest.raises(st.StoreGoneError):
            journal.append("t", st.user("to nowhere"))
    with st.open(store) as journal:
        assert journal.entries("t")[-1].id == "acknowledged"
        assert journal.check() == []


APPENDER = """
import sys, sessiontree as st
journal = st.open(sys.argv[1])
journal.append("t", st.user("by another process"), id="other")
print("acknowledged", flush=True)
sys.stdin.read()
journal.close()
"""


@pytest.mark.parametrize("is_other_closed_first", [False, True])
def test_a_process_that_made_a_new_index_of_the_log_lost_its_entries_to_the_one_with_the_old_index(
    store: Path, is_other_closed_first: bool
) -> None:
    with st.open(store) as journal:
        journal.append("t", st.user("acknowledged"), id="acknowledged")
        store.with_name("live.db-shm").unlink()
        with subprocess.Popen(
            [sys.executable, "-c", APPENDER, store], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as other:
            assert other.stdout is not None
            assert other.stdout.readline() == "acknowledged\n"
            if is_other_closed_first:
                other.communicate()
            with pytest.raises(st.StoreGoneError):
                journal.append("t", st.user("over the entry of the other"))
            journal.close()
            if not is_other_closed_first:
                other.communicate()
    with st.open(store) as journal:
        assert [entry.id for entry in journal.entries("t")[-2:]] == ["acknowledged", "other"]
        assert journal.check() == []


def overwrite(path: Path) -> None:
    shutil.copy(path.with_name("other.db"), path)


def remove_log(path: Path) -> None:
    path.with_name("live.db-wal").unlink()


@pytest.mark.parametrize("disturb", [overwrite, remove_log])
def test_an_append_during_which_the_file_is_overwritten_is_not_acknowledged(
    store: Path, disturb: Callable[[Path], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    transact = SqliteBackend._transact

    def disturbed(self: SqliteBackend, commands: Sequence[Command], *, check_new_ids: bool = False) -> list[Outcome]:
        outcomes = transact(self, commands, check_new_ids=check_new_ids)
        disturb(store)
        return outcomes

    with st.open(store) as journal:
        journal.append("t", st.user("before"))
        monkeypatch.setattr(SqliteBackend, "_transact", disturbed)
        with pytest.raises(st.CommitUnknownError):
            journal.append("t", st.user("to nowhere"))
