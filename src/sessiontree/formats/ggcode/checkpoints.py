"""Checkpoints by reference.

ggcode writes the whole new history into a checkpoint record. Most of it is what was said just before: that part is kept
as a reference to the first entry of it, and only what is new (as a rule one summary) is kept with the checkpoint.
"""

from __future__ import annotations

from collections import deque

import msgspec

from sessiontree.formats import gojson
from sessiontree.formats.ggcode import wire
from sessiontree.formats.ggcode.messages import message_of, wire_message
from sessiontree.model import Compaction, Message
from sessiontree.typed import convert

__all__ = ["Recent", "head_of"]

_MOST = 512


class Recent:
    """The latest messages: what a checkpoint can refer to."""

    def __init__(self) -> None:
        self._messages: deque[tuple[str, wire.Message]] = deque(maxlen=_MOST)

    def add(self, entry_id: str, message: wire.Message) -> None:
        self._messages.append((entry_id, message))

    def checkpoint(self, entry_id: str, record: wire.Record) -> Compaction:
        """The checkpoint as a compaction: a summary of what is new, and a reference to what was kept."""
        messages = record.checkpoint_messages
        kept = self._kept(messages)
        head = messages[: len(messages) - kept]
        ours = [message_of(message) for message in head]
        first = self._messages[-kept][0] if kept else entry_id
        for _ in range(len(self._messages) - kept):
            self._messages.popleft()
        return Compaction(
            id=entry_id,
            summary="\n\n".join(filter(None, (message.text for message in ours))),
            first_kept_entry_id=first,
            tokens_after=record.checkpoint_tokens,
            strategy="summarize",
            origin={"head": msgspec.to_builtins(ours)},
        )

    def _kept(self, messages: list[wire.Message]) -> int:
        """How many messages at the end of a checkpoint are the latest ones."""
        count = 0
        for message, (_, recent) in zip(reversed(messages), reversed(self._messages), strict=False):
            if gojson.encode_plain(message) != gojson.encode_plain(recent):
                break
            count += 1
        return count


def head_of(compaction: Compaction) -> list[wire.Message]:
    """The messages of a checkpoint that are not references."""
    if "head" in compaction.origin:
        return [wire_message(convert(message, Message)) for message in compaction.origin["head"]]
    if not compaction.summary:
        return []
    return [wire.Message(role="system", content=[wire.Block(type="text", text=compaction.summary)])]


def is_said_by_user(message: Message | None) -> bool:
    """Whether a person wrote something in it."""
    return message is not None and message.role == "user" and bool(message.text.strip())
