"""Add and read messages, refresh memories and compact when the window fills up."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from msgspec import UNSET
from msgspec.structs import replace

from sessiontree.compaction import CompactionResult, needs_compaction
from sessiontree.compaction.memory import crosses_soft_threshold
from sessiontree.compaction.result import stored_tokens
from sessiontree.context import Context
from sessiontree.errors import (
    EntryNotFoundError,
    StaleLeafError,
    StaleVersionError,
    ThreadArchivedError,
    ThreadNotFoundError,
)
from sessiontree.journal.operations import compaction, entries, memory, reads, threads
from sessiontree.journal.operations.compaction_options import CompactionOptions
from sessiontree.journal.operations.entries import weight_of
from sessiontree.journal.operations.requests import Operation
from sessiontree.model import (
    AssistantMessage,
    Compaction,
    Entry,
    Message,
    Payload,
    SessionKey,
    SystemMessage,
    Thread,
    ThreadFields,
    ToolCallMessage,
    Usage,
    UsageReport,
)
from sessiontree.model._base import Record
from sessiontree.model.builders import payload_of
from sessiontree.model.tokens import estimate_text, estimate_tools
from sessiontree.sessions._history import messages_in_force, truncation
from sessiontree.sessions.config import ManagerConfig, policy_of, report_fault
from sessiontree.sessions.hooks import Fault
from sessiontree.sessions.info import existing, generations, window_state
from sessiontree.sessions.lifecycle import get_or_create
from sessiontree.sessions.states import is_over, keeping_interaction

__all__ = [
    "Added",
    "add_message",
    "compact",
    "compact_if_needed",
    "context",
    "refresh_memory",
    "set_summary",
    "uncompact",
    "window_usage",
]

# A call is repeated soon after it failed: only recent conversations are searched for its message.
_GENERATIONS_SEARCHED = 20
_GENERATIONS_ALWAYS_SEARCHED = 2
_SECONDS_SEARCHED = 24 * 3600.0


class Added(Record, frozen=True, kw_only=True):
    """A stored message, and what should follow."""

    entry: Entry
    thread_id: str
    is_compaction_due: bool = False
    is_memory_due: bool = False


def add_message(config: ManagerConfig, key: SessionKey, content: Payload | Message, id: str | None) -> Operation[Added]:
    """Store a message in the session for a key. It is durable when this returns.

    With an ``id``, a repeated call returns the entry of the first one, even if a new conversation has begun since.
    """
    searched: list[Thread] = []
    if id is not None:
        searched = yield from generations(key, most=_GENERATIONS_SEARCHED)
        repeated = yield from _find_repeated(config, searched, content, id)
        if repeated is not None:
            return repeated
    while True:
        thread = yield from get_or_create(config, key)
        if id is not None and all(thread.id != other.id for other in searched):
            # The thread began after the search, and the same call by another process may have stored the message in
            # the one before it. That one is closed now, so a second search is final.
            searched = yield from generations(key, most=_GENERATIONS_SEARCHED)
            repeated = yield from _find_repeated(config, searched, content, id)
            if repeated is not None:
                return repeated
        # The thread may be archived or deleted by now: then the message belongs to the next one. If only its metadata
        # changed, its state may have.
        with suppress(ThreadArchivedError, ThreadNotFoundError, StaleVersionError):
            return (yield from _add_to_thread(config, thread, content, id))


def context(key: SessionKey) -> Operation[Context]:
    """The context of the session for a key; SessionNotFoundError if there is none."""
    thread = yield from existing(key)
    return (yield from reads.context(thread.id, UNSET, "provider_request", estimate_text))


def window_usage(config: ManagerConfig, key: SessionKey) -> Operation[float]:
    """The share of the window that is in use; 1.0 is full."""
    thread = yield from existing(key)
    return (yield from window_state(config, thread)).tokens / policy_of(config, thread).window_tokens


def compact(config: ManagerConfig, key: SessionKey, *, instructions: str, force: bool) -> Operation[CompactionResult]:
    """Compact the session for a key now."""
    thread = yield from existing(key)
    options = CompactionOptions(
        summarize=config.summarize,
        policy=policy_of(config, thread),
        tools=config.tools,
        instructions=instructions,
        force=force,
    )
    return (yield from _compact(config, thread.id, options))


def compact_if_needed(config: ManagerConfig, thread_id: str) -> Operation[CompactionResult | None]:
    """Compact a session whose window is too full; ``None`` where ``Journal.compact_if_needed`` returns it."""
    try:
        policy = policy_of(config, (yield from threads.thread(thread_id)))
        options = CompactionOptions(
            summarize=config.summarize,
            policy=policy,
            tools=config.tools,
            trigger="post_response",
            reason="threshold",
        )
        attempt = _compact(config, thread_id, options)
        return (yield from compaction.run_if_needed(config.runtime, thread_id, options, attempt))
    except ThreadNotFoundError:
        return None


def uncompact(config: ManagerConfig, key: SessionKey) -> Operation[Entry]:
    """Revert the last compaction."""
    thread = yield from existing(key)
    return (yield from compaction.uncompact(config.runtime, thread.id, None, keeping_interaction))


def refresh_memory(config: ManagerConfig, thread_id: str) -> Operation[None]:
    """Extract facts and give them to the refresher; a failure is reported, and retried only after a pause."""
    runtime = config.runtime
    if (
        not _has_memory(config)
        or config.refresher is None
        or runtime.backoff.is_waiting("memory", thread_id, runtime.clock())
    ):
        return
    try:
        policy = policy_of(config, (yield from threads.thread(thread_id)))
        yield from memory.refresh(
            runtime, thread_id, config.refresher, config.extract, policy, config=config.memory_refresh
        )
        runtime.backoff.note_success("memory", thread_id)
    except Exception as error:  # noqa: BLE001  a model and a refresher can raise anything
        retry_after = getattr(error, "retry_after_seconds", None)
        runtime.backoff.note_failure("memory", thread_id, runtime.clock(), retry_after)
        report_fault(config, Fault(what="a memory refresh", thread_id=thread_id, error=error))


def _has_memory(config: ManagerConfig) -> bool:
    return config.refresher is not None and (config.memory_refresh is None or config.memory_refresh.is_enabled)


def set_summary(config: ManagerConfig, key: SessionKey, summary: str) -> Operation[Entry]:
    """Set the summary; the messages that the model sees stay. It counts as a compaction, and not as an interaction."""
    while True:
        thread = yield from existing(key)
        path = yield from entries.path(thread.id, thread.leaf, None)
        shown = messages_in_force(path)
        payload = replace(
            truncation(path, summary, shown[0].entry_id if shown else ""),
            id=config.runtime.ids.new(),
            strategy="set",
        )
        payload = replace(payload, dropped_tokens=thread.tokens - stored_tokens(path, payload))
        fields = keeping_interaction(thread, payload.id)
        update = threads.update_command(config.runtime, thread.id, thread.version, fields)
        with suppress(StaleLeafError, StaleVersionError, ThreadNotFoundError):
            return (
                yield from entries.append(
                    config.runtime, thread.id, payload, id=payload.id, expect_leaf=thread.leaf, update=update
                )
            )


def _find_repeated(
    config: ManagerConfig, searched: Sequence[Thread], content: Payload | Message, id: str
) -> Operation[Added | None]:
    """The message with this id if one of the threads has it; other content under the id is an error."""
    for number, thread in enumerate(searched):
        if number >= _GENERATIONS_ALWAYS_SEARCHED and thread.is_archived and _is_long_ago(config, thread):
            continue
        try:
            yield from entries.entry(thread.id, id)
        except (EntryNotFoundError, ThreadNotFoundError):
            continue
        entry = yield from entries.append(config.runtime, thread.id, content, id=id)
        return Added(entry=entry, thread_id=thread.id)
    return None


def _is_long_ago(config: ManagerConfig, thread: Thread) -> bool:
    return is_over(thread.archive_changed_ns, config.runtime.clock(), _SECONDS_SEARCHED)


def _add_to_thread(
    config: ManagerConfig, thread: Thread, content: Payload | Message, id: str | None
) -> Operation[Added]:
    window = yield from window_state(config, thread)
    before, policy = window.tokens, policy_of(config, thread)
    # An idle session becomes active in the same commit; so does one that was imported in a state that is not kept.
    fields = ThreadFields() if thread.state in {"active", "suspended"} else ThreadFields(state="active")
    update = threads.update_command(config.runtime, thread.id, thread.version, fields)
    entry = yield from entries.append(config.runtime, thread.id, content, id=id, expect_live=True, update=update)
    now = before
    if entry.parent == thread.leaf:
        counted = _tokens_after(config, thread, before, payload_of(content))
        if counted is not None:
            now = counted
            config.windows.store(thread.id, entry.id, replace(window, tokens=now))
        else:
            # The message is stored, whatever becomes of the thread while it is read again.
            with suppress(ThreadNotFoundError, EntryNotFoundError):
                now = (yield from window_state(config, replace(thread, leaf=entry.id))).tokens
    if thread.state == "suspended":
        return Added(entry=entry, thread_id=thread.id)
    return Added(
        entry=entry,
        thread_id=thread.id,
        is_compaction_due=config.auto_compact != "off" and needs_compaction(now, policy),
        is_memory_due=_has_memory(config) and crosses_soft_threshold(before, now, policy),
    )


def _tokens_after(config: ManagerConfig, thread: Thread, before: int, payload: Payload) -> int | None:
    """The tokens in the window once ``payload`` is in it, as the provider reported them or by estimate.

    ``None`` if only the whole path tells: a prompt or a compaction replaces what is there, and a report that is not
    plausible is replaced by a count of the texts.
    """
    estimate, weight = thread.tokens + estimate_tools(config.tools), weight_of(payload)[1]
    match payload:
        case SystemMessage() | Compaction():
            return None
        case (
            AssistantMessage(usage=Usage(context_tokens=reported))
            | ToolCallMessage(usage=Usage(context_tokens=reported))
            | UsageReport(usage=Usage(context_tokens=reported))
        ) if reported:
            return reported if reported >= (estimate + weight) // 2 else None
        case _:
            return before + weight if before >= estimate // 2 else None


def _compact(config: ManagerConfig, thread_id: str, options: CompactionOptions) -> Operation[CompactionResult]:
    """Refresh the memory of a thread, then compact it. That is not an interaction.

    Started again if the conversation was reset, or its summary set, while the summary was written.
    """
    yield from refresh_memory(config, thread_id)
    options = replace(options, changes=keeping_interaction)
    while True:
        with suppress(StaleLeafError):
            return (yield from compaction.compact(config.runtime, thread_id, options))
