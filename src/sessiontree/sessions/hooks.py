"""Functions that are called before and after a session ends, and reports of what failed meanwhile."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable, Collection
from typing import Literal

from sessiontree.errors import InvalidInputError
from sessiontree.model import SessionKey, Thread
from sessiontree.model._base import Record

__all__ = ["AsyncHooks", "EndReason", "Fault", "Hook", "HookPhase", "Hooks", "Report", "SessionEnd", "log_fault"]


EndReason = Literal["archive", "reset", "delete", "timeout", "new"]
HookPhase = Literal["before", "after"]

ALL_REASONS: frozenset[EndReason] = frozenset({"archive", "reset", "delete", "timeout", "new"})


class SessionEnd(Record, frozen=True, kw_only=True):
    """The argument of a hook. In the phase ``before`` nothing has changed yet."""

    phase: HookPhase
    reason: EndReason
    key: SessionKey
    thread: Thread


Hook = Callable[[SessionEnd], Awaitable[object] | object]
"""A function; an AsyncSessionManager also accepts a coroutine function."""


class Fault(Record, frozen=True, kw_only=True):
    """An error that did not stop the operation: in a hook, a memory refresh or a background compaction."""

    what: str
    thread_id: str
    error: Exception


Report = Callable[[Fault], None]


def log_fault(fault: Fault) -> None:
    """Log a fault with its traceback, to the logger ``sessiontree.sessions``. The default of ``report``."""
    logging.getLogger("sessiontree.sessions").error(
        "%s failed for %s", fault.what, fault.thread_id, exc_info=fault.error
    )


class AsyncHooks:
    """The hooks of an AsyncSessionManager, called in the order in which they were added.

    They can be added and removed at any time. A failing hook is reported and does not stop the others.
    """

    def __init__(self) -> None:
        self._hooks: tuple[tuple[Hook, HookPhase, frozenset[EndReason]], ...] = ()

    def add(self, hook: Hook, *, phase: HookPhase = "before", reasons: Collection[EndReason] = ALL_REASONS) -> None:
        """Call ``hook`` with a :class:`SessionEnd` whenever a session ends for one of the reasons."""
        self._hooks = (*self._hooks, (hook, phase, frozenset(reasons)))

    def remove(self, hook: Hook) -> None:
        """Remove a hook from all phases."""
        self._hooks = tuple(added for added in self._hooks if added[0] is not hook)

    def matching(self, phase: HookPhase, reason: EndReason) -> list[Hook]:
        """Return the hooks for a phase and a reason."""
        return [hook for hook, when, reasons in self._hooks if when == phase and reason in reasons]


class Hooks(AsyncHooks):
    """The hooks of a SessionManager: plain functions only."""

    def add(self, hook: Hook, *, phase: HookPhase = "before", reasons: Collection[EndReason] = ALL_REASONS) -> None:
        """Call ``hook`` with a :class:`SessionEnd` whenever a session ends for one of the reasons."""
        if _is_coroutine_function(hook):
            raise InvalidInputError(f"{hook!r} is a coroutine function and would never run; use an AsyncSessionManager")
        super().add(hook, phase=phase, reasons=reasons)


def _is_coroutine_function(hook: Hook) -> bool:
    return inspect.iscoroutinefunction(hook) or inspect.iscoroutinefunction(getattr(hook, "__call__", None))  # noqa: B004
