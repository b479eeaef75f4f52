"""How long a short command takes: ``sessiontree ls`` on 10,000 threads, in a pipe and on a terminal.

Run with ``python benchmarks/start_up.py [rounds]``. It is compared with ``import typer, rich`` in an environment of their own, in
turns, by CPU time. The goal is 1.5 times that.
"""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

import sessiontree as st

GOAL = 1.5
THREADS = 10_000


def fill(store: Path) -> None:
    with st.open(store, durability="process_crash") as journal:
        for number in range(THREADS):
            journal.append(f"thread-{number:05}-{os.urandom(8).hex()}", st.user(f"question {number}"), create=True)


def cpu_of(command: list[str], *, has_terminal: bool) -> float:
    """The CPU time of a command."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    ours, theirs = pty.openpty() if has_terminal else os.pipe()
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=theirs, env={**environment, "COLUMNS": "100"})
    os.close(theirs)
    try:
        while os.read(ours, 65536):
            pass
    except OSError:
        pass  # a terminal whose other end is closed
    os.close(ours)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = status
    assert status == 0, command
    return used.ru_utime + used.ru_stime


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 30
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        fill(place / "j.db")
        subprocess.run([sys.executable, "-m", "venv", place / "other"], check=True)
        subprocess.run([place / "other/bin/python", "-m", "pip", "install", "-q", "typer", "rich"], check=True)
        ls = [sys.executable, "-m", "sessiontree", "--store", str(place / "j.db"), "ls"]
        commands = {
            "import typer, rich": ([str(place / "other/bin/python"), "-c", "import typer, rich"], False),
            "ls in a pipe": (ls, False),
            "ls on a terminal": (ls, True),
        }
        found: dict[str, list[float]] = {label: [] for label in commands}
        for _ in range(rounds + 1):
            for label, (command, has_terminal) in commands.items():
                found[label].append(cpu_of(command, has_terminal=has_terminal))
    base = median(found["import typer, rich"][1:])
    for label, seconds in found.items():
        taken = median(seconds[1:])
        print(f"{label:<20} {taken * 1000:6.1f} ms of CPU time   {taken / base:.2f} x   goal <= {GOAL}")


if __name__ == "__main__":
    main()
