"""The log of a SQLite store gets its length in few large steps, and nobody who reads the store notices."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import sessiontree as st
from sessiontree.errors import StoreGoneError
from sessiontree.stores._io import FileDescriptor
from sessiontree.stores.sqlite.wal import WalPreallocation

STEP = 64 * 1024


def log_of(path: Path) -> Path:
    return path.with_name(path.name + "-wal")


def test_the_log_grows_in_whole_steps_while_a_store_is_written(tmp_path):
    with st.open(tmp_path / "s.db") as journal:
        journal.create_thread("t")
        lengths = set()
        for number in range(60):
            journal.append("t", st.user(f"message {number}"))
            lengths.add(log_of(tmp_path / "s.db").stat().st_size // STEP)
    assert len(lengths) < 12


def test_frames_before_the_room_come_back_after_a_kill(tmp_path):
    script = (
        "import os, sys, sessiontree as st\n"
        "journal = st.open(sys.argv[1])\n"
        "journal.create_thread('t')\n"
        "for number in range(30): journal.append('t', st.user(str(number)))\n"
        "os.kill(os.getpid(), 9)\n"
    )
    subprocess.run([sys.executable, "-c", script, tmp_path / "s.db"], check=False)
    log = log_of(tmp_path / "s.db").read_bytes()
    assert len(log) % STEP == 0
    assert log.endswith(bytes(1024))
    with st.open(tmp_path / "s.db") as journal:
        assert [entry.message.text for entry in journal.path("t")] == [str(number) for number in range(30)]


@pytest.mark.parametrize("tail", [b"", bytes(1), bytes(24), bytes(70_000), b"\xff" * 70_000], ids=len)
def test_room_that_ends_anywhere_harms_nobody(tmp_path, tail):
    """A power cut may leave any part of the zeros, or other bytes that were on the disk before."""
    with st.open(tmp_path / "s.db") as journal:
        journal.create_thread("t")
        for number in range(5):
            journal.append("t", st.user(str(number)))
        shutil.copy(tmp_path / "s.db", tmp_path / "cut.db")
        log = log_of(tmp_path / "s.db").read_bytes()
    log_of(tmp_path / "cut.db").write_bytes(log[: end_of_frames(log)] + tail)
    with st.open(tmp_path / "cut.db") as journal:
        assert [entry.message.text for entry in journal.path("t")] == ["0", "1", "2", "3", "4"]
        assert journal.check() == []


def end_of_frames(log: bytes) -> int:
    """Each frame repeats the two salts of the log's head."""
    end, frame = 32, 24 + int.from_bytes(log[8:12])
    while log[end + 8 : end + 16] == log[16:24]:
        end += frame
    return end


def test_a_log_that_was_deleted_before_the_first_write_is_missed(tmp_path):
    path = tmp_path / "s.db"
    with st.open(path) as journal:
        journal.create_thread("t")
    with st.open(path) as journal:
        journal.thread("t")
        log_of(path).unlink()
        with pytest.raises(StoreGoneError):
            journal.append("t", st.user("lost"))


def test_a_full_disk_is_not_the_rooms_to_tell(tmp_path):
    """Without place for zeros the commit itself may still fit."""
    log = tmp_path / "s.db-wal"
    log.write_bytes(b"frames")
    log.chmod(0o600)
    room = WalPreallocation(tmp_path / "s.db")
    room._file = FileDescriptor(log, os.O_RDONLY)
    room.make()
    room.close()
    assert log.read_bytes() == b"frames"
