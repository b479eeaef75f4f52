# mypy: no-warn-unreachable
"""Turns: a lease that is kept alive while the turn runs, and the entries that mark its start and end."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterable, Collection, Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from sessiontree.errors import SessionTreeError, StoreError
from sessiontree.journal._background_async import AsyncBackground
from sessiontree.journal._base_async import AsyncVerbs
from sessiontree.journal.operations import inbox, leaf, turns
from sessiontree.journal.operations.entries import Content, NewEntry, append_many
from sessiontree.journal.operations.turns import DEFAULT_TTL_SECONDS, Resumption, ending_for
from sessiontree.journal.thread_ids import ThreadLike, id_of
from sessiontree.model import (
    CheckpointMoment,
    Entry,
    Lease,
    Message,
    Payload,
    QueuedFor,
    QueuedMessage,
    Thread,
    ToolResultMessage,
    TurnMarker,
)

if TYPE_CHECKING:
    from sessiontree.context.dialects import Dialect
    from sessiontree.journal.stream_async import AsyncAnswerStream

__all__ = ["AsyncTurn", "AsyncTurnVerbs"]

C = TypeVar("C", bound=Payload | Message)


class AsyncTurn:
    """A turn that is running, from ``async with journal.turn(thread_id) as turn:``.

    A block that ends without an error completes the turn; one that raises an exception marks it as failed, one that
    is interrupted as aborted. The lease is renewed in the background until then.
    """

    def __init__(
        self,
        journal: AsyncVerbs,
        thread_id: str,
        *,
        owner: str | None,
        turn_id: str | None,
        ttl_seconds: float,
        files: str | os.PathLike[str] | None = None,
    ) -> None:
        self._journal = journal
        self._thread_id = thread_id
        self._owner = owner
        self._turn_id = turn_id
        self._ttl_seconds = ttl_seconds
        self._files = files
        self._ending: TurnMarker = TurnMarker(status="completed")
        self._lease: Lease | None = None
        self._heartbeat = AsyncBackground()
        self._answers: list[AsyncAnswerStream] = []

    @property
    def lease(self) -> Lease:
        """The lease under which the turn runs."""
        assert self._lease is not None, "the turn has not begun; use it as a context manager"
        return self._lease

    @property
    def id(self) -> str:
        """The id of the turn."""
        return self.lease.turn_id

    async def append(self, content: C, *, id: str | None = None) -> Entry[C]:
        """Append an entry under the lease. Raises FencedError once another worker has taken the turn over."""
        stored = await self.append_many([NewEntry(content=content, id=id)])
        return cast("Entry[C]", stored[0])

    async def append_many(self, contents: Iterable[Content]) -> list[Entry]:
        """Append several entries under the lease, all or none."""
        operation = append_many(self._journal.runtime, self._thread_id, contents, lease=self.lease)
        stored = await self._journal.run(operation)
        if any(isinstance(entry.payload, ToolResultMessage) for entry in stored):
            await self._place({"next_step"})
        return stored

    async def take_inbox(self) -> list[Entry]:
        """Append the messages that wait in the inbox, and return them; none while a tool call has no result.

        A turn does this by itself when it begins and, for messages that wait for the next step, after tool results. Call
        it where a turn would end, to go on instead.
        """
        return await self._place(inbox.EVERY_MOMENT)

    async def _place(self, moments: Collection[QueuedFor]) -> list[Entry]:
        return await self._journal.run(inbox.place(self._journal.runtime, self.lease, moments))

    def stream(
        self,
        dialect: str | Dialect,
        events: AsyncIterable[Any] | None = None,
        *,
        durable_every_seconds: float | None = None,
    ) -> AsyncAnswerStream:
        """Return a streamed answer of a model: iterate over it for its text, and it is stored at its end.

        ``events`` is what the provider's SDK streams, in the format of ``dialect``. An answer that is interrupted is
        stored as a partial one. With ``durable_every_seconds`` it is saved as it grows, so that ``resume`` finds it
        after a crash: 0 saves each text before it is shown.
        """
        from sessiontree.journal.stream_async import AsyncAnswerStream  # noqa: PLC0415  slow to load, and few stream

        answer = AsyncAnswerStream(self, dialect, events, durable_every_seconds)
        self._answers.append(answer)
        return answer

    def new_id(self) -> str:
        """Return a new id for an entry."""
        return self._journal.runtime.ids.new()

    async def save_point(self, reason: str = "") -> Entry:
        """Mark a place that a retry of this turn can go back to."""
        return await self._journal.run(turns.mark_turn(self._journal.runtime, self.lease, "save_point", reason))

    def wait(self, reason: str = "") -> None:
        """End the turn as waiting when the block ends, for example for an answer of the user."""
        self._ending = TurnMarker(status="waiting", reason=reason)

    def abort(self, reason: str = "") -> None:
        """End the turn as aborted when the block ends."""
        self._ending = TurnMarker(status="aborted", reason=reason)

    async def __aenter__(self) -> Self:
        self._lease = await self._begin()
        self._heartbeat.every(self._ttl_seconds / 3, self._renew, name=f"lease {self._thread_id}")
        try:
            await self._place(inbox.EVERY_MOMENT)
            await self._take_files("before_turn")
        except BaseException as error:
            self._files = None
            await self.__aexit__(type(error), error, None)
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        marker, text = (self._ending, "") if error is None else ending_for(error)
        try:
            if True:  # ASYNC
                # A cancelled caller leaves at once; the task, which is kept in self, still ends the turn.
                self._ending_task = asyncio.ensure_future(self._end(marker, text))
                await asyncio.shield(self._ending_task)
            else:
                self._end(marker, text)
        except SessionTreeError as refusal:
            if error is None:
                raise
            error.add_note(f"the end of turn {self.id!r} could not be written: {refusal}")

    async def _begin(self) -> Lease:
        runtime = self._journal.runtime
        operation = turns.begin_turn(runtime, self._thread_id, self._owner, self._turn_id, self._ttl_seconds)
        if True:  # ASYNC
            begun = asyncio.ensure_future(self._journal.run(operation))
            try:
                return await asyncio.shield(begun)
            except asyncio.CancelledError:
                begun.add_done_callback(self._abort_begun)
                raise
        else:
            return self._journal.run(operation)

    async def _end(self, marker: TurnMarker, text: str) -> None:
        try:
            for answer in self._answers:
                await answer.close()
            await self._heartbeat.close()
            await self._take_files("after_turn")
        finally:
            await self._journal.run(turns.end_turn(self._journal.runtime, self.lease, marker, text))

    async def _take_files(self, moment: CheckpointMoment) -> None:
        if self._files is None:
            return
        from sessiontree.journal.operations import workspace  # noqa: PLC0415  only turns with files load it

        runtime, cache = self._journal.runtime, self._journal.workspace.cache
        await self._journal.run(workspace.turn_snapshot(runtime, cache, self._files, self.lease, moment))

    async def _renew(self) -> bool:
        """Renew the lease; return whether to go on."""
        try:
            await self._journal.run(turns.renew_lease(self._journal.runtime, self.lease, self._ttl_seconds))
        except StoreError:
            return True
        except SessionTreeError:
            return False
        return True

    if True:  # ASYNC

        def _abort_begun(self, begun: asyncio.Future[Lease]) -> None:
            """End a turn that began after its caller was cancelled."""
            if not begun.cancelled() and begun.exception() is None:
                marker = TurnMarker(status="aborted", reason="CancelledError", is_recoverable=True)
                end = turns.end_turn(self._journal.runtime, begun.result(), marker)
                self._ending_task = asyncio.ensure_future(self._journal.run(end))


class AsyncTurnVerbs(AsyncVerbs):
    """The verbs about turns and their leases."""

    async def acquire_lease(
        self, thread_id: ThreadLike, *, owner: str, turn_id: str | None = None, ttl_seconds: float = DEFAULT_TTL_SECONDS
    ) -> Lease:
        """Acquire the lease to run a turn. Raises ActiveTurnError while another one has not expired."""
        return await self.run(turns.acquire_lease(self.runtime, id_of(thread_id), owner, turn_id, ttl_seconds))

    async def renew_lease(self, lease: Lease, *, ttl_seconds: float = DEFAULT_TTL_SECONDS) -> Lease:
        """Extend a lease. Raises FencedError if another worker has taken over."""
        return await self.run(turns.renew_lease(self.runtime, lease, ttl_seconds))

    async def release_lease(self, lease: Lease) -> None:
        """Release a lease; one that is not in force any more is ignored."""
        return await self.run(turns.release_lease(lease))

    async def active_lease(self, thread_id: ThreadLike) -> Lease | None:
        """Return the lease in force, or ``None``."""
        return await self.run(turns.active_lease(self.runtime, id_of(thread_id)))

    async def clear_expired_lease(self, thread_id: ThreadLike, *, created_before_ns: int | None = None) -> Lease | None:
        """Remove an expired lease and return it; ``None`` if there is none.

        With ``created_before_ns``, a lease that was acquired before that time is removed even if it has not expired.
        Its holder can write nothing from then on.
        """
        return await self.run(turns.clear_expired_lease(self.runtime, id_of(thread_id), created_before_ns))

    def turn(
        self,
        thread_id: ThreadLike,
        *,
        owner: str | None = None,
        turn_id: str | None = None,
        ttl_seconds: float = DEFAULT_TTL_SECONDS,
        files: str | os.PathLike[str] | None = None,
    ) -> AsyncTurn:
        """Return a turn to run: ``async with journal.turn(thread_id) as turn: await turn.append(...)``.

        Entering acquires the lease and appends a marker; leaving appends another one and releases the lease. With
        ``files``, a checkpoint of that folder is taken when the turn begins and when it ends.
        """
        return AsyncTurn(self, id_of(thread_id), owner=owner, turn_id=turn_id, ttl_seconds=ttl_seconds, files=files)

    async def enqueue(
        self,
        thread_id: ThreadLike,
        message: Payload | Message,
        *,
        when: QueuedFor = "next_step",
        id: str | None = None,
    ) -> QueuedMessage:
        """Put a message of a user into the inbox of a thread; it is durable when this returns.

        The turn that runs appends it at the next safe point: after the results of all tool calls, or with
        ``when="next_turn"`` at the start of the next turn. Each message is appended once, in order, also after a crash. An
        ``id`` that is there already with the same message is not queued again. ``watch`` shows what is queued.
        """
        return await self.run(inbox.enqueue(self.runtime, id_of(thread_id), message, when, id))

    async def inbox(self, thread_id: ThreadLike) -> list[QueuedMessage]:
        """Return the messages that wait in the inbox of a thread, oldest first."""
        return await self.run(inbox.inbox(id_of(thread_id)))

    async def withdraw(self, thread_id: ThreadLike, queued_id: str) -> bool:
        """Take a message back from the inbox; return False if a turn has appended it already."""
        return await self.run(inbox.withdraw(self.runtime, id_of(thread_id), queued_id))

    async def resume(self, thread_id: ThreadLike, *, owner: str | None = None) -> Resumption:
        """Mark turns that a crash left open as interrupted, so that the thread can go on.

        Raises ActiveTurnError while the lease of another owner has not expired.
        """
        return await self.run(turns.resume(self.runtime, id_of(thread_id), owner))

    async def retry(self, thread_id: ThreadLike) -> Thread:
        """Move the leaf back to where the failed turn can start again. Raises NothingToRetryError if none failed."""
        return await self.run(leaf.retry(self.runtime, id_of(thread_id)))
