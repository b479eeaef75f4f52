"""The PostgreSQL store, blocking and async: the same steps on two drivers."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar, cast

from sessiontree.errors import NotFoundError, StoreAccessError, StoreClosedError, StoreError
from sessiontree.stores.commands import Command, Result
from sessiontree.stores.postgres import driver, driver_async
from sessiontree.stores.postgres.commits import Commits
from sessiontree.stores.postgres.errors import pauses, with_retries
from sessiontree.stores.postgres.known import KnownThreads
from sessiontree.stores.postgres.listen import (
    POLL_SECONDS,
    AsyncListener,
    Listener,
    Mark,
    Watches,
    find_channel,
)
from sessiontree.stores.postgres.loops import EventLoops, LoopConnections, LoopPool
from sessiontree.stores.postgres.options import PostgresOptions, checked, conninfo_of, parse_options, place_of
from sessiontree.stores.postgres.reads import StepReads
from sessiontree.stores.postgres.schema import MIGRATIONS, Migration, migrate
from sessiontree.stores.postgres.steps import Statement, Steps, TreeLookup
from sessiontree.stores.protocol import Durability
from sessiontree.stores.queries import Finding, Query, Reads

__all__ = ["AsyncPostgresStore", "PostgresStore"]


T = TypeVar("T")

_SETTINGS = """
SELECT current_setting('server_encoding'), current_setting('fsync'), current_setting('synchronous_commit')"""


class _Operations:
    """The steps of every operation, shared by both stores."""

    def __init__(
        self,
        url: str,
        *,
        options: PostgresOptions | None,
        durability: Durability,
        migrations: Sequence[Migration],
    ) -> None:
        self.place = place_of(url, options and checked(options))
        self._durability = durability
        self._migrations = migrations
        address, in_url = parse_options(url)
        self.options = options or in_url
        self.conninfo = conninfo_of(address, self.options, is_durable=durability == "power_loss")
        listen = self.options.listen_url
        self.listen_conninfo = conninfo_of(listen, self.options, is_durable=True) if listen else self.conninfo
        lookup = self.lookup = TreeLookup(self.options.namespace)
        known = KnownThreads()
        self._commits = Commits(self.place, lookup, known, self.options.retry_seconds)
        self._reads = cast("Reads", StepReads(self.place, lookup, known))
        self._watches = Watches(lookup)
        self._pid = os.getpid()

    def prepare(self) -> Steps[None]:
        """Check that the server can store any text and keeps what it acknowledges, and migrate the schema."""
        ((encoding, fsync, synchronous_commit),) = yield Statement(_SETTINGS)
        if encoding != "UTF8":
            raise StoreError(
                self.place,
                f"the database has the encoding {encoding}, which cannot store every text; create one with"
                " CREATE DATABASE ... ENCODING 'UTF8' TEMPLATE template0",
            )
        if self._durability == "power_loss" and "off" in (fsync, synchronous_commit):
            raise StoreError(
                self.place,
                f"the server runs with fsync={fsync} and synchronous_commit={synchronous_commit}, so what it"
                " acknowledges can be lost; set both to on, or open with durability='process_crash'",
            )
        yield from migrate(self.place, self._migrations)
        self.lookup.channel = yield from find_channel(self.options.namespace)

    def waits(self) -> Iterator[float]:
        """Pauses between the attempts to open."""
        return pauses(self.options.open_retry_seconds)

    @property
    def is_in_its_process(self) -> bool:
        """False in the child of a fork, where the connections belong to the parent."""
        return self._pid == os.getpid()

    def commit(self, command: Command) -> Steps[Result]:
        """Run a command."""
        self._check_process()
        return self._commits.commit(command)

    def read(self, query: Query[T]) -> Steps[T]:
        """Answer a query."""
        self._check_process()
        return self._with_retries(lambda: cast("Steps[T]", query.run(self._reads)))

    def topic(self, thread_id: str) -> Steps[str | None]:
        """The notification topic of a thread, which is watched from now on; None if it was deleted."""
        self._check_process()
        return self._with_retries(lambda: self._watches.topic(thread_id))

    def _with_retries(self, attempt: Callable[[], Steps[T]]) -> Steps[T]:
        return with_retries(attempt, place=self.place, retry_seconds=self.options.retry_seconds)

    def _check_process(self) -> None:
        if not self.is_in_its_process:
            raise StoreError(self.place, "was opened before this process was forked; open it again in the child")


class PostgresStore:
    """The store for ``Journal``. Safe to use from many threads; each call takes a connection of the pool."""

    def __init__(
        self,
        url: str,
        *,
        options: PostgresOptions | None = None,
        durability: Durability = "power_loss",
        migrations: Sequence[Migration] = MIGRATIONS,
    ) -> None:
        operations = _Operations(url, options=options, durability=durability, migrations=migrations)
        self._operations = operations
        self.place = operations.place
        driver.run_alone(operations.prepare, operations.conninfo, operations.waits(), self.place)
        self._pool = driver.make_pool(operations.conninfo, operations.options)
        self._pool.open()
        self._listener = Listener(operations.listen_conninfo, operations.lookup)

    def commit(self, command: Command) -> Result:
        """Run a command and return once it is durable."""
        return driver.run(self._operations.commit(command), self._pool)

    def read(self, query: Query[T]) -> T:
        """Answer a query."""
        return driver.run(self._operations.read(query), self._pool)

    def mark(self, thread_id: str) -> object:
        """Return a value for ``wait``."""
        try:
            topic = driver.run(self._operations.topic(thread_id), self._pool)
        except (NotFoundError, StoreAccessError):
            return None
        return None if topic is None else self._listener.mark(topic)

    def wait(self, thread_id: str, mark: object, timeout: float) -> None:
        """Return when the thread may have changed since ``mark`` was taken, or after ``timeout`` seconds."""
        if isinstance(mark, Mark):
            self._listener.wait(mark, timeout)
        else:
            time.sleep(min(timeout, POLL_SECONDS))

    def repair(self) -> list[Finding]:
        """Return nothing: damage of a PostgreSQL database cannot be repaired by a client."""
        return []

    def reclaim(self) -> int:
        """Return 0: the server's autovacuum gives room back."""
        return 0

    def close(self) -> None:
        """Close the pool and stop listening."""
        if not self._operations.is_in_its_process:
            return
        self._listener.close()
        self._pool.close()


class AsyncPostgresStore:
    """The store for ``AsyncJournal``. Every event loop that uses it connects at its first call."""

    def __init__(
        self,
        url: str,
        *,
        options: PostgresOptions | None = None,
        durability: Durability = "power_loss",
        migrations: Sequence[Migration] = MIGRATIONS,
    ) -> None:
        self._operations = _Operations(url, options=options, durability=durability, migrations=migrations)
        self.place = self._operations.place
        self._loops = EventLoops(self._connections)
        self._is_closed = False

    async def acommit(self, command: Command) -> Result:
        """Run a command and return once it is durable."""
        return await driver_async.run(self._operations.commit(command), await self._opened())

    async def aread(self, query: Query[T]) -> T:
        """Answer a query."""
        return await driver_async.run(self._operations.read(query), await self._opened())

    async def amark(self, thread_id: str) -> object:
        """Return a value for ``await_change``."""
        try:
            topic = await driver_async.run(self._operations.topic(thread_id), await self._opened())
        except (NotFoundError, StoreAccessError):
            return None
        return None if topic is None else self._loops.current().listener.mark(topic)

    async def await_change(self, thread_id: str, mark: object, timeout: float) -> None:
        """Return when the thread may have changed since ``mark`` was taken, or after ``timeout`` seconds."""
        if isinstance(mark, Mark) and not self._is_closed:
            await self._loops.current().listener.wait(mark, timeout)
        else:
            await asyncio.sleep(min(timeout, POLL_SECONDS))

    async def arepair(self) -> list[Finding]:
        """Return nothing: damage of a PostgreSQL database cannot be repaired by a client."""
        return []

    async def areclaim(self) -> int:
        """Return 0: the server's autovacuum gives room back."""
        return 0

    async def aclose(self) -> None:
        """Close the pools and stop listening, on every event loop."""
        self._is_closed = True
        if self._operations.is_in_its_process:
            await self._loops.close()

    async def _opened(self) -> LoopPool:
        if self._is_closed:
            raise StoreClosedError(self.place)
        connections = self._loops.current()
        return connections.pool or await connections.open()

    def _connections(self) -> LoopConnections:
        operations = self._operations
        listener = AsyncListener(operations.listen_conninfo, operations.lookup)
        return LoopConnections(self._open_pool, listener)

    async def _open_pool(self) -> LoopPool:
        operations = self._operations
        await driver_async.run_alone(operations.prepare, operations.conninfo, operations.waits(), self.place)
        pool = driver_async.make_pool(operations.conninfo, operations.options, LoopPool)
        assert isinstance(pool, LoopPool)
        await pool.open()
        return pool
