"""Waiting for new entries: LISTEN on a separate connection, and a time in the thread's row until which it is watched.

Appends notify only for watched threads, because PostgreSQL serialises the commits of transactions that notify. A
notification carries no data: a watcher reads the thread after each one, after a lost connection and now and then anyway,
so it misses nothing.
"""

from __future__ import annotations

import asyncio
import secrets
import threading
import time

import psycopg
from psycopg import AsyncConnection, Connection

from sessiontree.model._base import Record
from sessiontree.stores.postgres import driver, driver_async
from sessiontree.stores.postgres.steps import Statement, Steps, TreeLookup, to_bytes

__all__ = ["AsyncListener", "Listener", "Mark", "Notices", "Watches", "find_channel"]


_MAX_TOPICS = 100_000
_WATCHED_SECONDS = 60
_RENEW_SECONDS = 20.0
_RECONNECT_SECONDS = 0.5
_LISTEN_SECONDS = 0.2
POLL_SECONDS = 0.1

_CHANNEL = "SELECT name FROM sessiontree.channel WHERE namespace = %(namespace)s"
_NEW_CHANNEL = """
INSERT INTO sessiontree.channel (namespace, name) VALUES (%(namespace)s, %(name)s) ON CONFLICT DO NOTHING"""
_WATCH = f"""
UPDATE sessiontree.head SET watched_until = now() + interval '{_WATCHED_SECONDS} seconds'
WHERE tree = %(tree)s AND id = %(thread)s AND namespace = %(namespace)s RETURNING key"""


def find_channel(namespace: str) -> Steps[str]:
    """The channel of a namespace, which gets one when it is first opened.

    A role that is not bound to the namespace is refused here: it can neither read the row nor write it.
    """
    values = {"namespace": namespace, "name": f"sessiontree_{secrets.token_hex(16)}"}
    while not (rows := (yield Statement(_CHANNEL, values))):
        yield Statement(_NEW_CHANNEL, values)
    return str(rows[0][0])


class Mark(Record, frozen=True, kw_only=True):
    """The state of a topic at some moment: the number of its latest notification."""

    topic: str
    latest: int


class Watches:
    """The threads that this process watches; their rows are renewed before ``watched_until``."""

    def __init__(self, lookup: TreeLookup) -> None:
        self._lookup = lookup
        self._topics: dict[str, tuple[str, float]] = {}

    def topic(self, thread_id: str) -> Steps[str | None]:
        """Watch a thread and return its topic; None if it was deleted."""
        topic, renew_at = self._topics.get(thread_id, ("", 0.0))
        if time.monotonic() < renew_at:
            return topic
        tree = yield from self._lookup.find(thread_id)
        values = {"tree": tree, "thread": to_bytes(thread_id), "namespace": self._lookup.namespace}
        rows = yield Statement(_WATCH, values)
        if not rows:
            self._lookup.forget(thread_id)
            return None
        topic = f"{tree}:{rows[0][0]}"
        if len(self._topics) >= _MAX_TOPICS:
            self._topics.clear()
        self._topics[thread_id] = (topic, time.monotonic() + _RENEW_SECONDS)
        return topic


class Notices:
    """The latest notification of each topic that was asked for; notifications of other topics are ignored.

    >>> notices = Notices()
    >>> before = notices.latest("a")
    >>> notices.add("b"), notices.latest("a") == before
    (False, True)
    >>> notices.add("a"), notices.latest("a") == before
    (True, False)
    """

    def __init__(self) -> None:
        self._count = 0
        self._all = 0
        self._topics: dict[str, int] = {}

    def latest(self, topic: str) -> int:
        """The number of the latest notification of a topic."""
        if topic not in self._topics and len(self._topics) >= _MAX_TOPICS:
            self._topics.clear()
            self.add_to_all()
        return max(self._topics.setdefault(topic, 0), self._all)

    def add(self, topic: str) -> bool:
        """Count a notification; False if the topic was never asked for."""
        if topic not in self._topics:
            return False
        self._count += 1
        self._topics[topic] = self._count
        return True

    def add_to_all(self) -> None:
        """Count a notification of every topic: after a lost connection any of them may have changed."""
        self._count += 1
        self._all = self._count


class Listener:
    """A thread that listens and wakes waiting callers."""

    def __init__(self, conninfo: str, lookup: TreeLookup) -> None:
        self._conninfo = conninfo
        self._lookup = lookup
        self._notices = Notices()
        self._changed = threading.Condition()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self.is_live = False

    def mark(self, topic: str) -> Mark:
        """The current state of a topic; starts listening."""
        with self._changed:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="sessiontree listener", daemon=True)
                self._thread.start()
            return Mark(topic=topic, latest=self._notices.latest(topic))

    def wait(self, mark: Mark, timeout: float) -> None:
        """Return after a notification since ``mark``, or ``timeout`` seconds; sooner if not connected."""
        if not self.is_live:
            self._stop.wait(min(timeout, POLL_SECONDS))
            return
        with self._changed:
            self._changed.wait_for(
                lambda: self._notices.latest(mark.topic) != mark.latest or self._stop.is_set(), timeout
            )

    def close(self) -> None:
        """Stop listening and wake waiting callers."""
        self._stop.set()
        self._notify_all()
        if self._thread is not None:
            self._thread.join()

    def _notify(self, topic: str) -> None:
        with self._changed:
            if self._notices.add(topic):
                self._changed.notify_all()

    def _notify_all(self) -> None:
        with self._changed:
            self._notices.add_to_all()
            self._changed.notify_all()

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                with Connection.connect(self._conninfo, autocommit=True) as connection:
                    if not driver.is_direct(connection):
                        return
                    self._listen(connection)
            except psycopg.Error:
                self.is_live = False
                self._notify_all()
                self._stop.wait(_RECONNECT_SECONDS)

    def _listen(self, connection: Connection) -> None:
        connection.execute(f"LISTEN {self._lookup.channel}")
        self.is_live = True
        self._notify_all()
        while not self._stop.is_set():
            for notice in connection.notifies(timeout=_LISTEN_SECONDS):
                self._notify(notice.payload)


class AsyncListener:
    """``Listener`` as a task of the event loop."""

    def __init__(self, conninfo: str, lookup: TreeLookup) -> None:
        self._conninfo = conninfo
        self._lookup = lookup
        self._notices = Notices()
        self._changed = asyncio.Condition()
        self._task: asyncio.Task[None] | None = None
        self.is_live = False

    def mark(self, topic: str) -> Mark:
        """The current state of a topic; starts listening."""
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name="sessiontree listener")
        return Mark(topic=topic, latest=self._notices.latest(topic))

    async def wait(self, mark: Mark, timeout: float) -> None:
        """Return after a notification since ``mark``, or ``timeout`` seconds; sooner if not connected."""
        if not self.is_live:
            await asyncio.sleep(min(timeout, POLL_SECONDS))
            return
        try:
            async with asyncio.timeout(timeout), self._changed:
                await self._changed.wait_for(lambda: self._notices.latest(mark.topic) != mark.latest)
        except TimeoutError:
            return

    async def close(self) -> None:
        """Stop listening and wake waiting callers."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            await self._notify_all()

    async def _notify(self, topic: str) -> None:
        async with self._changed:
            if self._notices.add(topic):
                self._changed.notify_all()

    async def _notify_all(self) -> None:
        async with self._changed:
            self._notices.add_to_all()
            self._changed.notify_all()

    async def _run(self) -> None:
        while True:
            try:
                async with await AsyncConnection.connect(self._conninfo, autocommit=True) as connection:
                    if not await driver_async.is_direct(connection):
                        return
                    await self._listen(connection)
            except psycopg.Error:
                self.is_live = False
                await self._notify_all()
                await asyncio.sleep(_RECONNECT_SECONDS)

    async def _listen(self, connection: AsyncConnection) -> None:
        await connection.execute(f"LISTEN {self._lookup.channel}")
        self.is_live = True
        await self._notify_all()
        async for notice in connection.notifies():
            await self._notify(notice.payload)
