"""The viewer as a process, for tests that need a real server."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["COMMAND", "serving"]


COMMAND = [sys.executable, "-m", "sessiontree", "web", "--no-open"]


@contextmanager
def serving(*arguments: str, folder: Path) -> Iterator[str]:
    """The address that the command prints; it is stopped with Ctrl-C."""
    with subprocess.Popen([*COMMAND, *arguments], stdout=subprocess.PIPE, text=True, cwd=folder) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.send_signal(signal.SIGINT)
            assert process.wait(30) in {0, 130}
