"""Group commit: the writes of many callers share one sync.

One writer at a time writes everything that is queued, with one sync. A sync caller that finds the writer idle writes in
its own thread, without a thread switch. A caller that finds it busy queues, and is written with the next batch: the
running sync is the batching window, so there is no timer.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

from msgspec import Struct

from sessiontree.errors import StoreClosedError, StoreError
from sessiontree.stores.commands import Command, Result
from sessiontree.stores.forking import NOT_WHILE_FORKING
from sessiontree.stores.protocol import Outcome

if TYPE_CHECKING:
    import asyncio

__all__ = ["Committer"]

T = TypeVar("T")

_MAX_BATCH = 512

Write = Callable[[Sequence[Command]], list[Outcome]]


class _Ticket(Struct, eq=False):
    """A queued command. Its caller waits for the lock ``done`` or, in an event loop, for ``future``."""

    command: Command
    done: threading.Lock | None = None
    loop: asyncio.AbstractEventLoop | None = None
    future: asyncio.Future[Result] | None = None
    outcome: Outcome | BaseException = None


class Committer:
    """Queues the commands of many threads and event loops, and writes them in batches."""

    def __init__(self, write: Write, place: str) -> None:
        self._write = write
        self._place = place
        self._pid = os.getpid()
        self._writing = threading.Lock()
        NOT_WHILE_FORKING.take(self._writing)
        self._serving = threading.Lock()
        self._idle = threading.Lock()
        """Held while the writer's thread has nothing to do; releasing it is several times cheaper than a condition."""
        self._idle.acquire()
        self._queue: deque[_Ticket] = deque()
        self._about_to_wake: set[asyncio.AbstractEventLoop] = set()
        self._thread: threading.Thread | None = None
        self._is_serving = False
        self._is_closed = False

    def commit(self, command: Command) -> Result:
        """Run a command for a sync caller and return its result, or raise the reason it was refused."""
        if not self._queue and not self._writing.locked():
            # A with block: an interrupt cannot come between taking the lock and entering the block.
            with self._writing:
                self.check_open()
                outcome = self._write((command,))[0]
            return _result_or_raise(outcome)
        self.check_open()
        done = threading.Lock()
        done.acquire()
        ticket = _Ticket(command, done)
        self._queue.append(ticket)
        self._wake()
        done.acquire()
        return _result_or_raise(ticket.outcome)

    def submit(self, command: Command, loop: asyncio.AbstractEventLoop) -> asyncio.Future[Result]:
        """Run a command for an async caller. Cancelling the future does not cancel the command.

        The writer is woken at the end of the loop's iteration, after every task that is ready has queued its command.
        """
        self.check_open()
        future: asyncio.Future[Result] = loop.create_future()
        self._queue.append(_Ticket(command, None, loop, future))
        if loop not in self._about_to_wake:
            self._about_to_wake.add(loop)
            loop.call_soon(self._wake, loop)
        return future

    def run_alone(self, work: Callable[[], T]) -> T:
        """Call a function while no command is being written."""
        with self._writing:
            self.check_open()
            return work()

    def close(self, close_store: Callable[[], None]) -> None:
        """Write what is queued, close the store, then refuse commands.

        The store is closed under the writer's lock: a command that comes late waits and is then refused, because the
        closed store's files may belong to another program by then.
        """
        if not self.is_in_its_process:
            self._is_closed = True
            return
        with self._serving:
            self._is_closed = True
            thread = self._thread
        self._end_idling()
        if thread is not None:
            thread.join()
        with self._writing:
            close_store()

    @property
    def is_in_its_process(self) -> bool:
        """False in the child of a fork, where locks and connections belong to the parent."""
        return self._pid == os.getpid()

    def check_open(self) -> None:
        """Raise StoreClosedError, or StoreError in the child of a fork."""
        if self._is_closed:
            raise StoreClosedError(self._place)
        if self._pid != os.getpid():
            raise StoreError(self._place, "was opened before this process was forked; open it again in the child")

    def _wake(self, loop: asyncio.AbstractEventLoop | None = None) -> None:
        if loop is not None:
            self._about_to_wake.discard(loop)
        with self._serving:
            if not self._is_serving:
                self._thread = threading.Thread(target=self._serve, name=f"writer {self._place}", daemon=True)
                self._thread.start()
                self._is_serving = True
        self._end_idling()

    def _end_idling(self) -> None:
        # Somebody else may have woken the writer already.
        with suppress(RuntimeError):
            self._idle.release()

    def _serve(self) -> None:
        while self._wait_for_work():
            with self._writing:
                tickets = [self._queue.popleft() for _ in range(min(len(self._queue), _MAX_BATCH))]
                self._write_batch(tickets)
            _deliver(tickets)

    def _wait_for_work(self) -> bool:
        while not self._queue:
            with self._serving:
                # A command may have been queued before the lock was taken; one that comes later starts a thread.
                if self._is_closed and not self._queue:
                    self._is_serving = False
                    return False
            self._idle.acquire()
        return True

    def _write_batch(self, tickets: Sequence[_Ticket]) -> None:
        try:
            outcomes = self._write([ticket.command for ticket in tickets])
        except BaseException as error:  # noqa: BLE001  raised in every caller of the batch
            for ticket in tickets:
                ticket.outcome = error
        else:
            for ticket, outcome in zip(tickets, outcomes, strict=True):
                ticket.outcome = outcome


def _deliver(tickets: Sequence[_Ticket]) -> None:
    """Wake the callers, with one call for each event loop."""
    loops: dict[asyncio.AbstractEventLoop, list[_Ticket]] = {}
    for ticket in tickets:
        if ticket.loop is not None:
            loops.setdefault(ticket.loop, []).append(ticket)
        elif ticket.done is not None:
            ticket.done.release()
    for loop, group in loops.items():
        # A closed loop has no callers left.
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


def _result_or_raise(outcome: Outcome | BaseException) -> Result:
    if isinstance(outcome, BaseException):
        raise outcome
    return outcome
