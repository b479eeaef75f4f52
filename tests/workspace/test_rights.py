"""Folders and files that their owner may not write or read, as a user who is bound by that."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

SCRIPT = Path(__file__).with_name("as_user.py")


def run(scenario: str) -> str:
    """In a process of its own, which gives up special rights before it begins."""
    with tempfile.TemporaryDirectory() as place:
        Path(place).chmod(0o755)
        done = subprocess.run(
            [sys.executable, str(SCRIPT), place, scenario], capture_output=True, text=True, check=False
        )
        subprocess.run(["chmod", "-R", "u+rwX", place], check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()


def test_a_closed_folder_is_opened_for_the_restore_and_closed_again() -> None:
    assert run("closed") == "ok"


def test_a_closed_folder_is_closed_again_after_a_restore_that_failed() -> None:
    assert run("failing") == "ok"


def test_what_cannot_be_read_is_reported_and_left_alone() -> None:
    assert run("unreadable") == "a-folder:unreadable file:unreadable"


def test_a_root_that_cannot_be_written_is_refused_with_a_reason() -> None:
    assert "cannot be written" in run("read-only")
