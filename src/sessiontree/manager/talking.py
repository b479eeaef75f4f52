"""Messages in and out of sessions, and the compaction that follows from them."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from sessiontree.compaction import CompactionResult, Trigger, needs_compaction, occupied_tokens
from sessiontree.errors import CompactionClaimedError, ThreadNotFoundError
from sessiontree.flows import Flow
from sessiontree.manager.desk import Desk, existing, move_state, update
from sessiontree.manager.hooks import Fault
from sessiontree.manager.lifecycle import get_or_create
from sessiontree.manager.lifetimes import last_interaction_ns, note_of, with_note
from sessiontree.manager.states import state_of
from sessiontree.memory import crosses_soft_threshold
from sessiontree.memory.refresh import refresh_flow
from sessiontree.messages import payload_of
from sessiontree.model import AssistantMessage, Entry, Message, Payload, SessionKey, Thread, ToolCallMessage
from sessiontree.model.record import Record
from sessiontree.tokens import estimate_message

__all__ = ["Added", "add_message", "compact", "get_messages", "uncompact"]


class Added(Record, frozen=True, kw_only=True):
    """A stored message, and whether the session should be compacted now."""

    entry: Entry
    thread_id: str
    tokens: int
    is_compaction_due: bool = False
    is_memory_due: bool = False


def add_message(desk: Desk, key: SessionKey, content: Payload | Message, id: str | None) -> Flow[Added]:
    """Store a message. It is durable when this returns; whatever follows from it comes later."""
    thread = yield from get_or_create(desk, key)
    before = yield from fullness(desk, thread)
    entry: Entry = yield lambda journal: journal.append(thread.id, content, id=id)
    if entry.parent == thread.leaf:
        now = _grown(before, payload_of(content))
        desk.gauge.note(thread.id, entry.id, now)
    else:
        now = before
    if state_of(thread) == "idle":
        yield from move_state(thread.id, "active", only_from="idle")
    is_awake = state_of(thread) in {"active", "idle"}
    return Added(
        entry=entry,
        thread_id=thread.id,
        tokens=now,
        is_compaction_due=is_awake and needs_compaction(now, desk.policy),
        is_memory_due=desk.refresher is not None and crosses_soft_threshold(before, now, desk.policy),
    )


def get_messages(key: SessionKey) -> Flow[tuple[str, tuple[Message, ...]]]:
    """The system prompt and what the model sees; reading creates nothing."""
    thread = yield from existing(key)
    context = yield lambda journal: journal.context(thread.id)
    return context.system, context.messages


def fullness(desk: Desk, thread: Thread) -> Flow[int]:
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


def remember(desk: Desk, thread_id: str) -> Flow[None]:
    """Draw memories out; a failure is reported and keeps nobody from compacting."""
    if desk.refresher is None:
        return
    try:
        yield from refresh_flow(thread_id, desk.refresher, desk.extract, desk.policy)
    except Exception as error:  # noqa: BLE001  a model's and a refresher's fault alike
        desk.report(Fault(what="a memory refresh", thread_id=thread_id, error=error))


def compact(
    desk: Desk, thread_id: str, *, trigger: Trigger = "manual", instructions: str = "", force: bool = False
) -> Flow[CompactionResult]:
    """Memories first, then the compaction; meanwhile the session is compacting, afterwards what it was before."""
    yield from remember(desk, thread_id)
    before: Thread = yield lambda journal: journal.thread(thread_id)
    is_mine = state_of(before) in {"active", "idle"}
    if is_mine:
        before = yield from _begin_compacting(thread_id)
    try:
        result: CompactionResult = yield lambda journal: journal.compact(
            thread_id,
            desk.summarize,
            policy=desk.policy,
            instructions=instructions,
            force=force,
            trigger=trigger,
            reason="manual" if trigger == "manual" else "threshold",
        )
    finally:
        if is_mine:
            with suppress(ThreadNotFoundError):
                yield from _end_compacting(thread_id)
    if result.entry is not None:
        desk.gauge.note(thread_id, result.entry.id, result.tokens_after)
    return result


def compact_if_due(desk: Desk, thread_id: str) -> Flow[CompactionResult | None]:
    """The automatic one: ``None`` if the session is fine, gone, or being compacted by somebody else."""
    try:
        path: list[Entry] = yield lambda journal: journal.path(thread_id)
        if not needs_compaction(occupied_tokens(path), desk.policy):
            return None
        return (yield from compact(desk, thread_id, trigger="post_response"))
    except (CompactionClaimedError, ThreadNotFoundError):
        return None


def uncompact(key: SessionKey) -> Flow[Entry]:
    thread = yield from existing(key)
    entry: Entry = yield lambda journal: journal.uncompact(thread.id)
    return entry


def _grown(before: int, payload: Payload) -> int:
    """What the provider reported counts; without a report the message is added by estimate."""
    if isinstance(payload, AssistantMessage | ToolCallMessage) and payload.usage and payload.usage.context_tokens:
        return max(payload.usage.context_tokens, before // 2)
    message = getattr(payload, "message", None)
    return before + (estimate_message(message) if isinstance(message, Message) else 0)


def _begin_compacting(thread_id: str) -> Flow[Thread]:
    def changes(thread: Thread) -> dict[str, Any] | None:
        if state_of(thread) not in {"active", "idle"}:
            return None
        custom = with_note(
            thread.custom, state=state_of(thread), interaction_ns=last_interaction_ns(thread), leaf=thread.leaf
        )
        return {"state": "compacting", "custom": custom}

    return (yield from update(thread_id, changes))


def _end_compacting(thread_id: str) -> Flow[Thread]:
    """Back to what it was. Archived or suspended meanwhile it stays, and the compaction counts as no interaction."""
    tail: list[Entry] = yield lambda journal: journal.path(thread_id, limit=2)

    def changes(thread: Thread) -> dict[str, Any] | None:
        if thread.state != "compacting":
            return None
        custom = with_note(thread.custom, **_interaction(thread, tail))
        return {"state": note_of(thread).get("state", "active"), "custom": custom}

    return (yield from update(thread_id, changes))


def _interaction(thread: Thread, tail: list[Entry]) -> dict[str, Any]:
    """When somebody last said something before the compaction that is now the leaf."""
    if not tail or tail[-1].type != "compaction" or tail[-1].id != thread.leaf:
        return {}
    note = note_of(thread)
    is_undisturbed = tail[-1].parent == note.get("leaf")
    spoken = note["interaction_ns"] if is_undisturbed else tail[0].created_ns
    return {"leaf": thread.leaf, "interaction_ns": spoken}
