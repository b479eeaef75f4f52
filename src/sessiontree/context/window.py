"""Which part of a path the model sees: everything, or what the last compaction left."""

from __future__ import annotations

from collections.abc import Sequence

from sessiontree.model import (
    AssistantMessage,
    Compaction,
    Entry,
    ToolCallMessage,
    ToolResultMessage,
    UserMessage,
)
from sessiontree.model.record import Record

__all__ = ["Window", "window_of"]


class Window(Record, frozen=True, kw_only=True):
    """A path cut in three; without a compaction everything is in ``after``."""

    head: tuple[Entry, ...] = ()
    tail: tuple[Entry, ...] = ()
    boundary: Entry | None = None
    after: tuple[Entry, ...] = ()


def window_of(path: Sequence[Entry]) -> Window:
    """Cut a path at the last compaction that counts."""
    at = _last_boundary(path)
    if at is None:
        return Window(after=tuple(path))
    first = _first_kept(path, at)
    return Window(head=tuple(path[:first]), tail=tuple(path[first:at]), boundary=path[at], after=tuple(path[at + 1 :]))


def _last_boundary(path: Sequence[Entry]) -> int | None:
    reverted: set[str] = set()
    for index in range(len(path) - 1, -1, -1):
        entry = path[index]
        if not isinstance(entry.payload, Compaction) or reverted & {entry.id, entry.payload.id}:
            continue
        if not entry.payload.reverts:
            return index
        reverted.add(entry.payload.reverts)
    return None


def _first_kept(path: Sequence[Entry], at: int) -> int:
    compaction = path[at].payload
    assert isinstance(compaction, Compaction)
    wanted = compaction.first_kept_entry_id
    for index, entry in enumerate(path[: at + 1]):
        if wanted and entry.id == wanted:
            return index
    for index, entry in enumerate(path[:at]):
        if compaction.tail_after_entry_id and entry.id == compaction.tail_after_entry_id:
            return index + 1
    if compaction.kept_user_entry_ids:
        return at
    return _nearest_turn_start(path, at)


def _nearest_turn_start(path: Sequence[Entry], at: int) -> int:
    """The last message before the compaction; from a tool result back to what asked for it."""
    index = at - 1
    while index >= 0 and not _is_message(path[index]):
        index -= 1
    while index > 0 and isinstance(path[index].payload, ToolResultMessage):
        index -= 1
    return index if index >= 0 else at


def _is_message(entry: Entry) -> bool:
    return isinstance(entry.payload, UserMessage | AssistantMessage | ToolCallMessage | ToolResultMessage)
