"""Backups and checks read a namespace some trees at a time: it may be larger than the memory."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

import sessiontree as st
from postgres_server import process_database, with_options
from sessiontree.stores.postgres import content

MEGABYTE = 1 << 20
THREADS = 48


@pytest.fixture
def journal(tmp_path: Path) -> st.Journal:
    return st.open(with_options(process_database(), namespace=tmp_path))


def peak_of(work: Callable[[], object]) -> int:
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_backup_and_a_check_need_the_memory_of_a_part_of_the_store(journal: st.Journal, tmp_path: Path) -> None:
    with journal:
        for number in range(THREADS):
            journal.append(f"t{number}", st.user(chr(97 + number % 26) * MEGABYTE), create=True)
        assert peak_of(lambda: journal.backup(tmp_path / "backups")) < THREADS * MEGABYTE / 2
        assert peak_of(journal.check) < THREADS * MEGABYTE / 2
    report = st.restore_backup(tmp_path / "backups", tmp_path / "again")
    assert (report.findings, report.entries) == ((), THREADS)


def test_trees_are_never_torn_between_two_parts(
    journal: st.Journal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"_GROUP_BYTES": 1, "_ROWS_AT_ONCE": 3, "_ROWS_BEYOND": 1}.items():
        monkeypatch.setattr(content, name, value)
    with journal:
        for number in range(5):
            name = f"t{number}"
            journal.create_thread(name)
            written = journal.append_many(name, [st.user(str(turn)) for turn in range(2 * number)])
            if written:
                journal.rewind(name, written[0].id)
                journal.undo(name)
                journal.fork(name, at=written[1].id, new_id=f"fork of {name}")
                journal.append(f"fork of {name}", st.user("own"))
            if number == 3:
                journal.delete_thread(name)
            journal.documents.put("scope", name, number)
        assert journal.check() == []
        seen: list[tuple[int, int]] = []
        journal.check(progress=lambda done, total: seen.append((done, total)))
        assert seen[-1] == (journal.stats().entries, journal.stats().entries)
        journal.backup(tmp_path / "backups")
        report = st.restore_backup(tmp_path / "backups", tmp_path / "again")
        assert report.findings == ()
        with st.open(f"jsonl:///{tmp_path}/again") as again:
            for thread in journal.iter_threads():
                assert again.thread(thread.id) == thread
                assert again.path(thread.id) == journal.path(thread.id)
                assert again.reflog(thread.id) == journal.reflog(thread.id)
            assert again.stats().entries == journal.stats().entries
            assert len(again.documents.list("scope")) == 5
