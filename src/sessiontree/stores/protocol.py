"""The seam between journals and stores.

An embedded store is written once, synchronously, as a ``Backend``: it answers reads and writes groups of commands.
``EmbeddedStore`` puts the committer in front of it and gives it the sync and the async surface.
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import Literal, Protocol, TypeVar

from sessiontree.stores.commands import Command, Result
from sessiontree.stores.queries import Query, Reads

__all__ = ["AsyncStore", "Backend", "Durability", "Outcome", "Store"]


T = TypeVar("T")

Durability = Literal["power_loss", "process_crash"]
"""What an acknowledged write survives."""

Outcome = Result | Exception
"""A command's result, or why it was not carried out: what is wrong with one command must not fail its neighbours."""


class Backend(Reads, Protocol):
    """What a store author writes. Reads may come from any thread; ``write`` from one at a time."""

    place: str
    """Where the data is, for messages."""

    is_blocking: bool
    """Whether reads touch a disk or a socket, so that an event loop must not run them itself."""

    def write(self, commands: Sequence[Command]) -> list[Outcome]:
        """Carry out the commands in order, as one durable group. Raises only if the group as a whole failed."""
        ...

    def mark(self, thread_id: str) -> object:
        """A cheap value that differs after the thread changed, whichever process changed it."""
        ...

    def close(self) -> None: ...


class Store(Protocol):
    """What a Journal talks to."""

    place: str

    def commit(self, command: Command) -> Result: ...
    def read(self, query: Query[T]) -> T: ...
    def wait(self, thread_id: str, mark: object, timeout: float) -> None:
        """Return when the thread may have changed since ``mark`` was taken, or after the time-out."""
        ...

    def mark(self, thread_id: str) -> object: ...
    def close(self) -> None: ...


class AsyncStore(Protocol):
    """What an AsyncJournal talks to."""

    place: str

    def acommit(self, command: Command) -> Awaitable[Result]: ...
    async def aread(self, query: Query[T]) -> T: ...
    async def await_change(self, thread_id: str, mark: object, timeout: float) -> None: ...
    async def amark(self, thread_id: str) -> object: ...
    async def aclose(self) -> None: ...
