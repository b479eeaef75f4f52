"""Draw durable facts out of a conversation and hand them to whoever keeps them, once per compaction cycle."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Literal, Protocol

from sessiontree.compaction import CompactionPolicy, Summarizer, SummaryRequest, items_of, summary_of
from sessiontree.compaction.prompts import chunks
from sessiontree.context import window_of
from sessiontree.errors import EmptySummaryError, StaleVersionError, SummaryError
from sessiontree.flows import Flow, run_flow, run_flow_async
from sessiontree.journal import Journal
from sessiontree.later import Later
from sessiontree.memory.hygiene import NO_MEMORY_NEEDED, normalize_memory
from sessiontree.model import Compaction, Entry, Message, SessionKey, Thread
from sessiontree.model.record import Record
from sessiontree.summarizers import extractive
from sessiontree.tokens import estimate_text

if TYPE_CHECKING:
    from sessiontree import async_journal
else:
    async_journal = Later("sessiontree.async_journal")  # asyncio is slow to import

__all__ = [
    "ExtractedMemory",
    "MemoryRefresher",
    "MemoryResult",
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
    journal: async_journal.AsyncJournal,
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
