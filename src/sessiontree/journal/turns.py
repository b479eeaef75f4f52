"""Verbs about turns and the right to run one."""

from __future__ import annotations

import os

from sessiontree.journal.base import Verbs
from sessiontree.model import Lease, Thread
from sessiontree.operations import leaf, turns
from sessiontree.operations.turns import DEFAULT_TTL_SECONDS, Resumption
from sessiontree.turn import Turn

__all__ = ["TurnVerbs"]


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
