"""Sessions: conversations by key, with states, time-outs, hooks and automatic compaction."""

from sessiontree.manager.async_manager import AsyncSessionManager
from sessiontree.manager.frame import AutoCompact
from sessiontree.manager.hooks import EndReason, Fault, Hook, HookPhase, Hooks, SessionEnd
from sessiontree.manager.info import SessionFilter, SessionInfo, SessionPage, SessionStats
from sessiontree.manager.keys import format_key, parse_key
from sessiontree.manager.lifetimes import Lifetimes
from sessiontree.manager.manager import SessionManager
from sessiontree.manager.scopes import DirectScope, route
from sessiontree.manager.session import AsyncSession, Session
from sessiontree.manager.states import MOVES, SessionState, can_move
from sessiontree.manager.sweeping import Recovery, Sweep

__all__ = [
    "MOVES",
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
