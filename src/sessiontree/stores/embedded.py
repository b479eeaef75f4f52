"""Embedded stores: a ``Backend`` behind group commit."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TypeVar

from sessiontree.errors import StoreClosedError
from sessiontree.model.observed import Observer
from sessiontree.stores.commands import Command, Result
from sessiontree.stores.erasing import REMOVALS, Eraser, removes_content
from sessiontree.stores.forking import NOT_WHILE_FORKING, not_while_forking
from sessiontree.stores.group_commit import Committer
from sessiontree.stores.protocol import Backend
from sessiontree.stores.queries import Finding, Query

if TYPE_CHECKING:
    from sessiontree.stores.observing import GroupTimes

__all__ = ["EmbeddedStore"]

T = TypeVar("T")

POLL_SECONDS = 0.02


class EmbeddedStore:
    """A ``Store`` over a ``Backend``."""

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self.place = backend.place
        self.committer = Committer(backend.write, backend.place)
        erase_copies = not_while_forking(backend.erase_copies)
        self.eraser = Eraser(erase_copies, backend.place)
        self.is_closed = False
        if not erase_copies():
            self.eraser.start()

    def observe_groups(self, observer: Observer) -> GroupTimes:
        """Tell an observer about every group from now on. Called before the first command."""
        from sessiontree.stores.observing import GroupTimes  # noqa: PLC0415  most programs have no observer

        groups = GroupTimes(not_while_forking(self.backend.write), self.place, observer)
        self.committer = Committer(groups.write, self.place)
        return groups

    def commit(self, command: Command) -> Result:
        """Run a command and return once it is durable; a delete also waits, but not for ever, for its copies to go."""
        try:
            result = self.committer.commit(command)
        except BaseException:
            # An interrupt can come after the commit.
            if isinstance(command, REMOVALS):
                self.eraser.start()
            raise
        if isinstance(command, REMOVALS) and removes_content(result):
            self.eraser.wait(self.eraser.start())
        return result

    def read(self, query: Query[T]) -> T:
        """Answer a query."""
        if self.is_closed:
            raise StoreClosedError(self.place)
        self.committer.check_open()
        with NOT_WHILE_FORKING:
            return query.run(self.backend)

    def mark(self, thread_id: str) -> object:
        """Return a value for ``wait``."""
        with NOT_WHILE_FORKING:
            return self.backend.mark(thread_id)

    def wait(self, thread_id: str, mark: object, timeout: float) -> None:
        """Poll until the thread's mark differs from ``mark``, at most for ``timeout`` seconds."""
        end = time.monotonic() + timeout
        while not self.is_closed and self.mark(thread_id) == mark and time.monotonic() < end:
            time.sleep(POLL_SECONDS)

    def repair(self) -> list[Finding]:
        """Repair what can be repaired while nothing is being written, and return what it was."""
        return self.committer.run_alone(self.backend.repair)

    def reclaim(self) -> int:
        """Give free room back while nothing is being written, and return how many bytes."""
        return self.committer.run_alone(not_while_forking(self.backend.reclaim))

    def close(self) -> None:
        """Write what is queued and close the backend; the second call is a no-op."""
        if self.is_closed:
            return
        self.is_closed = True
        if self.committer.is_in_its_process:
            self.eraser.close()
        self.committer.close(self._close_backend)

    def _close_backend(self) -> None:
        with NOT_WHILE_FORKING:
            self.backend.erase_copies()
            self.backend.close()
