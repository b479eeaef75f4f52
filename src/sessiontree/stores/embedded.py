"""A backend behind the committer: the sync surface of a store.

Group commit: one writer at a time carries out everything that waits, with one flush.

A lone sync caller writes by itself, without a thread switch. Whoever finds the writer busy queues up, and the
running flush is the batching window: no timer, nobody waits for company.

What stands between the stores and the operating system: group commit, locks, syncing.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

from msgspec import Struct

from sessiontree.errors import StoreClosedError, StoreError
from sessiontree.stores.commands import Command, Result
from sessiontree.stores.protocol import Backend, Outcome
from sessiontree.stores.queries import Query

if TYPE_CHECKING:
    import asyncio

__all__ = ["Committer", "EmbeddedStore"]


Write = Callable[[Sequence[Command]], list[Outcome]]

_MOST_PER_GROUP = 512


class _Ticket(Struct, eq=False):
    """One caller's place in the queue; the caller waits for ``done`` or, in a loop, for ``future``."""

    command: Command
    done: threading.Lock | None = None
    loop: asyncio.AbstractEventLoop | None = None
    future: asyncio.Future[Result] | None = None
    outcome: Outcome | BaseException = None


class Committer:
    def __init__(self, write: Write, place: str) -> None:
        self._write = write
        self._place = place
        self._pid = os.getpid()
        self._writing = threading.Lock()
        self._waiting = threading.Condition(threading.Lock())
        self._queue: deque[_Ticket] = deque()
        self._about_to_wake: set[asyncio.AbstractEventLoop] = set()
        self._thread: threading.Thread | None = None
        self._is_serving = False
        self._is_closed = False

    def commit(self, command: Command) -> Result:
        """Carry out a command for a sync caller."""
        if not self._queue and not self._writing.locked():
            # A with block, because nothing can interrupt between taking a lock and entering the block.
            with self._writing:
                self.check_open()
                outcome = self._write((command,))[0]
            return _result(outcome)
        self.check_open()
        done = threading.Lock()
        done.acquire()
        ticket = _Ticket(command, done)
        self._queue.append(ticket)
        self._wake()
        done.acquire()
        return _result(ticket.outcome)

    def submit(self, command: Command, loop: asyncio.AbstractEventLoop) -> asyncio.Future[Result]:
        """Carry out a command for an async caller. Cancelling the future does not take the command back.

        The writer is woken at the end of the loop's round, when every task that is ready has queued up.
        """
        self.check_open()
        future: asyncio.Future[Result] = loop.create_future()
        self._queue.append(_Ticket(command, None, loop, future))
        if loop not in self._about_to_wake:
            self._about_to_wake.add(loop)
            loop.call_soon(self._wake, loop)
        return future

    def close(self, close_store: Callable[[], None]) -> None:
        """Finish what is queued, close the store, then refuse.

        A command that slips in behind waits until the store is closed, which then refuses it: a store that wrote
        while it is closed would write to files that are no longer its own.
        """
        if not self.is_in_its_process:
            self._is_closed = True
            return
        with self._waiting:
            self._is_closed = True
            self._waiting.notify_all()
            thread = self._thread
        if thread is not None:
            thread.join()
        with self._writing:
            close_store()

    @property
    def is_in_its_process(self) -> bool:
        """Not so in the child of a fork, where locks and connections belong to the parent."""
        return self._pid == os.getpid()

    def check_open(self) -> None:
        if self._is_closed:
            raise StoreClosedError(self._place)
        if self._pid != os.getpid():
            raise StoreError(self._place, "was opened before a fork of the process; open it again in the child")

    def _wake(self, loop: asyncio.AbstractEventLoop | None = None) -> None:
        with self._waiting:
            if loop is not None:
                self._about_to_wake.discard(loop)
            if not self._is_serving:
                self._thread = threading.Thread(target=self._serve, name=f"writer {self._place}", daemon=True)
                self._thread.start()
                self._is_serving = True
            self._waiting.notify()

    def _serve(self) -> None:
        while self._wait_for_work():
            with self._writing:
                tickets = [self._queue.popleft() for _ in range(min(len(self._queue), _MOST_PER_GROUP))]
                self._carry_out(tickets)
            _deliver(tickets)

    def _wait_for_work(self) -> bool:
        with self._waiting:
            while not self._queue:
                if self._is_closed:
                    self._is_serving = False
                    return False
                self._waiting.wait()
            return True

    def _carry_out(self, tickets: Sequence[_Ticket]) -> None:
        try:
            outcomes = self._write([ticket.command for ticket in tickets])
        except BaseException as error:  # noqa: BLE001  every caller in the group must hear of it
            for ticket in tickets:
                ticket.outcome = error
        else:
            for ticket, outcome in zip(tickets, outcomes, strict=True):
                ticket.outcome = outcome


def _deliver(tickets: Sequence[_Ticket]) -> None:
    """Wake the callers: one call per event loop, not one per ticket."""
    loops: dict[asyncio.AbstractEventLoop, list[_Ticket]] = {}
    for ticket in tickets:
        if ticket.loop is not None:
            loops.setdefault(ticket.loop, []).append(ticket)
        elif ticket.done is not None:
            ticket.done.release()
    for loop, group in loops.items():
        # A loop that was closed has nobody left who waits.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(_settle, group)


def _settle(tickets: Sequence[_Ticket]) -> None:
    for ticket in tickets:
        future = ticket.future
        if future is None or future.done():
            continue
        if isinstance(ticket.outcome, BaseException):
            future.set_exception(ticket.outcome)
        else:
            future.set_result(ticket.outcome)


def _result(outcome: Outcome | BaseException) -> Result:
    if isinstance(outcome, BaseException):
        raise outcome
    return outcome


T = TypeVar("T")

POLL_SECONDS = 0.02


class EmbeddedStore:
    """A Store over one Backend."""

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self.place = backend.place
        self.committer = Committer(backend.write, backend.place)
        self.is_closed = False

    def commit(self, command: Command) -> Result:
        return self.committer.commit(command)

    def read(self, query: Query[T]) -> T:
        if self.is_closed:
            raise StoreClosedError(self.place)
        self.committer.check_open()
        return query.run(self.backend)

    def mark(self, thread_id: str) -> object:
        return self.backend.mark(thread_id)

    def wait(self, thread_id: str, mark: object, timeout: float) -> None:
        end = time.monotonic() + timeout
        while not self.is_closed and self.backend.mark(thread_id) == mark and time.monotonic() < end:
            time.sleep(POLL_SECONDS)

    def close(self) -> None:
        if self.is_closed:
            return
        self.is_closed = True
        self.committer.close(self.backend.close)
