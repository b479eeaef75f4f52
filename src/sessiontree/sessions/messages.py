"""Messages in and out of sessions, and the compaction that follows from them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from sessiontree.compaction import CompactionResult, Trigger, needs_compaction, occupied_tokens
from sessiontree.compaction.memory import crosses_soft_threshold
from sessiontree.errors import (
    CompactionClaimedError,
    EntryNotFoundError,
    SummaryError,
    ThreadArchivedError,
    ThreadNotFoundError,
)
from sessiontree.journal.flows import Flow
from sessiontree.journal.memory import refresh_flow
from sessiontree.model import AssistantMessage, Entry, Message, Payload, SessionKey, Thread, ToolCallMessage
from sessiontree.model._base import Record
from sessiontree.model.builders import payload_of
from sessiontree.model.tokens import estimate_message
from sessiontree.sessions.config import ManagerConfig, report_fault
from sessiontree.sessions.hooks import Fault
from sessiontree.sessions.info import existing, generations, move_state, update
from sessiontree.sessions.lifecycle import get_or_create
from sessiontree.sessions.states import is_over, last_interaction_ns, with_note, written_state

__all__ = ["Added", "add_message", "compact", "get_messages", "uncompact"]


# Whoever repeats a call does so soon: older conversations are not searched for its message.
_GENERATIONS_OF_A_RETRY = 20
_ALWAYS_LOOKED_AT = 2
_SECONDS_OF_A_RETRY = 24 * 3600.0


class Added(Record, frozen=True, kw_only=True):
    """A stored message, and whether the session should be compacted now."""

    entry: Entry
    thread_id: str
    tokens: int = 0
    is_compaction_due: bool = False
    is_memory_due: bool = False


def add_message(desk: ManagerConfig, key: SessionKey, content: Payload | Message, id: str | None) -> Flow[Added]:
    """Store a message. It is durable when this returns; whatever follows from it comes later."""
    looked_at: list[Thread] = []
    if id is not None:
        looked_at = yield from generations(key, most=_GENERATIONS_OF_A_RETRY)
        repeated = yield from _stored(desk, looked_at, content, id)
        if repeated is not None:
            return repeated
    while True:
        thread = yield from get_or_create(desk, key)
        if id is not None and all(thread.id != other.id for other in looked_at):
            # It began after the look, and the same call by somebody else may have reached the one before it, which is
            # closed now: what is not there at a second look will never be.
            looked_at = yield from generations(key, most=_GENERATIONS_OF_A_RETRY)
            repeated = yield from _stored(desk, looked_at, content, id)
            if repeated is not None:
                return repeated
        # The conversation may be put away between these two: then the message belongs to the next one.
        with suppress(ThreadArchivedError, ThreadNotFoundError):
            return (yield from _added(desk, thread, content, id))


def get_messages(key: SessionKey) -> Flow[tuple[str, tuple[Message, ...]]]:
    """The system prompt and what the model sees; reading creates nothing."""
    thread = yield from existing(key)
    context = yield lambda journal: journal.context(thread.id)
    return context.system, context.messages


def fullness(desk: ManagerConfig, thread: Thread) -> Flow[int]:
    """How many tokens the window holds: remembered, or counted anew if the conversation went on elsewhere."""
    if thread.leaf is None:
        return 0
    known = desk.gauge.tokens(thread.id, thread.leaf)
    if known is not None:
        return known
    path: list[Entry] = yield lambda journal: journal.path(thread.id)
    tokens = occupied_tokens(path)
    desk.gauge.note(thread.id, thread.leaf, tokens)
    return tokens


def remember(desk: ManagerConfig, thread_id: str) -> Flow[None]:
    """Draw memories out; a failure is reported, keeps nobody from compacting, and is not repeated at once."""
    if desk.refresher is None or desk.memory_setbacks.is_resting(thread_id, desk.clock()):
        return
    try:
        yield from refresh_flow(thread_id, desk.refresher, desk.extract, desk.policy)
        desk.memory_setbacks.forget(thread_id)
    except Exception as error:  # noqa: BLE001  a model's and a refresher's fault alike
        desk.memory_setbacks.note(thread_id, desk.clock(), getattr(error, "retry_after_seconds", None))
        report_fault(desk, Fault(what="a memory refresh", thread_id=thread_id, error=error))


def compact(
    desk: ManagerConfig, thread_id: str, *, trigger: Trigger = "manual", instructions: str = "", force: bool = False
) -> Flow[CompactionResult]:
    """Memories first, then the compaction, which counts as no interaction."""
    yield from remember(desk, thread_id)
    before: Thread = yield lambda journal: journal.thread(thread_id)
    result: CompactionResult = yield lambda journal: journal.compact(
        thread_id,
        desk.summarize,
        policy=desk.policy,
        instructions=instructions,
        force=force,
        trigger=trigger,
        reason="manual" if trigger == "manual" else "threshold",
    )
    if result.entry is not None:
        desk.gauge.note(thread_id, result.entry.id, result.tokens_after)
        with suppress(ThreadNotFoundError):
            yield from _note_interaction(before, result.entry)
    return result


def compact_if_due(desk: ManagerConfig, thread_id: str) -> Flow[CompactionResult | None]:
    """The automatic one: ``None`` if the session is fine, gone, being compacted by somebody else, or failed lately."""
    if desk.setbacks.is_resting(thread_id, desk.clock()):
        return None
    try:
        path: list[Entry] = yield lambda journal: journal.path(thread_id)
        if not needs_compaction(occupied_tokens(path), desk.policy):
            return None
        result = yield from compact(desk, thread_id, trigger="post_response")
    except (CompactionClaimedError, ThreadNotFoundError):
        return None
    except SummaryError as error:
        desk.setbacks.note(thread_id, desk.clock(), error.retry_after_seconds)
        raise
    if result.is_setback:
        desk.setbacks.note(thread_id, desk.clock())
    elif result.is_installed:
        desk.setbacks.forget(thread_id)
    return result


def uncompact(key: SessionKey) -> Flow[Entry]:
    thread = yield from existing(key)
    entry: Entry = yield lambda journal: journal.uncompact(thread.id)
    return entry


def _stored(desk: ManagerConfig, threads: Sequence[Thread], content: Payload | Message, id: str) -> Flow[Added | None]:
    """The message of this id if it is there: a repeated call must not begin a day, nor be stored in the next one."""
    for number, thread in enumerate(threads):
        if number >= _ALWAYS_LOOKED_AT and thread.is_archived and _is_long_ago(desk, thread):
            continue
        try:
            yield lambda journal: journal.entry(thread.id, id)
        except (EntryNotFoundError, ThreadNotFoundError):
            continue
        entry: Entry = yield lambda journal: journal.append(thread.id, content, id=id)
        return Added(entry=entry, thread_id=thread.id)
    return None


def _is_long_ago(desk: ManagerConfig, thread: Thread) -> bool:
    return is_over(thread.archive_changed_ns, desk.clock(), _SECONDS_OF_A_RETRY)


def _added(desk: ManagerConfig, thread: Thread, content: Payload | Message, id: str | None) -> Flow[Added]:
    before = yield from fullness(desk, thread)
    entry: Entry = yield lambda journal: journal.append(thread.id, content, id=id, expect_live=True)
    if entry.parent == thread.leaf:
        now = _grown(before, payload_of(content))
        desk.gauge.note(thread.id, entry.id, now)
    else:
        now = before
    if written_state(thread) == "idle":
        yield from move_state(desk, thread.id, "active", only_from="idle")
    is_awake = written_state(thread) != "suspended"
    is_remembering = is_awake and desk.refresher is not None
    return Added(
        entry=entry,
        thread_id=thread.id,
        tokens=now,
        is_compaction_due=is_awake and needs_compaction(now, desk.policy),
        is_memory_due=is_remembering and crosses_soft_threshold(before, now, desk.policy),
    )


def _grown(before: int, payload: Payload) -> int:
    """What the provider reported counts; without a report the message is added by estimate."""
    if isinstance(payload, AssistantMessage | ToolCallMessage) and payload.usage and payload.usage.context_tokens:
        return max(payload.usage.context_tokens, before // 2)
    message = getattr(payload, "message", None)
    return before + (estimate_message(message) if isinstance(message, Message) else 0)


def _note_interaction(before: Thread, compaction: Entry) -> Flow[Thread]:
    """Keep in mind when somebody last said something before the compaction that is now the leaf."""
    tail: list[Entry] = yield lambda journal: journal.path(before.id, compaction.id, limit=2)
    is_undisturbed = compaction.parent == before.leaf
    spoken = last_interaction_ns(before) if is_undisturbed else tail[0].created_ns

    def changes(thread: Thread) -> dict[str, Any] | None:
        if thread.leaf != compaction.id:
            return None
        return {"custom": with_note(thread.custom, leaf=compaction.id, interaction_ns=spoken)}

    return (yield from update(before.id, changes))
