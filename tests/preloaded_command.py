"""The command without the wait for its imports: a server that has loaded it and forks a process for every run.

Each run is a process of its own, with its own arguments, environment, folder and pipes, and it ends as the command
does, with its exit code, its threads and its exit handlers. What the interpreter does before and after that is not seen
here (closed streams, Ctrl-C during the imports, taking modules apart): the tests of streams and of terminals start the
real command.
"""

from __future__ import annotations

import atexit
import functools
import gc
import importlib
import json
import os
import pkgutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import sessiontree
from sessiontree.cli import main

_READ_AT_START = ("PYTHON", "LC_", "LANG")
"""How the names of the variables begin that the interpreter reads when it starts, and never again."""

_HEAD = 8
_REPLY = 4


def run(
    arguments: list[str], *, given: str, environment: Mapping[str, str], folder: Path, timeout: float
) -> subprocess.CompletedProcess[str]:
    """Run the command in pipes, as ``subprocess.run`` does."""
    at_start = sorted((name, value) for name, value in environment.items() if name.startswith(_READ_AT_START))
    request = {"arguments": arguments, "environment": dict(environment), "folder": str(folder)}
    code, out, err = _server(tuple(at_start)).run(request, given, timeout)
    return subprocess.CompletedProcess(arguments, code, out, err)


@functools.cache
def _server(at_start: tuple[tuple[str, str], ...]) -> _Server:
    return _Server({**dict(at_start), "PATH": os.environ["PATH"]})


class _Server:
    def __init__(self, environment: dict[str, str]) -> None:
        self._connection, other = socket.socketpair()
        with other:
            # Its streams become those of the runs, so they are pipes from the beginning.
            self._process = subprocess.Popen(
                [sys.executable, __file__, str(other.fileno())],
                env=environment, pass_fds=[other.fileno()], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                start_new_session=True,
            )  # fmt: skip
        atexit.register(self._stop)

    def run(self, request: Mapping[str, object], given: str, timeout: float) -> tuple[int, str, str]:
        (stdin, our_stdin), (our_stdout, stdout), (our_stderr, stderr) = (os.pipe() for _ in range(3))
        message = json.dumps(request).encode()
        socket.send_fds(self._connection, [len(message).to_bytes(_HEAD)], [stdin, stdout, stderr])
        self._connection.sendall(message)
        for stream in (stdin, stdout, stderr):
            os.close(stream)
        with ThreadPoolExecutor(3) as threads:
            threads.submit(_write, our_stdin, given)
            out, err = (threads.submit(_read, stream) for stream in (our_stdout, our_stderr))
            return self._reply(timeout), out.result(), err.result()

    def _reply(self, timeout: float) -> int:
        self._connection.settimeout(timeout)
        try:
            reply = self._connection.recv(_REPLY)
        except TimeoutError:
            os.killpg(self._process.pid, signal.SIGKILL)
            raise
        return int.from_bytes(reply, signed=True)

    def _stop(self) -> None:
        self._connection.close()
        self._process.communicate(timeout=30)


def _write(stream: int, text: str) -> None:
    with suppress(BrokenPipeError), os.fdopen(stream, "w", encoding="utf-8") as file:
        file.write(text)


def _read(stream: int) -> str:
    with os.fdopen(stream, encoding="utf-8") as file:
        return file.read()


def _load_everything() -> None:
    for module in pkgutil.walk_packages(sessiontree.__path__, "sessiontree."):
        if not module.name.startswith(("sessiontree.testing", "sessiontree.__main__", "sessiontree.adapters.")):
            importlib.import_module(module.name)
    gc.freeze()


def _wait_for_a_run(connection: socket.socket) -> None:
    """Fork for every request, and return in the new process only."""
    while True:
        head, streams, _, _ = socket.recv_fds(connection, _HEAD, 3)
        if not head:
            sys.exit()
        request = json.loads(connection.recv(int.from_bytes(head), socket.MSG_WAITALL))
        process = os.fork()
        if process == 0:
            connection.close()
            _become(request, streams)
            return
        for stream in streams:
            os.close(stream)
        _, status = os.waitpid(process, 0)
        connection.sendall(os.waitstatus_to_exitcode(status).to_bytes(_REPLY, signed=True))


def _become(request: dict[str, Any], streams: list[int]) -> None:
    for standard, stream in enumerate(streams):
        os.dup2(stream, standard)
        os.close(stream)
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    time.tzset()
    sys.argv = ["sessiontree", *request["arguments"]]


class _QuickEnd:
    """Ends a run after its threads and exit handlers, before each module is taken apart, which takes longer than a run."""

    def __init__(self) -> None:
        self.code = 1
        atexit.register(self._end)

    def _end(self) -> None:
        with suppress(OSError):
            sys.stdout.flush()
        os._exit(self.code)


if __name__ == "__main__":
    ending = _QuickEnd()  # The first handler that is registered runs last.
    _load_everything()
    _wait_for_a_run(socket.socket(fileno=int(sys.argv[1])))
    try:
        main()
    except SystemExit as end:
        ending.code = int(end.code or 0)
        raise
