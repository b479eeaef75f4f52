"""The file of the openrouter SDK."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import field

from sessiontree.formats import gotime

__all__ = ["Session", "State"]

Chat = list[dict[str, Any]]


class Session(msgspec.Struct, kw_only=True):
    id: str = field(name="ID", default="")
    created_at: str = field(name="CreatedAt", default=gotime.ZERO)
    updated_at: str = field(name="UpdatedAt", default=gotime.ZERO)
    messages: Chat | None = field(name="Messages", default=None)
    user_turns: int = field(name="UserTurns", default=0)
    checkpoints: dict[str, Chat | None] = field(name="Checkpoints", default={})
    file_checkpoints: dict[str, dict[str, str | None] | None] = field(name="FileCheckpoints", default={})


class State(msgspec.Struct, kw_only=True):
    sessions: dict[str, Session]
    fork_counters: dict[str, int]
