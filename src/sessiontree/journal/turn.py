"""A turn: a lease that is kept alive, and the markers that tell how it went.

Verbs about turns and the right to run one.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Self

from sessiontree.errors import SessionTreeError, StoreError
from sessiontree.journal._verbs import Verbs
from sessiontree.journal.drivers import drive
from sessiontree.journal.operations import leaf, turns
from sessiontree.journal.operations.entries import Content, NewEntry, append_many
from sessiontree.journal.operations.requests import Runtime
from sessiontree.journal.operations.turns import DEFAULT_TTL_SECONDS, Resumption, ending_for
from sessiontree.model import CheckpointMoment, Entry, Lease, Message, Payload, Thread, TurnMarker
from sessiontree.model.later import Later
from sessiontree.stores.protocol import Store

if TYPE_CHECKING:
    from sessiontree.journal.operations import workspace
else:
    # Only turns with files load it.
    workspace = Later("sessiontree.journal.operations.workspace")

__all__ = ["Turn", "TurnVerbs"]


class Turn:
    """``with journal.turn(thread_id) as turn:``; leaving the block ends the turn as what happened says."""

    def __init__(
        self,
        store: Store,
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
        self._stop = threading.Event()
        self._heart: threading.Thread | None = None

    @property
    def lease(self) -> Lease:
        assert self._lease is not None, "the turn has not begun; use it in a with block"
        return self._lease

    @property
    def id(self) -> str:
        return self.lease.turn_id

    def append(self, content: Payload | Message, *, id: str | None = None) -> Entry:
        """Append under the lease; FencedError once somebody else took the turn over."""
        return self.append_many([NewEntry(content=content, id=id)])[0]

    def append_many(self, contents: Iterable[Content]) -> list[Entry]:
        """Append several entries under the lease, all or none."""
        return drive(append_many(self._sources, self._thread_id, contents, lease=self.lease), self._store)

    def save_point(self, reason: str = "") -> Entry:
        """Mark a place that a retry of this turn can go back to."""
        return drive(turns.mark_turn(self._sources, self.lease, "save_point", reason), self._store)

    def wait(self, reason: str = "") -> None:
        """End the turn as waiting, for example for an answer of the user."""
        self._ending = TurnMarker(status="waiting", reason=reason)

    def abort(self, reason: str = "") -> None:
        """End the turn as aborted when the block is left."""
        self._ending = TurnMarker(status="aborted", reason=reason)

    def __enter__(self) -> Self:
        begin = turns.begin_turn(self._sources, self._thread_id, self._owner, self._turn_id, self._ttl_seconds)
        self._lease = drive(begin, self._store)
        self._heart = threading.Thread(target=self._beat, name=f"lease {self._thread_id}", daemon=True)
        self._heart.start()
        try:
            self._take_files("before_turn")
        except BaseException as error:
            self._files = None
            self.__exit__(type(error), error, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        if self._heart is not None:
            self._heart.join()
        marker, text = (self._ending, "") if error is None else ending_for(error)
        try:
            try:
                self._take_files("after_turn")
            finally:
                drive(turns.end_turn(self._sources, self.lease, marker, text), self._store)
        except SessionTreeError as refusal:
            if error is None:
                raise
            error.add_note(f"the end of turn {self.id!r} could not be written: {refusal}")

    def _take_files(self, moment: CheckpointMoment) -> None:
        if self._files is not None:
            drive(workspace.turn_snapshot(self._sources, self._files, self.lease, moment), self._store)

    def _beat(self) -> None:
        while not self._stop.wait(self._ttl_seconds / 3):
            try:
                drive(turns.renew_lease(self._sources, self.lease, self._ttl_seconds), self._store)
            except StoreError:
                continue
            except SessionTreeError:
                return


class TurnVerbs(Verbs):
    def acquire_lease(
        self, thread_id: str, *, owner: str, turn_id: str | None = None, ttl_seconds: float = DEFAULT_TTL_SECONDS
    ) -> Lease:
        """The right to run a turn; ActiveTurnError while somebody else's has not expired."""
        return self._run(turns.acquire_lease(self._sources, thread_id, owner, turn_id, ttl_seconds))

    def renew_lease(self, lease: Lease, *, ttl_seconds: float = DEFAULT_TTL_SECONDS) -> Lease:
        """Keep a lease alive; FencedError if somebody took over."""
        return self._run(turns.renew_lease(self._sources, lease, ttl_seconds))

    def release_lease(self, lease: Lease) -> None:
        """Give a lease back; one that is not in force any more is left alone."""
        return self._run(turns.release_lease(lease))

    def active_lease(self, thread_id: str) -> Lease | None:
        """The lease in force, if it has not expired."""
        return self._run(turns.active_lease(self._sources, thread_id))

    def clear_expired_lease(self, thread_id: str) -> Lease | None:
        """Take an expired lease away and return it."""
        return self._run(turns.clear_expired_lease(self._sources, thread_id))

    def turn(
        self,
        thread_id: str,
        *,
        owner: str | None = None,
        turn_id: str | None = None,
        ttl_seconds: float = DEFAULT_TTL_SECONDS,
        files: str | os.PathLike[str] | None = None,
    ) -> Turn:
        """Run a turn: ``with journal.turn(id) as turn: turn.append(...)`` keeps the lease and writes the markers.

        With ``files`` a checkpoint of that folder is taken when the turn begins and when it ends.
        """
        return Turn(
            self.store,
            self._sources,
            thread_id,
            owner=owner,
            turn_id=turn_id,
            ttl_seconds=ttl_seconds,
            files=None if files is None else self.workspace.for_turn(files),
        )

    def resume(self, thread_id: str, *, owner: str | None = None) -> Resumption:
        """After a crash: turns that never ended become interrupted, and the thread can go on."""
        return self._run(turns.resume(self._sources, thread_id, owner))

    def retry(self, thread_id: str) -> Thread:
        """Move the leaf to where the failed turn can start again."""
        return self._run(leaf.retry(self._sources, thread_id))
