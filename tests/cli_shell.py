"""Running the command as a user does: as a process, in a pipe or on a real terminal."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pexpect

import preloaded_command

COMMAND = [sys.executable, "-m", "sessiontree"]
ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[=>]")


class Shell:
    """A folder with a store, and the command in it."""

    def __init__(self, folder: Path, store: str = "j.db") -> None:
        self.folder = folder
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("SESSIONTREE", "NO_COLOR"))},
            "SESSIONTREE_STORE": str(folder / store),
            "PYTHONUTF8": "1",
            "TERM": "xterm-256color",
            "PAGER": "cat",
            "COLUMNS": "100",
        }

    def run(self, *arguments: str, given: str = "", code: int = 0) -> subprocess.CompletedProcess[str]:
        done = preloaded_command.run(
            [*arguments], given=given, environment=self.environment, folder=self.folder, timeout=60
        )
        assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
        assert "Traceback" not in done.stderr
        return done

    def __call__(self, *arguments: str, given: str = "") -> str:
        return self.run(*arguments, given=given).stdout.strip()

    def json(self, *arguments: str) -> Any:
        return json.loads(self.run(*arguments, "--json").stdout)

    def terminal(self, *arguments: str, columns: int = 80, rows: int = 24, **environment: str) -> pexpect.spawn:
        changed = {name: value for name, value in {**self.environment, **environment}.items() if name != "COLUMNS"}
        return pexpect.spawn(
            COMMAND[0],
            [*COMMAND[1:], *arguments],
            env=changed,
            cwd=str(self.folder),
            dimensions=(rows, columns),
            encoding="utf-8",
            timeout=30,
            preexec_fn=heed_interrupts,
        )


def heed_interrupts() -> None:
    """Undo what a shell does to programs that it runs in the background, and these hand on to their children."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def screen(child: pexpect.spawn) -> str:
    """Everything that was printed until the end."""
    child.expect(pexpect.EOF)
    child.close()
    return str(child.before).replace("\r\n", "\n")


def without_colour(text: str) -> str:
    return ANSI.sub("", text)
