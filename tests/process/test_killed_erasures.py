"""A process that is killed at any step of an erasure: after the erasure is repeated, the text is in no file."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

import sessiontree as st
from property_settings import IS_DEEP
from sessiontree.testing.contract.base import is_on_disk

_WORDS = "battery-staple-correct-horse"
# Kills itself before the n-th call of a function that reaches the files; without n it counts them.
_ERASE = """
import os, signal, sys
import sessiontree as st

limit = int(sys.argv[2])
calls = 0
watched = {"execute", "executemany", "fsync", "fdatasync", "replace", "unlink", "write", "ftruncate", "rename", "open"}

def before_call(frame, event, function):
    global calls
    if event == "c_call" and getattr(function, "__name__", "") in watched:
        calls += 1
        if calls == limit:
            os.kill(os.getpid(), signal.SIGKILL)

import threading
journal = st.open(sys.argv[1])
threading.setprofile(before_call)
sys.setprofile(before_call)
journal.erase("f", ["secret"])
journal.close()
sys.setprofile(None)
print(calls)
"""
_STEPS = 60 if IS_DEEP else 5


def _address(tmp_path: Path, kind: str) -> str:
    return str(tmp_path / "journal.db") if kind == "sqlite" else f"jsonl:///{tmp_path / 'trees'}"


def _fill(address: str, folder: Path) -> None:
    with st.open(address) as journal:
        journal.create_thread("t")
        journal.append("t", st.user(f"{_WORDS} " * 20), id="secret")
        reference = journal.put_artifact(f"{_WORDS} ".encode() * 20, mime="text/plain")
        journal.append("t", st.user([st.FilePart(artifact=reference)]), id="file")
        journal.fork("t", new_id="f")
        journal.append("f", st.assistant("and so on"))
        journal.rewind("t", "secret")
        assert journal.search(_WORDS).hits


@pytest.mark.parametrize("kind", ["sqlite", "jsonl"])
def test_no_file_has_the_text_after_a_killed_erasure_is_repeated(tmp_path: Path, kind: str) -> None:
    address = _address(tmp_path / "counted", kind)
    (tmp_path / "counted").mkdir()
    _fill(address, tmp_path)
    counted = subprocess.run([sys.executable, "-c", _ERASE, address, "0"], check=True, capture_output=True, text=True)
    total = int(counted.stdout)
    assert total > _STEPS
    for step in range(1, _STEPS + 1):
        folder = tmp_path / str(step)
        folder.mkdir()
        address = _address(folder, kind)
        _fill(address, folder)
        assert is_on_disk(folder, _WORDS)
        killed = subprocess.run([sys.executable, "-c", _ERASE, address, str(step * total // _STEPS)], check=False)
        assert killed.returncode in (-signal.SIGKILL, 0)
        with st.open(address) as journal:
            journal.erase("f", ["secret", "file"])
            assert [entry.type for entry in journal.path("f")] == ["custom", "custom", "assistant_message"]
            assert not journal.search(_WORDS).hits
            assert _WORDS not in journal.export("t", format="jsonl", scope="tree")
            assert journal.check() == []
        assert not is_on_disk(folder, _WORDS), f"after a kill at step {step} of {_STEPS}"
