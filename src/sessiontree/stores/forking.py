"""Forks of a process that has stores open: no thread is inside a store at that moment.

The child of a fork has one thread. Whatever lock another thread held is held in the child for ever, also those inside
SQLite, so that a child that opens the store again would wait for ever. So a fork waits until every thread has left its
store, and those that come meanwhile wait for the fork. In the child, stores close what they inherited.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable
from types import TracebackType
from typing import ParamSpec, TypeVar

__all__ = ["NOT_WHILE_FORKING", "not_while_forking"]

P = ParamSpec("P")
T = TypeVar("T")

_LONGEST_WAIT_SECONDS = 10.0
"""How long a fork waits, for example for a thread that waits for another process."""


class _Gate:
    """``with gate:`` around everything that a thread does inside a store. It may be nested."""

    def __init__(self) -> None:
        self._reset()
        self._writing: weakref.WeakSet[threading.Lock] = weakref.WeakSet()
        self._held: list[threading.Lock] = []
        self._abandoning: list[weakref.WeakMethod[Callable[[], None]]] = []

    def __enter__(self) -> None:
        thread = threading.get_ident()
        with self._lock:
            depth = self._depths.get(thread, 0)
            while self._is_forking and not depth:
                self._changed.wait()
            self._depths[thread] = depth + 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        thread = threading.get_ident()
        with self._lock:
            # In the child of a fork inside a store nothing is left to take back.
            depth = self._depths.pop(thread, 1) - 1
            if depth:
                self._depths[thread] = depth
            if self._is_forking:
                self._changed.notify_all()

    def take(self, writing: threading.Lock) -> None:
        """Take a lock before each fork: those who write under it need not pass the gate, which costs more."""
        with self._lock:
            self._writing.add(writing)

    def in_the_child(self, abandon: Callable[[], None]) -> None:
        """Call a method in the child of a fork, if its object still exists: it closes what the child inherited."""
        with self._lock:
            self._abandoning = [known for known in self._abandoning if known() is not None]
            self._abandoning.append(weakref.WeakMethod(abandon))

    def before_fork(self) -> None:
        with self._lock:
            writing = list(self._writing)
        held = [lock for lock in writing if lock.acquire(timeout=_LONGEST_WAIT_SECONDS)]
        self._lock.acquire()
        self._held = held
        self._is_quiet = len(held) == len(writing)
        self._is_forking = True
        own = {threading.get_ident()}
        self._changed.wait_for(lambda: self._depths.keys() <= own, _LONGEST_WAIT_SECONDS)

    def after_fork(self) -> None:
        self._release_writers()
        self._is_forking = False
        self._changed.notify_all()
        self._lock.release()

    def after_fork_in_child(self) -> None:
        # A thread that did not leave in time may hold locks that closing would wait for.
        abandoning = self._abandoning if self._is_quiet and not self._depths else []
        self._abandoning = []
        self._release_writers()
        self._reset()
        for abandon in abandoning:
            call = abandon()
            if call is not None:
                call()

    def _release_writers(self) -> None:
        for lock in self._held:
            lock.release()
        self._held = []

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._depths: dict[int, int] = {}
        self._is_forking = False
        self._is_quiet = True


NOT_WHILE_FORKING = _Gate()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=NOT_WHILE_FORKING.before_fork,
        after_in_parent=NOT_WHILE_FORKING.after_fork,
        after_in_child=NOT_WHILE_FORKING.after_fork_in_child,
    )


def not_while_forking(work: Callable[P, T]) -> Callable[P, T]:
    """The function behind the gate."""

    def guarded(*arguments: P.args, **options: P.kwargs) -> T:
        with NOT_WHILE_FORKING:
            return work(*arguments, **options)

    return guarded
