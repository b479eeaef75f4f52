"""The interface between journals and stores.

A journal talks to a ``Store`` or an ``AsyncStore``. An embedded store is written once, synchronously, as a ``Backend``;
``EmbeddedStore`` and ``AsyncEmbeddedStore`` add group commit and the two interfaces.
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import Literal, Protocol, TypeVar

from sessiontree.stores.commands import Command, Result
from sessiontree.stores.queries import Finding, Query, Reads

__all__ = ["AsyncStore", "Backend", "Durability", "Outcome", "Store"]


T = TypeVar("T")

Durability = Literal["power_loss", "process_crash"]
"""What an acknowledged write survives."""

Outcome = Result | Exception
"""A command's result, or the reason it was refused: one refused command must not fail the rest of the batch."""


class Backend(Reads, Protocol):
    """What the author of an embedded store implements.

    Reads may come from any thread, also at the same time; ``write`` is called by one thread at a time.
    """

    place: str
    """Where the data is, for messages."""

    is_blocking: bool
    """Whether reads touch a disk or a socket, so that an event loop must not run them itself."""

    def write(self, commands: Sequence[Command]) -> list[Outcome]:
        """Run the commands in order and make them durable together; raise only if the batch as a whole failed."""
        ...

    def erase_copies(self) -> bool:
        """Erase the copies of deleted content that are outside its own place, such as in a log or an index.

        Return False if something is left, for example because a reader is in the way; it is called again then. Called when
        the store is opened and after each delete, by one thread at a time, while other commands may be written. Never
        raises: the deletes are committed already.
        """
        ...

    def mark(self, thread_id: str) -> object:
        """Return a cheap value that differs after the thread changed, in this process or another."""
        ...

    def repair(self) -> list[Finding]:
        """Repair what can be repaired, and return what it was. Called while nothing is being written."""
        ...

    def reclaim(self) -> int:
        """Give free room in files back to the disk, and return how many bytes. Called while nothing is being written."""
        ...

    def close(self) -> None:
        """Release files, connections and locks."""
        ...


class Store(Protocol):
    """What a Journal uses."""

    place: str

    def commit(self, command: Command) -> Result:
        """Run a command and return once it is durable."""
        ...

    def read(self, query: Query[T]) -> T:
        """Answer a query."""
        ...

    def wait(self, thread_id: str, mark: object, timeout: float) -> None:
        """Return when the thread may have changed since ``mark`` was taken, or after ``timeout`` seconds."""
        ...

    def mark(self, thread_id: str) -> object:
        """Return a value for ``wait``."""
        ...

    def repair(self) -> list[Finding]:
        """Repair what can be repaired, and return what it was. Writes wait."""
        ...

    def reclaim(self) -> int:
        """Give free room in files back to the disk, and return how many bytes. Writes wait."""
        ...

    def close(self) -> None:
        """Finish what is queued and release everything."""
        ...


class AsyncStore(Protocol):
    """What an AsyncJournal uses: the methods of ``Store`` as coroutines."""

    place: str

    def acommit(self, command: Command) -> Awaitable[Result]:
        """Run a command and return once it is durable."""
        ...

    async def aread(self, query: Query[T]) -> T:
        """Answer a query."""
        ...

    async def await_change(self, thread_id: str, mark: object, timeout: float) -> None:
        """Return when the thread may have changed since ``mark`` was taken, or after ``timeout`` seconds."""
        ...

    async def amark(self, thread_id: str) -> object:
        """Return a value for ``await_change``."""
        ...

    async def arepair(self) -> list[Finding]:
        """Repair what can be repaired, and return what it was. Writes wait."""
        ...

    async def areclaim(self) -> int:
        """Give free room in files back to the disk, and return how many bytes. Writes wait."""
        ...

    async def aclose(self) -> None:
        """Finish what is queued and release everything."""
        ...
