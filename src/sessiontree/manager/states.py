"""The states of a session and the moves between them.

Two of them are no one's to write: a session is archived because its thread is, and compacting because somebody holds
the claim on it. So no other way of archiving and no crash can leave a session in a state that is not true.

>>> check_move("bot:web:ann", "active", "idle")
>>> can_move("archived", "idle")
False
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, cast, get_args

from sessiontree.errors import InvalidMoveError
from sessiontree.model import Thread

__all__ = ["MOVES", "SessionState", "can_move", "check_move", "state_of", "written_state"]

WrittenState = Literal["active", "idle", "suspended"]
SessionState = Literal["active", "idle", "compacting", "suspended", "archived"]

MOVES: Mapping[SessionState, tuple[SessionState, ...]] = MappingProxyType(
    {
        "active": ("idle", "compacting", "suspended", "archived"),
        "idle": ("active", "compacting", "suspended", "archived"),
        "compacting": ("active", "idle", "suspended", "archived"),
        "suspended": ("active", "archived"),
        "archived": ("active",),
    }
)


def can_move(state: SessionState, wanted: SessionState) -> bool:
    return wanted in MOVES[state]


def check_move(key: str, state: SessionState, wanted: SessionState) -> None:
    if not can_move(state, wanted):
        raise InvalidMoveError(key, state, wanted, MOVES[state])


def state_of(thread: Thread, now_ns: int) -> SessionState:
    """A session's state at a moment."""
    if thread.is_archived:
        return "archived"
    written = written_state(thread)
    claim = thread.compaction_claim
    is_claimed = claim is not None and not claim.is_expired(now_ns)
    return "compacting" if is_claimed and written != "suspended" else written


def written_state(thread: Thread) -> WrittenState:
    """What a manager wrote; anything else counts as active."""
    return cast("WrittenState", thread.state) if thread.state in get_args(WrittenState) else "active"
