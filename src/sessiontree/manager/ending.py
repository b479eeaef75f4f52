"""How a session's end is told: hooks before, the deed, hooks after."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar

from sessiontree.flows import Flow
from sessiontree.manager.desk import Desk, report_fault
from sessiontree.manager.hooks import EndReason, Fault, HookPhase, SessionEnd
from sessiontree.model import Thread

__all__ = ["end"]

_under_way: ContextVar[frozenset[tuple[str, EndReason]]] = ContextVar("ends under way", default=frozenset())
"""What the hooks that run here are about: threads and reasons. Tasks that a hook starts inherit it."""


def end(desk: Desk, reason: EndReason, thread: Thread, act: Callable[[], Flow[Thread | None]]) -> Flow[Thread | None]:
    """Tell the hooks, act, tell them again; ``None`` if there was nothing to do any more, and then no hook hears after.

    A hook that asks for the end which it is being told about would ask for ever: for it there is nothing to do.
    """
    mark = (thread.id, reason)
    outer = _under_way.get()
    if mark in outer:
        return None
    _under_way.set(outer | {mark})
    try:
        yield from _announce(desk, "before", reason, thread)
        ended = yield from act()
        if ended is not None:
            yield from _announce(desk, "after", reason, ended)
        return ended
    finally:
        _under_way.set(outer)


def _announce(desk: Desk, phase: HookPhase, reason: EndReason, thread: Thread) -> Flow[None]:
    """One hook that fails is reported and keeps nobody from anything."""
    event = SessionEnd(phase=phase, reason=reason, key=thread.key, thread=thread)
    for hook in desk.hooks.matching(phase, reason):
        try:
            yield lambda _: hook(event)
        except Exception as error:  # noqa: BLE001  a hook is somebody else's code
            report_fault(desk, Fault(what=f"a hook {phase} {reason}", thread_id=thread.id, error=error))
