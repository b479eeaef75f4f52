"""Hooks: functions that hear when a session ends, before and after, and why."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable, Collection
from typing import Literal

from sessiontree.errors import InvalidInputError
from sessiontree.model import SessionKey, Thread
from sessiontree.model._base import Record

__all__ = ["EndReason", "Fault", "Hook", "HookPhase", "Hooks", "Report", "SessionEnd", "log_fault"]


EndReason = Literal["archive", "reset", "delete", "timeout", "new"]
HookPhase = Literal["before", "after"]

ALL_REASONS: frozenset[EndReason] = frozenset({"archive", "reset", "delete", "timeout", "new"})


class SessionEnd(Record, frozen=True, kw_only=True):
    """What a hook gets. In the phase ``before`` the conversation is still as it was."""

    phase: HookPhase
    reason: EndReason
    key: SessionKey
    thread: Thread


Hook = Callable[[SessionEnd], Awaitable[object] | object]
"""Any function; under an AsyncSessionManager it may be a coroutine function."""


class Fault(Record, frozen=True, kw_only=True):
    """Something beside the point failed: a hook, a memory refresh, a compaction in the background."""

    what: str
    thread_id: str
    error: Exception


Report = Callable[[Fault], None]


def log_fault(fault: Fault) -> None:
    """What is done about a fault if nobody says otherwise: it goes to the log, with its trace."""
    logging.getLogger("sessiontree.sessions").error(
        "%s failed for %s", fault.what, fault.thread_id, exc_info=fault.error
    )


class Hooks:
    """The hooks of a manager, in the order of their registration. Safe to change while sessions end."""

    def __init__(self, *, are_awaited: bool) -> None:
        self._are_awaited = are_awaited
        self._registered: tuple[tuple[Hook, HookPhase, frozenset[EndReason]], ...] = ()

    def add(self, hook: Hook, *, phase: HookPhase = "before", reasons: Collection[EndReason] = ALL_REASONS) -> None:
        if not self._are_awaited and _is_coroutine_function(hook):
            raise InvalidInputError(f"{hook!r} is a coroutine function and would never run; use an AsyncSessionManager")
        self._registered = (*self._registered, (hook, phase, frozenset(reasons)))

    def remove(self, hook: Hook) -> None:
        self._registered = tuple(held for held in self._registered if held[0] is not hook)

    def matching(self, phase: HookPhase, reason: EndReason) -> list[Hook]:
        return [hook for hook, when, reasons in self._registered if when == phase and reason in reasons]


def _is_coroutine_function(hook: Hook) -> bool:
    return inspect.iscoroutinefunction(hook) or inspect.iscoroutinefunction(getattr(hook, "__call__", None))  # noqa: B004
