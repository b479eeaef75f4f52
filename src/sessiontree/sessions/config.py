"""What a session manager is configured with, and what it remembers about token counts."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Literal, TypedDict, Unpack

from sessiontree.compaction import CompactionPolicy, Summarizer
from sessiontree.compaction.memory import MemoryRefresher
from sessiontree.compaction.summarizers.extractive import extractive
from sessiontree.journal.operations.requests import Runtime
from sessiontree.model._base import Record
from sessiontree.sessions.hooks import AsyncHooks, Fault, Report, log_fault
from sessiontree.sessions.states import Lifetimes

__all__ = ["AutoCompact", "ManagerConfig", "ManagerOptions", "TokenCache", "build_config", "report_fault"]

AutoCompact = Literal["background", "inline", "off"]
"""When a message fills the window: compact in the background, before ``add_message`` returns, or not at all."""

_MOST_REMEMBERED = 10_000


class TokenCache:
    """Token counts of the windows used last, by thread id. A count is valid for the leaf it was stored with.

    >>> cache = TokenCache(most=1)
    >>> cache.store("a", "e1", 100)
    >>> cache.store("b", "e2", 200)
    >>> cache.get("a", "e1"), cache.get("b", "e2"), cache.get("b", "e3")
    (None, 200, None)
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._counts: OrderedDict[str, tuple[str | None, int]] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._counts)

    def store(self, thread_id: str, leaf: str | None, tokens: int) -> None:
        with self._lock:
            self._counts[thread_id] = (leaf, tokens)
            self._counts.move_to_end(thread_id)
            while len(self._counts) > self._most:
                self._counts.popitem(last=False)

    def get(self, thread_id: str, leaf: str | None) -> int | None:
        with self._lock:
            counted = self._counts.get(thread_id)
            if counted is None or counted[0] != leaf:
                return None
            self._counts.move_to_end(thread_id)
            return counted[1]


class ManagerOptions(TypedDict, total=False):
    """The keyword arguments of a manager."""

    summarize: Summarizer
    policy: CompactionPolicy
    lifetimes: Lifetimes
    auto_compact: AutoCompact
    refresher: MemoryRefresher | None
    extract: Summarizer
    system_prompt: str
    report: Report
    most_remembered: int


class ManagerConfig(Record, frozen=True, kw_only=True, gc=True):
    """The options of a manager and what it shares with its journal.

    ``summarize`` writes the summaries of compactions; ``extract`` finds the facts that are given to ``refresher``.
    ``system_prompt`` is the prompt of new conversations. ``report`` is called with every :class:`Fault`.
    ``most_remembered`` limits how many sessions have their token counts in memory.
    """

    runtime: Runtime
    hooks: AsyncHooks
    token_cache: TokenCache
    summarize: Summarizer = extractive
    policy: CompactionPolicy = CompactionPolicy()
    lifetimes: Lifetimes = Lifetimes()
    auto_compact: AutoCompact = "background"
    refresher: MemoryRefresher | None = None
    extract: Summarizer = extractive
    system_prompt: str = ""
    report: Report = log_fault
    most_remembered: int = _MOST_REMEMBERED


def build_config(runtime: Runtime, hooks: AsyncHooks, **options: Unpack[ManagerOptions]) -> ManagerConfig:
    """Build the configuration of a manager from its keyword arguments."""
    token_cache = TokenCache(options.get("most_remembered", _MOST_REMEMBERED))
    return ManagerConfig(runtime=runtime, hooks=hooks, token_cache=token_cache, **options)


def report_fault(config: ManagerConfig, fault: Fault) -> None:
    """Call the manager's ``report``; if that fails, both errors are logged."""
    try:
        config.report(fault)
    except Exception as error:  # noqa: BLE001  a caller's function can raise anything
        log_fault(fault)
        log_fault(Fault(what="reporting a fault", thread_id=fault.thread_id, error=error))
