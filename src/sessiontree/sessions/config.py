"""What a session manager is configured with, and what it remembers about windows."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Literal, TypedDict, Unpack

from msgspec.structs import replace

from sessiontree.compaction import CompactionPolicy, Summarizer
from sessiontree.compaction.memory import MemoryRefreshConfig, MemoryRefresher
from sessiontree.compaction.summarizers.extractive import extractive
from sessiontree.errors import InvalidInputError
from sessiontree.journal.operations.requests import Runtime
from sessiontree.model import Thread
from sessiontree.model._base import Record
from sessiontree.model.tokens import Tools
from sessiontree.sessions.hooks import AsyncHooks, Fault, Report, log_fault
from sessiontree.sessions.states import Lifetimes, session_window

__all__ = [
    "AutoCompact",
    "ManagerConfig",
    "ManagerOptions",
    "WindowCache",
    "WindowState",
    "build_config",
    "changed_config",
    "policy_of",
    "report_fault",
]

AutoCompact = Literal["background", "inline", "off"]
"""When a message fills the window: compact in the background, before ``add_message`` returns, or not at all."""

_MOST_REMEMBERED = 10_000


class WindowState(Record, frozen=True, kw_only=True):
    """What the model sees of a session: how many tokens, the summary in force, its number and time (0 without one)."""

    tokens: int = 0
    summary: str = ""
    compactions: int = 0
    compacted_ns: int = 0


class WindowCache:
    """The windows used last, by thread id. A state is valid for the leaf it was stored with.

    >>> cache = WindowCache(most=1)
    >>> cache.store("a", "e1", WindowState(tokens=100))
    >>> cache.store("b", "e2", WindowState(tokens=200))
    >>> cache.get("a", "e1"), cache.get("b", "e2").tokens, cache.get("b", "e3")
    (None, 200, None)
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._states: OrderedDict[str, tuple[str | None, WindowState]] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._states)

    def store(self, thread_id: str, leaf: str | None, state: WindowState) -> None:
        with self._lock:
            self._states[thread_id] = (leaf, state)
            self._states.move_to_end(thread_id)
            while len(self._states) > self._most:
                self._states.popitem(last=False)

    def get(self, thread_id: str, leaf: str | None) -> WindowState | None:
        with self._lock:
            stored = self._states.get(thread_id)
            if stored is None or stored[0] != leaf:
                return None
            self._states.move_to_end(thread_id)
            return stored[1]


class ManagerOptions(TypedDict, total=False):
    """The keyword arguments of a manager."""

    summarize: Summarizer
    policy: CompactionPolicy
    tools: Tools
    lifetimes: Lifetimes
    auto_compact: AutoCompact
    refresher: MemoryRefresher | None
    extract: Summarizer
    memory_refresh: MemoryRefreshConfig | None
    system_prompt: str
    report: Report
    most_remembered: int


class ManagerConfig(Record, frozen=True, kw_only=True, gc=True):
    """The options of a manager and what it shares with its journal.

    ``summarize`` writes the summaries of compactions; ``extract`` finds the facts that are given to ``refresher``, as
    ``memory_refresh`` says, or else by the policy's ``soft_ratio`` and ``summary_tokens``.
    ``tools`` are the tool definitions that are sent with each request; they take their part of the window.
    ``system_prompt`` is the prompt of new conversations. ``report`` is called with every :class:`Fault`.
    ``most_remembered`` limits how many sessions have their token counts in memory.
    """

    runtime: Runtime
    hooks: AsyncHooks
    windows: WindowCache
    summarize: Summarizer = extractive
    policy: CompactionPolicy = CompactionPolicy()
    tools: Tools = ()
    lifetimes: Lifetimes = Lifetimes()
    auto_compact: AutoCompact = "background"
    refresher: MemoryRefresher | None = None
    extract: Summarizer = extractive
    memory_refresh: MemoryRefreshConfig | None = None
    system_prompt: str = ""
    report: Report = log_fault
    most_remembered: int = _MOST_REMEMBERED


def build_config(runtime: Runtime, hooks: AsyncHooks, **options: Unpack[ManagerOptions]) -> ManagerConfig:
    """Build the configuration of a manager from its keyword arguments."""
    windows = WindowCache(options.get("most_remembered", _MOST_REMEMBERED))
    return ManagerConfig(runtime=runtime, hooks=hooks, windows=windows, **options)


def changed_config(config: ManagerConfig, **options: Unpack[ManagerOptions]) -> ManagerConfig:
    """Return the configuration with other options; InvalidInputError for names that are none."""
    unknown = set(options) - set(ManagerOptions.__annotations__)
    if unknown:
        raise InvalidInputError(
            f"unknown options {sorted(unknown)}; a manager has {sorted(ManagerOptions.__annotations__)}"
        )
    changed = replace(config, **options)
    # What the windows hold was counted with the tools before.
    is_stale = "most_remembered" in options or "tools" in options
    return replace(changed, windows=WindowCache(changed.most_remembered)) if is_stale else changed


def policy_of(config: ManagerConfig, thread: Thread) -> CompactionPolicy:
    """The policy of the manager, with the window of the session if it has one, and the soft threshold of memories."""
    policy = config.policy
    window_tokens = session_window(thread)
    if window_tokens is not None:
        policy = replace(policy, window_tokens=window_tokens)
    memory = config.memory_refresh
    return policy if memory is None else replace(policy, soft_ratio=memory.soft_threshold_ratio)


def report_fault(config: ManagerConfig, fault: Fault) -> None:
    """Call the manager's ``report``; if that fails, both errors are logged."""
    try:
        config.report(fault)
    except Exception as error:  # noqa: BLE001  a caller's function can raise anything
        log_fault(fault)
        log_fault(Fault(what="reporting a fault", thread_id=fault.thread_id, error=error))
