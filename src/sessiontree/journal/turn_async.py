"""Verbs about turns and the right to run one; for asyncio.

A turn for asyncio: the same as ``Turn``, with a task for the heartbeat.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Self

from sessiontree.errors import SessionTreeError, StoreError
from sessiontree.journal._verbs_async import AsyncVerbs
from sessiontree.journal.drivers import drive_async
from sessiontree.journal.operations import leaf, turns
from sessiontree.journal.operations.entries import Content, NewEntry, append_many
from sessiontree.journal.operations.requests import Runtime
from sessiontree.journal.operations.turns import DEFAULT_TTL_SECONDS, Resumption, ending_for
from sessiontree.model import CheckpointMoment, Entry, Lease, Message, Payload, Thread, TurnMarker
from sessiontree.model.later import Later
from sessiontree.stores.protocol import AsyncStore

if TYPE_CHECKING:
    from sessiontree.journal.operations import workspace
else:
    # Only turns with files load it.
    workspace = Later("sessiontree.journal.operations.workspace")

__all__ = ["AsyncTurn", "AsyncTurnVerbs"]


class AsyncTurn:
    """``async with journal.turn(thread_id) as turn:``; leaving the block ends the turn as what happened says."""

    def __init__(
        self,
        store: AsyncStore,
        sources: Runtime,
        thread_id: str,
        *,
        owner: str | None,
        turn_id: str | None,
        ttl_seconds: float,
        files: workspace.TurnFiles | None = None,
    ) -> None:
        self._store = store
        self._sources = sources
        self._thread_id = thread_id
        self._owner = owner
        self._turn_id = turn_id
        self._ttl_seconds = ttl_seconds
        self._files = files
        self._ending: TurnMarker = TurnMarker(status="completed")
        self._lease: Lease | None = None
        self._heart: asyncio.Task[None] | None = None
        self._ending_task: asyncio.Future[None] | None = None

    @property
    def lease(self) -> Lease:
        assert self._lease is not None, "the turn has not begun; use it in an async with block"
        return self._lease

    @property
    def id(self) -> str:
        return self.lease.turn_id

    async def append(self, content: Payload | Message, *, id: str | None = None) -> Entry:
        """Append under the lease; FencedError once somebody else took the turn over."""
        stored = await self.append_many([NewEntry(content=content, id=id)])
        return stored[0]

    async def append_many(self, contents: Iterable[Content]) -> list[Entry]:
        """Append several entries under the lease, all or none."""
        return await drive_async(append_many(self._sources, self._thread_id, contents, lease=self.lease), self._store)

    async def save_point(self, reason: str = "") -> Entry:
        """Mark a place that a retry of this turn can go back to."""
        return await drive_async(turns.mark_turn(self._sources, self.lease, "save_point", reason), self._store)

    def wait(self, reason: str = "") -> None:
        """End the turn as waiting, for example for an answer of the user."""
        self._ending = TurnMarker(status="waiting", reason=reason)

    def abort(self, reason: str = "") -> None:
        """End the turn as aborted when the block is left."""
        self._ending = TurnMarker(status="aborted", reason=reason)

    async def __aenter__(self) -> Self:
        begin = turns.begin_turn(self._sources, self._thread_id, self._owner, self._turn_id, self._ttl_seconds)
        begun = asyncio.ensure_future(drive_async(begin, self._store))
        try:
            self._lease = await asyncio.shield(begun)
        except asyncio.CancelledError:
            begun.add_done_callback(self._give_up)
            raise
        self._heart = asyncio.create_task(self._beat(), name=f"lease {self._thread_id}")
        try:
            await self._take_files("before_turn")
        except BaseException as error:
            self._files = None
            await self.__aexit__(type(error), error, None)
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._heart is not None:
            self._heart.cancel()
        marker, text = (self._ending, "") if error is None else ending_for(error)
        try:
            self._ending_task = asyncio.ensure_future(self._end(marker, text))
            await asyncio.shield(self._ending_task)
        except SessionTreeError as refusal:
            if error is None:
                raise
            error.add_note(f"the end of turn {self.id!r} could not be written: {refusal}")

    async def _take_files(self, moment: CheckpointMoment) -> None:
        if self._files is not None:
            await drive_async(workspace.turn_snapshot(self._sources, self._files, self.lease, moment), self._store)

    async def _end(self, marker: TurnMarker, text: str) -> None:
        try:
            await self._take_files("after_turn")
        finally:
            await drive_async(turns.end_turn(self._sources, self.lease, marker, text), self._store)

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(self._ttl_seconds / 3)
            try:
                await drive_async(turns.renew_lease(self._sources, self.lease, self._ttl_seconds), self._store)
            except StoreError:
                continue
            except SessionTreeError:
                return

    def _give_up(self, begun: asyncio.Future[Lease]) -> None:
        """The caller was cancelled while the turn began: what was begun is ended behind its back."""
        if not begun.cancelled() and begun.exception() is None:
            marker = TurnMarker(status="aborted", reason="CancelledError", is_recoverable=True)
            end = turns.end_turn(self._sources, begun.result(), marker)
            self._ending_task = asyncio.ensure_future(drive_async(end, self._store))


class AsyncTurnVerbs(AsyncVerbs):
    async def acquire_lease(
        self, thread_id: str, *, owner: str, turn_id: str | None = None, ttl_seconds: float = DEFAULT_TTL_SECONDS
    ) -> Lease:
        """The right to run a turn; ActiveTurnError while somebody else's has not expired."""
        return await self._run(turns.acquire_lease(self._sources, thread_id, owner, turn_id, ttl_seconds))

    async def renew_lease(self, lease: Lease, *, ttl_seconds: float = DEFAULT_TTL_SECONDS) -> Lease:
        """Keep a lease alive; FencedError if somebody took over."""
        return await self._run(turns.renew_lease(self._sources, lease, ttl_seconds))

    async def release_lease(self, lease: Lease) -> None:
        """Give a lease back; one that is not in force any more is left alone."""
        return await self._run(turns.release_lease(lease))

    async def active_lease(self, thread_id: str) -> Lease | None:
        """The lease in force, if it has not expired."""
        return await self._run(turns.active_lease(self._sources, thread_id))

    async def clear_expired_lease(self, thread_id: str) -> Lease | None:
        """Take an expired lease away and return it."""
        return await self._run(turns.clear_expired_lease(self._sources, thread_id))

    def turn(
        self,
        thread_id: str,
        *,
        owner: str | None = None,
        turn_id: str | None = None,
        ttl_seconds: float = DEFAULT_TTL_SECONDS,
        files: str | os.PathLike[str] | None = None,
    ) -> AsyncTurn:
        """Run a turn: ``async with journal.turn(id) as turn: await turn.append(...)`` keeps the lease and writes the markers.

        With ``files`` a checkpoint of that folder is taken when the turn begins and when it ends.
        """
        return AsyncTurn(
            self.store,
            self._sources,
            thread_id,
            owner=owner,
            turn_id=turn_id,
            ttl_seconds=ttl_seconds,
            files=None if files is None else self.workspace.for_turn(files),
        )

    async def resume(self, thread_id: str, *, owner: str | None = None) -> Resumption:
        """After a crash: turns that never ended become interrupted, and the thread can go on."""
        return await self._run(turns.resume(self._sources, thread_id, owner))

    async def retry(self, thread_id: str) -> Thread:
        """Move the leaf to where the failed turn can start again."""
        return await self._run(leaf.retry(self._sources, thread_id))
