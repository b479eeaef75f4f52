"""Starting workers and talking to them by lines."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import TypeAlias

WORKER = Path(__file__).with_name("worker.py")
STORES = ("sqlite", "jsonl")

Process: TypeAlias = "subprocess.Popen[str]"


def url_of(store: str, folder: Path) -> str:
    return f"{store}:///{folder / 'journal'}"


@contextmanager
def started(script: Path, *arguments: object) -> Iterator[Process]:
    """A running worker, killed at the end if it is still there."""
    process = subprocess.Popen(
        [sys.executable, str(script), *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        bufsize=1,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(script.parents[1]), os.environ.get("PYTHONPATH", "")])},
    )
    assert process.stdin
    assert process.stdout
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


def worker(verb: str, *arguments: object) -> AbstractContextManager[Process]:
    """A running ``worker.py``."""
    return started(WORKER, verb, *arguments)


def send(process: Process, text: str = "go") -> None:
    assert process.stdin
    process.stdin.write(text + "\n")
    process.stdin.flush()


def receive(process: Process) -> str:
    assert process.stdout
    line = process.stdout.readline()
    assert line, f"the worker ended with {process.wait()}"
    return line.strip()


@contextmanager
def ready(script: Path, *arguments: Sequence[object]) -> Iterator[list[Process]]:
    """Workers that are ready, one for each list of arguments."""
    with ExitStack() as stack:
        workers = [stack.enter_context(started(script, *each)) for each in arguments]
        for process in workers:
            assert receive(process) == "ready"
        yield workers


def at_once(workers: Sequence[Process], lines: Sequence[str]) -> None:
    """Give each worker its line, and wait until all of them are done."""
    for process, line in zip(workers, lines, strict=True):
        send(process, line)
    for process in workers:
        assert receive(process) == "done"
