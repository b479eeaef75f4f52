"""Leases and leaf moves: who may run a turn, and where the leaf has been."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from sessiontree.model.record import Record, moment

__all__ = ["Lease", "Move", "MoveReason"]

MoveReason = Literal["move", "rewind", "reset", "retry", "branch", "undo", "redo"]


class Lease(Record, frozen=True, kw_only=True):
    """The right to run a turn on a thread. ``token`` only grows; a write under an older one is refused."""

    thread_id: str
    turn_id: str
    owner: str
    token: int
    created_ns: int
    expires_ns: int

    def is_expired(self, now_ns: int) -> bool:
        return now_ns >= self.expires_ns

    @property
    def expires_at(self) -> datetime:
        return moment(self.expires_ns)


class Move(Record, frozen=True, kw_only=True):
    """One line of the reflog. ``branch`` is an append under another parent than the leaf."""

    number: int
    thread_id: str
    from_entry: str | None = None
    to_entry: str | None = None
    reason: MoveReason = "move"
    at_ns: int = 0

    @property
    def at(self) -> datetime:
        return moment(self.at_ns)
