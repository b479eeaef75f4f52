"""Memory: durable facts out of long conversations.

Draw durable facts out of a conversation and hand them to whoever keeps them, once per compaction cycle.

The shipped refresher: memories as entries of a thread of their own, found again by words.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Awaitable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Literal, Protocol

from sessiontree.compaction import CompactionPolicy, Summarizer, SummaryRequest, items_of, summary_of
from sessiontree.compaction.memory import (
    NO_MEMORY_NEEDED,
    crosses_soft_threshold,
    fingerprint,
    memory_lines,
    normalize_memory,
)
from sessiontree.compaction.prompts import chunks
from sessiontree.compaction.summarizers.extractive import extractive
from sessiontree.context import window_of
from sessiontree.errors import (
    EmptySummaryError,
    InvalidInputError,
    StaleLeafError,
    StaleVersionError,
    SummaryError,
    ThreadExistsError,
    ThreadNotFoundError,
)
from sessiontree.journal import Journal
from sessiontree.journal.flows import Flow, run_flow, run_flow_async
from sessiontree.model import Compaction, Entry, Memory, Message, SessionKey, Thread
from sessiontree.model._base import Record
from sessiontree.model.later import Later
from sessiontree.model.tokens import estimate_text

if TYPE_CHECKING:
    from sessiontree.journal import journal_async
else:
    journal_async = Later("sessiontree.journal.journal_async")  # asyncio is slow to import

__all__ = [
    "NO_MEMORY_NEEDED",
    "AsyncJournalMemory",
    "ExtractedMemory",
    "JournalMemory",
    "MemoryRefresher",
    "MemoryResult",
    "Recollection",
    "crosses_soft_threshold",
    "fingerprint",
    "normalize_memory",
    "refresh_flow",
    "refresh_memory",
    "refresh_memory_async",
]


REFRESHED_WINDOW = "_memory_window"
"""The key in a thread's custom data that says for which window memories were drawn out last."""

_FEWEST_MESSAGES = 3
_FIRST_WINDOW = "start"

MemoryStatus = Literal["stored", "nothing_to_remember", "already_done", "too_short"]


class ExtractedMemory(Record, frozen=True, kw_only=True):
    """Clean facts, one a line, and where they come from."""

    text: str
    thread_id: str
    window_id: str
    key: SessionKey


class MemoryRefresher(Protocol):
    """Whoever keeps memories. Under an AsyncJournal it may be a coroutine method."""

    def refresh(self, memory: ExtractedMemory) -> Awaitable[object] | object: ...


class MemoryResult(Record, frozen=True, kw_only=True):
    status: MemoryStatus
    text: str = ""


def refresh_memory(
    journal: Journal,
    thread_id: str,
    refresher: MemoryRefresher,
    extract: Summarizer = extractive,
    *,
    policy: CompactionPolicy | None = None,
) -> MemoryResult:
    """Draw memories out of a thread unless that was done since its last compaction.

    A model or a refresher that fails raises, and the next call tries again.
    """
    return run_flow(refresh_flow(thread_id, refresher, extract, policy or CompactionPolicy()), journal)


async def refresh_memory_async(
    journal: journal_async.AsyncJournal,
    thread_id: str,
    refresher: MemoryRefresher,
    extract: Summarizer = extractive,
    *,
    policy: CompactionPolicy | None = None,
) -> MemoryResult:
    """The same for an AsyncJournal."""
    return await run_flow_async(refresh_flow(thread_id, refresher, extract, policy or CompactionPolicy()), journal)


def refresh_flow(
    thread_id: str, refresher: MemoryRefresher, extract: Summarizer, policy: CompactionPolicy
) -> Flow[MemoryResult]:
    thread: Thread = yield lambda journal: journal.thread(thread_id)
    path: list[Entry] = yield lambda journal: journal.path(thread_id)
    window_id = _window_id(path)
    if thread.custom.get(REFRESHED_WINDOW) == window_id:
        return MemoryResult(status="already_done")
    messages = [item.message for item in items_of(path)]
    if len(messages) < _FEWEST_MESSAGES:
        return MemoryResult(status="too_short")
    text = yield from _extracted(messages, extract, policy)
    if text != NO_MEMORY_NEEDED:
        memory = ExtractedMemory(text=text, thread_id=thread_id, window_id=window_id, key=thread.key)
        yield lambda _: refresher.refresh(memory)
    yield from _mark_done(thread_id, window_id)
    return MemoryResult(status="nothing_to_remember" if text == NO_MEMORY_NEEDED else "stored", text=text)


def _extracted(messages: list[Message], extract: Summarizer, policy: CompactionPolicy) -> Flow[str]:
    found: list[str] = []
    for portion in chunks(messages, policy.chunk_tokens, estimate_text):
        request = SummaryRequest(kind="memory", messages=portion, max_tokens=policy.summary_share)
        try:
            answer = yield lambda _: extract(request)
            found.append(summary_of(answer).text)
        except EmptySummaryError:
            continue
        except SummaryError:
            raise
        except Exception as error:
            raise SummaryError(f"the extraction failed with {type(error).__name__}: {error}") from error
    return normalize_memory("\n".join(found)) or NO_MEMORY_NEEDED


def _mark_done(thread_id: str, window_id: str) -> Flow[None]:
    """In the thread's metadata, where every process sees it and no message has to be written for it."""
    while True:
        thread: Thread = yield lambda journal: journal.thread(thread_id)
        custom = {**thread.custom, REFRESHED_WINDOW: window_id}
        version = thread.version
        try:
            yield lambda journal: journal.update_thread(thread_id, expect_version=version, custom=custom)
        except StaleVersionError:
            continue
        return


def _window_id(path: list[Entry]) -> str:
    boundary = window_of(path).boundary
    if boundary is None or not isinstance(boundary.payload, Compaction):
        return _FIRST_WINDOW
    return boundary.payload.window_id or boundary.id


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
_MOST_TERMS = 16
_HITS_A_TERM = 50


class Recollection(Record, frozen=True, kw_only=True):
    """One remembered fact, the entry that holds it, and how well it fits the question."""

    text: str
    entry_id: str
    score: float


class JournalMemory:
    """Keeps memories in the journal, one thread a scope, each fact once; finds them again through ``search``.

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
        self.thread_id = _thread_id(scope)

    def refresh(self, memory: ExtractedMemory) -> Entry | None:
        """Store what is new; ``None`` if everything was known."""
        return run_flow(_store(self.thread_id, memory), self.journal)

    def recall(self, query: str, limit: int = 10) -> list[Recollection]:
        """The facts that share most with the query, best first; the newest ones for an empty query."""
        return run_flow(_recall(self.thread_id, query, limit), self.journal)


class AsyncJournalMemory:
    """The same on an AsyncJournal."""

    def __init__(self, journal: journal_async.AsyncJournal, scope: str = "default") -> None:
        self.journal = journal
        self.thread_id = _thread_id(scope)

    async def refresh(self, memory: ExtractedMemory) -> Entry | None:
        """Store what is new; ``None`` if everything was known."""
        return await run_flow_async(_store(self.thread_id, memory), self.journal)

    async def recall(self, query: str, limit: int = 10) -> list[Recollection]:
        """The facts that share most with the query, best first; the newest ones for an empty query."""
        return await run_flow_async(_recall(self.thread_id, query, limit), self.journal)


def _thread_id(scope: str) -> str:
    if '"' in scope:
        raise InvalidInputError(f"a scope of memories must not hold a quotation mark: {scope!r}")
    return f"memory:{scope}"


def _store(thread_id: str, memory: ExtractedMemory) -> Flow[Entry | None]:
    """Store what nobody stored before; who was faster meanwhile is read first, and then it is tried again."""
    while True:
        leaf = yield from _leaf(thread_id)
        known = {mark for entry in (yield from _entries(thread_id)) for mark in _payload(entry).fingerprints}
        lines = memory_lines(memory.text, known)
        if not lines:
            return None
        try:
            stored: Entry = yield lambda journal: journal.append(thread_id, _memory(memory, lines), expect_leaf=leaf)
        except StaleLeafError:
            continue
        except ThreadNotFoundError:
            with suppress(ThreadExistsError):
                yield lambda journal: journal.create_thread(thread_id, title="Memories", tags=(_TAG,))
            continue
        return stored


def _memory(memory: ExtractedMemory, lines: Sequence[str]) -> Memory:
    return Memory(
        text="\n".join(f"- {line}" for line in lines),
        tags=("session-compaction", f"thread:{memory.thread_id}"),
        fingerprints=tuple(map(fingerprint, lines)),
        metadata={"thread_id": memory.thread_id, "window_id": memory.window_id},
    )


def _leaf(thread_id: str) -> Flow[str | None]:
    try:
        thread: Thread = yield lambda journal: journal.thread(thread_id)
    except ThreadNotFoundError:
        return None
    return thread.leaf


def _recall(thread_id: str, query: str, limit: int) -> Flow[list[Recollection]]:
    wanted = _terms(query)
    entries = (yield from _found(thread_id, wanted)) if wanted else (yield from _entries(thread_id))
    facts: dict[str, Recollection] = {}
    for entry in sorted(entries, key=lambda entry: entry.created_ns, reverse=True):
        for line in memory_lines(_payload(entry).text):
            score = len(wanted & _terms(line)) / len(wanted) if wanted else 1.0
            facts.setdefault(fingerprint(line), Recollection(text=line, entry_id=entry.id, score=score))
    ranked = sorted(facts.values(), key=lambda fact: -fact.score)
    return [fact for fact in ranked if fact.score][:limit]


def _found(thread_id: str, wanted: set[str]) -> Flow[list[Entry]]:
    """Memories that hold at least one of the words: a search asks for all of its words, so each one is searched."""
    found: dict[str, Entry] = {}
    for term in sorted(wanted, key=len, reverse=True)[:_MOST_TERMS]:
        try:
            page = yield lambda journal: journal.search(f'thread:"{thread_id}" "{term}"', limit=_HITS_A_TERM)
        except ThreadNotFoundError:
            return []
        found.update({hit.entry.id: hit.entry for hit in page if isinstance(hit.entry.payload, Memory)})
    return list(found.values())


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
