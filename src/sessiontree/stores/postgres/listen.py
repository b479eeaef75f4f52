"""Hearing of new entries: LISTEN on a connection of its own, and a note in the thread's row that somebody listens.

Appends notify only for threads that are watched, because PostgreSQL lets transactions that notify commit one by one.
A notification is a hint and never carries data: whoever waits reads what is new after each hint, after a lost
connection and now and then anyway, so nothing is missed.
"""

from __future__ import annotations

import asyncio
import hashlib
import threading
import time

import psycopg
from psycopg import AsyncConnection, Connection

from sessiontree.model._base import Record
from sessiontree.stores.postgres import driver, driver_async
from sessiontree.stores.postgres.steps import Statement, Steps, TreeLookup, to_bytes

__all__ = ["NOTIFY", "AsyncListener", "Heard", "Listener", "Mark", "Watches", "channel_of"]


NOTIFY = """CASE WHEN watched_until > now() THEN pg_notify(
    'sessiontree_' || left(encode(sha256(convert_to(%(namespace)s, 'UTF8')), 'hex'), 32),
    %(tree)s || ':' || key) END"""
"""What an append asks of the head row: the channel's name is made only where somebody watches."""

_MOST_TOPICS = 100_000
_WATCHED_SECONDS = 60
_RENEW_SECONDS = 20.0
_RECONNECT_SECONDS = 0.5
_LISTEN_SECONDS = 0.2
POLL_SECONDS = 0.1

_WATCH = f"""
UPDATE sessiontree.head SET watched_until = now() + interval '{_WATCHED_SECONDS} seconds'
WHERE tree = %(tree)s AND id = %(thread)s RETURNING key"""


def channel_of(namespace: str) -> str:
    """A channel for each namespace: nobody is woken for another one's news, or learns of it by chance."""
    return "sessiontree_" + hashlib.sha256(namespace.encode()).hexdigest()[:32]


class Mark(Record, frozen=True, kw_only=True):
    """What had been heard about a thread when somebody looked."""

    topic: str
    heard: int


class Watches:
    """Which threads this process watches, renewed in their rows before the note runs out."""

    def __init__(self, homes: TreeLookup) -> None:
        self._homes = homes
        self._topics: dict[str, tuple[str, float]] = {}

    def topic(self, thread_id: str) -> Steps[str | None]:
        topic, renew_at = self._topics.get(thread_id, ("", 0.0))
        if time.monotonic() < renew_at:
            return topic
        tree = yield from self._homes.find(thread_id)
        rows = yield Statement(_WATCH, {"tree": tree, "thread": to_bytes(thread_id)})
        if not rows:
            self._homes.forget(thread_id)
            return None
        topic = f"{tree}:{rows[0][0]}"
        if len(self._topics) >= _MOST_TOPICS:
            self._topics.clear()
        self._topics[thread_id] = (topic, time.monotonic() + _RENEW_SECONDS)
        return topic


class Heard:
    """When something was last heard about the topics that somebody asked for; other topics are not kept.

    >>> heard = Heard()
    >>> before = heard.last("a")
    >>> heard.hear("b"), heard.last("a") == before
    (False, True)
    >>> heard.hear("a"), heard.last("a") == before
    (True, False)
    """

    def __init__(self) -> None:
        self._clock = 0
        self._all = 0
        self._topics: dict[str, int] = {}

    def last(self, topic: str) -> int:
        if topic not in self._topics and len(self._topics) >= _MOST_TOPICS:
            self._topics.clear()
            self.hear_all()
        return max(self._topics.setdefault(topic, 0), self._all)

    def hear(self, topic: str) -> bool:
        """Whether anybody asked for it."""
        if topic not in self._topics:
            return False
        self._clock += 1
        self._topics[topic] = self._clock
        return True

    def hear_all(self) -> None:
        """Something may have happened to any topic."""
        self._clock += 1
        self._all = self._clock


class Listener:
    """A thread that listens and wakes whoever waits."""

    def __init__(self, conninfo: str, channel: str) -> None:
        self._conninfo = conninfo
        self._channel = channel
        self._heard = Heard()
        self._news = threading.Condition()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self.is_live = False

    def mark(self, topic: str) -> Mark:
        with self._news:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="sessiontree listener", daemon=True)
                self._thread.start()
            return Mark(topic=topic, heard=self._heard.last(topic))

    def wait(self, mark: Mark, timeout: float) -> None:
        if not self.is_live:
            self._stop.wait(min(timeout, POLL_SECONDS))
            return
        with self._news:
            self._news.wait_for(lambda: self._heard.last(mark.topic) != mark.heard or self._stop.is_set(), timeout)

    def close(self) -> None:
        self._stop.set()
        self._hear_all()
        if self._thread is not None:
            self._thread.join()

    def _hear(self, topic: str) -> None:
        with self._news:
            if self._heard.hear(topic):
                self._news.notify_all()

    def _hear_all(self) -> None:
        with self._news:
            self._heard.hear_all()
            self._news.notify_all()

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                with Connection.connect(self._conninfo, autocommit=True) as connection:
                    if not driver.is_direct(connection):
                        return
                    self._listen(connection)
            except psycopg.Error:
                self.is_live = False
                self._hear_all()
                self._stop.wait(_RECONNECT_SECONDS)

    def _listen(self, connection: Connection) -> None:
        connection.execute(f"LISTEN {self._channel}")
        self.is_live = True
        self._hear_all()
        while not self._stop.is_set():
            for notice in connection.notifies(timeout=_LISTEN_SECONDS):
                self._hear(notice.payload)


class AsyncListener:
    """The same as a task of the event loop."""

    def __init__(self, conninfo: str, channel: str) -> None:
        self._conninfo = conninfo
        self._channel = channel
        self._heard = Heard()
        self._news = asyncio.Condition()
        self._task: asyncio.Task[None] | None = None
        self.is_live = False

    def mark(self, topic: str) -> Mark:
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name="sessiontree listener")
        return Mark(topic=topic, heard=self._heard.last(topic))

    async def wait(self, mark: Mark, timeout: float) -> None:
        if not self.is_live:
            await asyncio.sleep(min(timeout, POLL_SECONDS))
            return
        try:
            async with asyncio.timeout(timeout), self._news:
                await self._news.wait_for(lambda: self._heard.last(mark.topic) != mark.heard)
        except TimeoutError:
            return

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            await self._hear_all()

    async def _hear(self, topic: str) -> None:
        async with self._news:
            if self._heard.hear(topic):
                self._news.notify_all()

    async def _hear_all(self) -> None:
        async with self._news:
            self._heard.hear_all()
            self._news.notify_all()

    async def _run(self) -> None:
        while True:
            try:
                async with await AsyncConnection.connect(self._conninfo, autocommit=True) as connection:
                    if not await driver_async.is_direct(connection):
                        return
                    await self._listen(connection)
            except psycopg.Error:
                self.is_live = False
                await self._hear_all()
                await asyncio.sleep(_RECONNECT_SECONDS)

    async def _listen(self, connection: AsyncConnection) -> None:
        await connection.execute(f"LISTEN {self._channel}")
        self.is_live = True
        await self._hear_all()
        async for notice in connection.notifies():
            await self._hear(notice.payload)
