"""What both managers are made of: the options that are chosen once, and the desk that they are kept on."""

from __future__ import annotations

from typing import Generic, Literal, TypeVar

from sessiontree.async_journal import AsyncJournal
from sessiontree.compaction import CompactionPolicy, Summarizer
from sessiontree.journal import Journal
from sessiontree.manager.desk import Desk
from sessiontree.manager.gauge import Gauge
from sessiontree.manager.hooks import Hooks, Report, log_fault
from sessiontree.manager.lifetimes import Lifetimes
from sessiontree.memory import MemoryRefresher
from sessiontree.operations.setbacks import Setbacks
from sessiontree.summarizers import extractive

__all__ = ["AutoCompact", "Frame"]

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
        self._desk = Desk(
            policy=policy,
            summarize=summarize,
            lifetimes=lifetimes,
            refresher=refresher,
            extract=extract,
            system_prompt=system_prompt,
            clock=journal.clock,
            report=report,
            hooks=self.hooks,
            gauge=Gauge(most_remembered),
            setbacks=Setbacks(),
            memory_setbacks=Setbacks(),
        )
        self._set_up()

    def _set_up(self) -> None:
        """Make what the manager needs to work beside its callers."""
        raise NotImplementedError
