"""The user's pager: output that is longer than the screen goes through it."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["through_pager"]


def through_pager(write: Callable[[], None]) -> None:
    """Call ``write`` with stdout connected to the user's pager, if there is one."""
    from shutil import which  # noqa: PLC0415  slow to load, not needed in a pipe

    command = _pager()
    if command in {"", "cat"} or which(command.split()[0]) is None:
        write()
        return
    _write_to_pager(command, write)


def _pager() -> str:
    """The pager command; as with git, a variable that is set to nothing means no pager."""
    for name in ("SESSIONTREE_PAGER", "PAGER"):
        if name in os.environ:
            return os.environ[name].strip()
    return "less"


def _options_of_less(chosen: str | None) -> str:
    """The options of the user with those for colours before them: without R, less prints the codes of colours as text."""
    return "FRX" if chosen is None else f"-R {chosen}"


@contextmanager
def _interrupts_ignored() -> Iterator[None]:
    """Leave Ctrl-C to the pager: exiting while it is still on the screen would leave two programs on one terminal."""
    import signal  # noqa: PLC0415  slow to load, only needed for a pager

    previous = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)


def _write_to_pager(command: str, write: Callable[[], None]) -> None:
    import subprocess  # noqa: PLC0415  slow to load, only needed for a pager

    environment = {"LESSSECURE": "1", **os.environ, "LESS": _options_of_less(os.environ.get("LESS"))}
    pager = subprocess.Popen(command, shell=True, stdin=subprocess.PIPE, env=environment)  # noqa: S602  PAGER is a command
    assert pager.stdin is not None
    stdout, sys.stdout = sys.stdout, io.TextIOWrapper(pager.stdin, encoding="utf-8", errors="replace")
    with _interrupts_ignored():
        try:
            write()
            sys.stdout.close()
        except BrokenPipeError:
            pass
        finally:
            sys.stdout = stdout
            pager.wait()
