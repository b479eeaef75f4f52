"""Memories of a conversation: extract facts, store them in a thread of their own, and find them again."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from sessiontree.compaction import CompactionPolicy, Summarizer, SummaryRequest, items_of, summary_of
from sessiontree.compaction.memory import (
    NO_MEMORY_NEEDED,
    ExtractedMemory,
    MemoryRefreshConfig,
    MemoryRefresher,
    MemoryResult,
    Recollection,
    fingerprint,
    memory_lines,
    normalize_memory,
    search_terms,
)
from sessiontree.compaction.prompts import INSTRUCTIONS, chunks
from sessiontree.context import window_of
from sessiontree.errors import (
    EmptySummaryError,
    InvalidInputError,
    StaleLeafError,
    SummaryError,
    ThreadExistsError,
    ThreadNotFoundError,
)
from sessiontree.journal.operations import entries, reads, threads
from sessiontree.journal.operations.requests import Call, Operation, Runtime
from sessiontree.model import Compaction, Entry, Memory, Message, ThreadFields
from sessiontree.model.tokens import estimate_text
from sessiontree.stores.queries import ReadPath

__all__ = ["REFRESHED_WINDOW", "memory_thread_id", "recall", "refresh", "store"]

REFRESHED_WINDOW = "_memory_window"
"""The key in a thread's custom data that names the window whose memories were refreshed last."""

_FEWEST_MESSAGES = 3
_FIRST_WINDOW = "start"
_TAG = "memory"
_MOST_TERMS = 16
_HITS_PER_TERM = 50


def refresh(
    runtime: Runtime,
    thread_id: str,
    refresher: MemoryRefresher,
    extract: Summarizer,
    policy: CompactionPolicy,
    *,
    config: MemoryRefreshConfig | None = None,
) -> Operation[MemoryResult]:
    """Extract the facts of a thread's window and give them to the refresher, once for each window."""
    thread = yield from threads.thread(thread_id)
    path: list[Entry] = yield ReadPath(thread_id=thread_id)
    window_id = _window_id(path)
    if thread.custom.get(REFRESHED_WINDOW) == window_id:
        return MemoryResult(status="already_done")
    messages = [item.message for item in items_of(path)]
    if len(messages) < _FEWEST_MESSAGES:
        return MemoryResult(status="too_short")
    text = yield from _extract(messages, extract, policy, config)
    if text != NO_MEMORY_NEEDED:
        memory = ExtractedMemory(text=text, thread_id=thread_id, window_id=window_id, key=thread.key)
        yield Call(function=refresher.refresh, arguments=(memory,))
    # In the thread's metadata, where every process sees it.
    yield from threads.change_thread(
        runtime, thread_id, lambda thread: ThreadFields(custom={**thread.custom, REFRESHED_WINDOW: window_id})
    )
    return MemoryResult(status="nothing_to_remember" if text == NO_MEMORY_NEEDED else "stored", text=text)


def memory_thread_id(scope: str) -> str:
    """The thread that holds the memories of a scope."""
    if '"' in scope:
        raise InvalidInputError(f"the scope of a memory must not contain a quotation mark: {scope!r}")
    return f"memory:{scope}"


def store(runtime: Runtime, thread_id: str, memory: ExtractedMemory) -> Operation[Entry | None]:
    """Append the facts that are not stored yet; ``None`` if all are."""
    while True:
        leaf = yield from _leaf(thread_id)
        known = {mark for stored in (yield from _memories(thread_id)) for mark in _payload(stored).fingerprints}
        lines = memory_lines(memory.text, known)
        if not lines:
            return None
        try:
            return (yield from entries.append(runtime, thread_id, _payload_of(memory, lines), expect_leaf=leaf))
        except StaleLeafError:
            continue
        except ThreadNotFoundError:
            with suppress(ThreadExistsError):
                yield from threads.create_thread(runtime, thread_id, None, ThreadFields(title="Memories", tags=(_TAG,)))


def recall(runtime: Runtime, thread_id: str, query: str, limit: int) -> Operation[list[Recollection]]:
    """The facts that share most words with the query, best first; for an empty query the newest ones."""
    wanted = search_terms(query)
    found = (yield from _search(runtime, thread_id, wanted)) if wanted else (yield from _memories(thread_id))
    facts: dict[str, Recollection] = {}
    for stored in sorted(found, key=lambda stored: stored.created_ns, reverse=True):
        for line in memory_lines(_payload(stored).text):
            score = len(wanted & search_terms(line)) / len(wanted) if wanted else 1.0
            facts.setdefault(fingerprint(line), Recollection(text=line, entry_id=stored.id, score=score))
    ranked = sorted(facts.values(), key=lambda fact: -fact.score)
    return [fact for fact in ranked if fact.score][:limit]


def _window_id(path: list[Entry]) -> str:
    boundary = window_of(path).boundary
    if boundary is None or not isinstance(boundary.payload, Compaction):
        return _FIRST_WINDOW
    return boundary.payload.window_id or boundary.id


def _extract(
    messages: list[Message], extract: Summarizer, policy: CompactionPolicy, config: MemoryRefreshConfig | None
) -> Operation[str]:
    found: list[str] = []
    asked = "" if config is None or config.system_prompt == INSTRUCTIONS["memory"] else config.system_prompt
    max_tokens = policy.summary_share if config is None else config.max_extract_tokens
    for portion in chunks(messages, policy.chunk_tokens, estimate_text):
        request = SummaryRequest(kind="memory", messages=portion, instructions=asked, max_tokens=max_tokens)
        try:
            answer = yield Call(function=extract, arguments=(request,))
            found.append(summary_of(answer).text)
        except EmptySummaryError:
            continue
        except SummaryError:
            raise
        except Exception as error:
            raise SummaryError(f"the extraction failed with {type(error).__name__}: {error}") from error
    return normalize_memory("\n".join(found)) or NO_MEMORY_NEEDED


def _payload_of(memory: ExtractedMemory, lines: Sequence[str]) -> Memory:
    return Memory(
        text="\n".join(f"- {line}" for line in lines),
        tags=("session-compaction", f"thread:{memory.thread_id}"),
        fingerprints=tuple(map(fingerprint, lines)),
        metadata={"thread_id": memory.thread_id, "window_id": memory.window_id},
    )


def _leaf(thread_id: str) -> Operation[str | None]:
    try:
        thread = yield from threads.thread(thread_id)
    except ThreadNotFoundError:
        return None
    return thread.leaf


def _search(runtime: Runtime, thread_id: str, wanted: set[str]) -> Operation[list[Entry]]:
    """The memories with at least one of the words. One search a word: a search matches all of its words."""
    found: dict[str, Entry] = {}
    for term in sorted(wanted, key=len, reverse=True)[:_MOST_TERMS]:
        text = f'thread:"{thread_id}" "{term}"'
        try:
            page = yield from reads.search(
                runtime, text, order="best", limit=_HITS_PER_TERM, cursor=None, progress=None
            )
        except ThreadNotFoundError:
            return []
        found.update({hit.entry.id: hit.entry for hit in page if isinstance(hit.entry.payload, Memory)})
    return list(found.values())


def _memories(thread_id: str) -> Operation[list[Entry]]:
    try:
        found = yield from entries.entries(thread_id, None, None)
    except ThreadNotFoundError:
        return []
    return [entry for entry in found if isinstance(entry.payload, Memory)]


def _payload(entry: Entry) -> Memory:
    assert isinstance(entry.payload, Memory)
    return entry.payload
