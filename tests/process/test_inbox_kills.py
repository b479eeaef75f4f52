"""A process that dies while it takes messages from the inbox loses none and appends none twice."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

import sessiontree as st

_TAKE = """
import os, signal, sys
import sessiontree as st

journal = st.open(sys.argv[1])
left = int(sys.argv[2])
commit = journal.store.commit

def killed(command):
    global left
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    left -= 1
    return commit(command)

journal.store.commit = killed
with journal.turn("t", ttl_seconds=0.001) as turn:
    journal.enqueue("t", st.user("three"), id="q3")
    turn.take_inbox()
    turn.append(st.assistant("answer"))
journal.close()
"""
_WORDS = ["one", "two"]


@pytest.mark.parametrize("commits", range(8))
def test_a_kill_before_any_commit_loses_and_repeats_nothing(tmp_path: Path, commits: int) -> None:
    path = tmp_path / "journal.db"
    with st.open(path) as journal:
        journal.create_thread("t")
        for number, text in enumerate(_WORDS, start=1):
            journal.enqueue("t", st.user(text), id=f"q{number}")
    done = subprocess.run([sys.executable, "-c", _TAKE, path, str(commits)], check=False)
    assert done.returncode in (-signal.SIGKILL, 0)
    with st.open(path) as journal:
        journal.clear_expired_lease("t", created_before_ns=journal.clock() + 1)
        journal.enqueue("t", st.user("three"), id="q3")
        with journal.turn("t") as turn:
            turn.take_inbox()
        said = [entry.message.text for entry in journal.path("t", types=["user_message"]) if entry.message]
        assert said == [*_WORDS, "three"]
        assert journal.inbox("t") == []
        assert journal.check() == []
