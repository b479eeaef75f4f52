"""Jobs that run beside their caller, in threads. ``AsyncBackground`` is the same for tasks of an event loop.

The two are written by hand: they hold what truly differs between threads and tasks, so that their users need not.

>>> background, done = Background(), []
>>> background.submit("greeting", lambda: done.append("hello"))
True
>>> background.close()
>>> done, background.submit("greeting", lambda: done.append("hello"))
(['hello'], False)
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

__all__ = ["Background"]

_WORKERS = 2


class Background:
    """Runs jobs in threads until it is closed. A job handles its own errors."""

    def __init__(self) -> None:
        self._closing = threading.Event()
        self._loops: list[threading.Thread] = []
        self._lock = threading.Lock()
        self._keys: set[str] = set()
        self._workers: ThreadPoolExecutor | None = None

    def every(self, seconds: float, job: Callable[[], object], *, name: str) -> None:
        """Call ``job`` after every ``seconds``, until it returns False or ``close`` is called."""
        loop = threading.Thread(target=self._repeat, args=(seconds, job), name=name, daemon=True)
        self._loops.append(loop)
        loop.start()

    def submit(self, key: str, job: Callable[[], object]) -> bool:
        """Start ``job``, unless one with the same key is running. Return False after ``close``: nothing starts then."""
        with self._lock:
            if self._closing.is_set():
                return False
            if key not in self._keys:
                self._keys.add(key)
                self._start_workers().submit(self._run, key, job)
            return True

    def close(self) -> None:
        """Stop the repeated jobs and wait for all that are running. A second call does nothing."""
        with self._lock:
            self._closing.set()
        for loop in self._loops:
            loop.join()
        if self._workers is not None:
            self._workers.shutdown(wait=True)

    def _repeat(self, seconds: float, job: Callable[[], object]) -> None:
        while not self._closing.wait(seconds):
            if job() is False:
                return

    def _run(self, key: str, job: Callable[[], object]) -> None:
        try:
            job()
        finally:
            with self._lock:
                self._keys.discard(key)

    def _start_workers(self) -> ThreadPoolExecutor:
        if self._workers is None:
            from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415  slow to import, and few need it

            self._workers = ThreadPoolExecutor(_WORKERS, thread_name_prefix="sessiontree background")
        return self._workers
