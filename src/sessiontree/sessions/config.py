"""What both managers are made of: the options that are chosen once, and the desk that they are kept on.

How full the windows of the live sessions are, remembered for the busiest ones only.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Generic, Literal, TypeVar

from sessiontree.compaction import CompactionPolicy, Summarizer
from sessiontree.compaction.summarizers.extractive import extractive
from sessiontree.journal import Journal
from sessiontree.journal.journal_async import AsyncJournal
from sessiontree.journal.memory import MemoryRefresher
from sessiontree.journal.operations.requests import Backoff
from sessiontree.model._base import Record
from sessiontree.model.ids import Clock
from sessiontree.sessions.hooks import Fault, Hooks, Report, log_fault
from sessiontree.sessions.states import Lifetimes

__all__ = ["AutoCompact", "Frame", "ManagerConfig", "TokenCache", "report_fault"]


class TokenCache:
    """Thread id to (leaf, tokens), the least recently used ones forgotten. The leaf tells if a value still holds.

    >>> gauge = TokenCache(most=1)
    >>> gauge.note("a", "e1", 100)
    >>> gauge.note("b", "e2", 200)
    >>> gauge.tokens("a", "e1"), gauge.tokens("b", "e2"), gauge.tokens("b", "e3")
    (None, 200, None)
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._values: OrderedDict[str, tuple[str | None, int]] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._values)

    def note(self, thread_id: str, leaf: str | None, tokens: int) -> None:
        with self._lock:
            self._values[thread_id] = (leaf, tokens)
            self._values.move_to_end(thread_id)
            while len(self._values) > self._most:
                self._values.popitem(last=False)

    def tokens(self, thread_id: str, leaf: str | None) -> int | None:
        with self._lock:
            held = self._values.get(thread_id)
            if held is None or held[0] != leaf:
                return None
            self._values.move_to_end(thread_id)
            return held[1]


class ManagerConfig(Record, frozen=True, kw_only=True):
    """Everything that is chosen once for a manager, and what it keeps in mind."""

    policy: CompactionPolicy
    summarize: Summarizer
    lifetimes: Lifetimes
    refresher: MemoryRefresher | None
    extract: Summarizer
    system_prompt: str
    clock: Clock
    report: Report
    hooks: Hooks
    gauge: TokenCache
    setbacks: Backoff
    memory_setbacks: Backoff


def report_fault(desk: ManagerConfig, fault: Fault) -> None:
    """Tell whoever wants to know; one who fails at that keeps nobody from anything, and both faults are in the log."""
    try:
        desk.report(fault)
    except Exception as error:  # noqa: BLE001  a report is somebody else's code
        log_fault(fault)
        log_fault(Fault(what="the report of a fault", thread_id=fault.thread_id, error=error))


AutoCompact = Literal["background", "inline", "off"]
"""When a message fills the window: compact beside the caller, before returning to it, or not at all."""

_DEFAULT_LIFETIMES = Lifetimes()
_DEFAULT_POLICY = CompactionPolicy()
_MOST_REMEMBERED = 10_000

AnyJournal = TypeVar("AnyJournal", bound=Journal | AsyncJournal)


class Frame(Generic[AnyJournal]):
    """A manager's options. Time is the journal's: sessions and their messages have one clock."""

    def __init__(
        self,
        journal: AnyJournal,
        *,
        summarize: Summarizer = extractive,
        policy: CompactionPolicy = _DEFAULT_POLICY,
        lifetimes: Lifetimes = _DEFAULT_LIFETIMES,
        auto_compact: AutoCompact = "background",
        refresher: MemoryRefresher | None = None,
        extract: Summarizer = extractive,
        system_prompt: str = "",
        report: Report = log_fault,
        most_remembered: int = _MOST_REMEMBERED,
    ) -> None:
        self.journal = journal
        self.hooks = Hooks(are_awaited=isinstance(journal, AsyncJournal))
        self._auto_compact = auto_compact
        self._desk = ManagerConfig(
            policy=policy,
            summarize=summarize,
            lifetimes=lifetimes,
            refresher=refresher,
            extract=extract,
            system_prompt=system_prompt,
            clock=journal.clock,
            report=report,
            hooks=self.hooks,
            gauge=TokenCache(most_remembered),
            setbacks=Backoff(),
            memory_setbacks=Backoff(),
        )
        self._set_up()

    def _set_up(self) -> None:
        """Make what the manager needs to work beside its callers."""
        raise NotImplementedError
