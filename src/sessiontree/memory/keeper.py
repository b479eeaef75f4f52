"""The shipped refresher: memories as entries of a thread of their own, found again by words."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from sessiontree.errors import ThreadExistsError, ThreadNotFoundError
from sessiontree.flows import Flow, run_flow, run_flow_async
from sessiontree.memory.hygiene import fingerprint, memory_lines
from sessiontree.memory.refresh import ExtractedMemory
from sessiontree.model import Entry, Memory
from sessiontree.model.record import Record

if TYPE_CHECKING:
    from sessiontree.async_journal import AsyncJournal
    from sessiontree.journal import Journal

__all__ = ["AsyncJournalMemory", "JournalMemory", "Recollection"]

_WIDE = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+")
_COMMON = frozenset(
    [
        "the",
        "and",
        "of",
        "in",
        "is",
        "are",
        "was",
        "to",
        "for",
        "with",
        "on",
        "at",
        "an",
        "or",
        "it",
        "that",
        "this",
        "what",
        "which",
        "do",
        "does",
    ]
)
_TAG = "memory"


class Recollection(Record, frozen=True, kw_only=True):
    """One remembered fact, the entry that holds it, and how well it fits the question."""

    text: str
    entry_id: str
    score: float


class JournalMemory:
    """Keeps memories in the journal, one thread a scope, each fact once.

    >>> import sessiontree
    >>> from sessiontree.model import NO_KEY
    >>> with sessiontree.open("memory:") as journal:
    ...     keeper = JournalMemory(journal)
    ...     fact = ExtractedMemory(text="- User prefers tabs", thread_id="t", window_id="w", key=NO_KEY)
    ...     _ = keeper.refresh(fact), keeper.refresh(fact)
    ...     [found.text for found in keeper.recall("tabs or spaces?")]
    ['User prefers tabs']
    """

    def __init__(self, journal: Journal, scope: str = "default") -> None:
        self.journal = journal
        self.thread_id = f"memory:{scope}"

    def refresh(self, memory: ExtractedMemory) -> Entry | None:
        """Store what is new; ``None`` if everything was known."""
        return run_flow(_store(self.thread_id, memory), self.journal)

    def recall(self, query: str, limit: int = 10) -> list[Recollection]:
        """The facts that share most with the query, best first; the newest ones for an empty query."""
        return run_flow(_recall(self.thread_id, query, limit), self.journal)


class AsyncJournalMemory:
    """The same on an AsyncJournal."""

    def __init__(self, journal: AsyncJournal, scope: str = "default") -> None:
        self.journal = journal
        self.thread_id = f"memory:{scope}"

    async def refresh(self, memory: ExtractedMemory) -> Entry | None:
        """Store what is new; ``None`` if everything was known."""
        return await run_flow_async(_store(self.thread_id, memory), self.journal)

    async def recall(self, query: str, limit: int = 10) -> list[Recollection]:
        """The facts that share most with the query, best first; the newest ones for an empty query."""
        return await run_flow_async(_recall(self.thread_id, query, limit), self.journal)


def _store(thread_id: str, memory: ExtractedMemory) -> Flow[Entry | None]:
    entries = yield from _entries(thread_id)
    known = {mark for entry in entries for mark in _payload(entry).fingerprints}
    lines = memory_lines(memory.text, known)
    if not lines:
        return None
    with suppress(ThreadExistsError):
        yield lambda journal: journal.create_thread(thread_id, title="Memories", tags=(_TAG,))
    payload = Memory(
        text="\n".join(f"- {line}" for line in lines),
        tags=("session-compaction", f"thread:{memory.thread_id}"),
        fingerprints=tuple(map(fingerprint, lines)),
        metadata={"thread_id": memory.thread_id, "window_id": memory.window_id},
    )
    stored: Entry = yield lambda journal: journal.append(thread_id, payload)
    return stored


def _recall(thread_id: str, query: str, limit: int) -> Flow[list[Recollection]]:
    entries = yield from _entries(thread_id)
    wanted = _terms(query)
    facts: dict[str, Recollection] = {}
    for entry in reversed(entries):
        for line in memory_lines(_payload(entry).text):
            score = len(wanted & _terms(line)) / len(wanted) if wanted else 1.0
            facts.setdefault(fingerprint(line), Recollection(text=line, entry_id=entry.id, score=score))
    ranked = sorted(facts.values(), key=lambda fact: -fact.score)
    return [fact for fact in ranked if fact.score][:limit]


def _entries(thread_id: str) -> Flow[Sequence[Entry]]:
    try:
        found: Sequence[Entry] = yield lambda journal: journal.entries(thread_id)
    except ThreadNotFoundError:
        return []
    return [entry for entry in found if isinstance(entry.payload, Memory)]


def _payload(entry: Entry) -> Memory:
    assert isinstance(entry.payload, Memory)
    return entry.payload


def _terms(text: str) -> set[str]:
    """Words without case, and pairs of characters where a script has no blanks between words."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    words = {word for word in re.findall(r"\w+", folded) if len(word) > 1 or word.isdigit()} - _COMMON
    pairs = {run[index : index + 2] for run in _WIDE.findall(folded) for index in range(max(1, len(run) - 1))}
    return words | pairs
