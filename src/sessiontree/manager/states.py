"""The states of a session and the moves between them.

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

__all__ = ["MOVES", "SessionState", "can_move", "check_move", "state_of"]

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


def state_of(thread: Thread) -> SessionState:
    """A thread's state; one that no manager wrote counts as active, or as archived if it is."""
    if thread.is_archived:
        return "archived"
    return cast("SessionState", thread.state) if thread.state in get_args(SessionState) else "active"
