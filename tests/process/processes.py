"""Starting workers and talking to them by lines."""

import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

WORKER = Path(__file__).with_name("worker.py")
STORES = ("sqlite", "jsonl")


def url_of(store, folder):
    return f"{store}:///{folder / 'journal'}"


@contextmanager
def worker(verb, *arguments):
    """A running worker, killed at the end if it is still there."""
    process = subprocess.Popen(
        [sys.executable, str(WORKER), verb, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        bufsize=1,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


def send(process, text="go"):
    process.stdin.write(text + "\n")
    process.stdin.flush()


def receive(process):
    line = process.stdout.readline()
    assert line, f"the worker ended with {process.wait()}"
    return line.strip()
