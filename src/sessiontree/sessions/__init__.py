"""Sessions: conversations by key, with states, time-outs, hooks and automatic compaction."""

from sessiontree.sessions.config import AutoCompact
from sessiontree.sessions.expiry import Recovery, Sweep
from sessiontree.sessions.hooks import EndReason, Fault, Hook, HookPhase, Hooks, SessionEnd
from sessiontree.sessions.info import SessionFilter, SessionInfo, SessionPage, SessionStats
from sessiontree.sessions.keys import DirectScope, format_key, parse_key, route
from sessiontree.sessions.manager import SessionManager
from sessiontree.sessions.manager_async import AsyncSessionManager
from sessiontree.sessions.session import AsyncSession, Session
from sessiontree.sessions.states import TRANSITIONS, Lifetimes, SessionState, can_move

__all__ = [
    "TRANSITIONS",
    "AsyncSession",
    "AsyncSessionManager",
    "AutoCompact",
    "DirectScope",
    "EndReason",
    "Fault",
    "Hook",
    "HookPhase",
    "Hooks",
    "Lifetimes",
    "Recovery",
    "Session",
    "SessionEnd",
    "SessionFilter",
    "SessionInfo",
    "SessionManager",
    "SessionPage",
    "SessionState",
    "SessionStats",
    "Sweep",
    "can_move",
    "format_key",
    "parse_key",
    "route",
]
