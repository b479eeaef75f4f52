"""Tool pairing: every call has exactly one result, directly after its batch, and every result has a call.

Providers reject conversations where this does not hold, so the view is repaired; the journal is not changed.

- A batch is an assistant message with calls, or several in a row if a result of an earlier one follows a later one.
  Its results follow it in the order of the calls, before any other message.
- A result belongs to the nearest preceding open call with its id, or with its name if it has no id.
- The first result of a call is used and later ones are dropped, so that a request that was sent stays a prefix.
- A result that precedes its call is moved behind it.
- A result without a call is dropped. A call without a result gets an error result that says so.
- When the model goes on, the error result was sent, so it stays. A result that arrives later is a user message where it
  arrives.

>>> from sessiontree.model.builders import assistant, call, user
>>> calling = assistant(calls=[call("c1", "read")]).message
>>> [item.message.role for item in pair([calling, user("are you there?").message])]
['assistant', 'tool', 'user']
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from sessiontree.model import Message, TextPart, ToolCallPart, ToolResultPart
from sessiontree.model._base import Record

__all__ = [
    "LATE_RESULT",
    "LATE_RESULT_KIND",
    "MISSING_RESULT",
    "MISSING_RESULT_KIND",
    "CallKey",
    "PairedMessage",
    "call_key",
    "call_keys",
    "pair",
    "result_key",
]


MISSING_RESULT = "No result was recorded for this tool call: it was interrupted or its result was lost."
MISSING_RESULT_KIND = "missing_result"
LATE_RESULT = "The result of the tool call {} arrived late:"
LATE_RESULT_KIND = "late_result"


class CallKey(NamedTuple):
    """What a result and its call have in common: the id, or the name if the provider gives no ids."""

    id: str
    name: str


class PairedMessage(Record, frozen=True, kw_only=True):
    """A message of the paired view; ``source`` is the index of the message that it comes from.

    A synthetic result, for a call without one, has the source of its call.
    """

    message: Message
    source: int
    is_synthetic: bool = False


def pair(messages: Sequence[Message], earlier_calls: Iterable[CallKey] = ()) -> list[PairedMessage]:
    """Return the messages with calls and results paired.

    ``earlier_calls`` were made before the first message: a result of one of them is dropped, even if a later call has
    the same id.
    """
    pairing = _Pairing(earlier_calls)
    for source, message in enumerate(messages):
        pairing.read(source, message)
    return pairing.paired()


def call_keys(messages: Iterable[Message]) -> set[CallKey]:
    """Return the keys of all calls in the messages."""
    return {call_key(call) for message in messages for call in message.tool_calls}


class _Slot:
    """The position of the result of a call."""

    def __init__(self, call: ToolCallPart, source: int, batch: _Batch) -> None:
        self.call = call
        self.source = source
        self.batch = batch
        self.result: PairedMessage | None = None
        self.is_late = False

    def paired(self) -> PairedMessage:
        return self.result or PairedMessage(message=_missing(self.call), source=self.source, is_synthetic=True)


class _Batch:
    """Messages with calls, and the slots of their results."""

    def __init__(self) -> None:
        self.messages: list[PairedMessage] = []
        self.slots: list[_Slot] = []
        self.is_sent = False

    def is_complete(self) -> bool:
        return all(slot.result for slot in self.slots)

    def join(self, later: _Batch) -> None:
        """Take over the messages and slots of a later batch."""
        self.messages += later.messages
        self.slots += later.slots
        for slot in later.slots:
            slot.batch = self
        later.messages, later.slots = [], []

    def paired(self) -> list[PairedMessage]:
        return [*self.messages, *(slot.paired() for slot in self.slots)]


class _Pairing:
    def __init__(self, earlier_calls: Iterable[CallKey]) -> None:
        self._view: list[PairedMessage | _Batch] = []
        self._run: list[_Batch] = []
        self._is_run_open = False
        self._seen = set(earlier_calls)
        self._slots: dict[CallKey, list[_Slot]] = {}
        self._early: dict[CallKey, PairedMessage] = {}

    def read(self, source: int, message: Message) -> None:
        if not _has_tool_parts(message):
            self._add_plain(message, source)
            return
        for result in message.tool_results:
            self._add_result(result, message, source)
        rest = _without_results(message)
        if rest is None:
            self._is_run_open = False
        elif rest.tool_calls:
            self._add_calls(rest, source)
        else:
            self._add_plain(rest, source)

    def paired(self) -> list[PairedMessage]:
        groups = (item.paired() if isinstance(item, _Batch) else [item] for item in self._view)
        return [item for group in groups for item in group]

    def _add_plain(self, message: Message, source: int) -> None:
        self._is_run_open = False
        if message.role == "assistant":
            self._close_run()
        self._view.append(PairedMessage(message=message, source=source))

    def _close_run(self) -> None:
        """The model goes on, so the results of the run were sent, the missing ones as missing."""
        for batch in self._run:
            batch.is_sent = True

    def _add_calls(self, message: Message, source: int) -> None:
        # A complete batch may have been sent already, so later calls must not change it.
        if not self._is_run_open or self._run[-1].is_complete():
            self._close_run()
            self._run = []
        batch = _Batch()
        self._run.append(batch)
        self._is_run_open = True
        self._view.append(batch)
        batch.messages.append(PairedMessage(message=message, source=source))
        for call in message.tool_calls:
            self._open_slot(batch, _Slot(call, source, batch))

    def _open_slot(self, batch: _Batch, slot: _Slot) -> None:
        key = call_key(slot.call)
        slot.result = self._early.pop(key, None)
        self._slots[key] = [*self._slots_of_run(key), slot]
        self._seen.add(key)
        batch.slots.append(slot)

    def _slots_of_run(self, key: CallKey) -> list[_Slot]:
        return [slot for batch in self._run for slot in batch.slots if call_key(slot.call) == key]

    def _add_result(self, result: ToolResultPart, message: Message, source: int) -> None:
        key = result_key(result)
        slot = self._waiting_slot(key)
        if slot is None:
            if key.id and key not in self._seen:
                self._early.setdefault(key, PairedMessage(message=_result_message(message, result), source=source))
        elif slot.batch.is_sent:
            slot.is_late = True
            self._view.append(PairedMessage(message=_late(slot.call, result), source=source))
        else:
            slot.result = PairedMessage(message=_result_message(message, result), source=source)
            self._join_run(slot.batch)

    def _join_run(self, first: _Batch) -> None:
        """A result that comes after a later call of its run shows that the calls of the run were made together."""
        at = self._run.index(first)
        for later in self._run[at + 1 :]:
            first.join(later)
        del self._run[at + 1 :]

    def _waiting_slot(self, key: CallKey) -> _Slot | None:
        candidates = self._slots.get(key, [])
        if not candidates and not key.id:
            # Some providers give a call an id and accept its result without one.
            candidates = [slot for batch in self._run for slot in batch.slots if slot.call.name == key.name]
        waiting = [slot for slot in candidates if not (slot.result or slot.is_late)]
        # The first one of the last batch: an earlier batch was probably interrupted.
        return next((slot for slot in waiting if slot.batch is waiting[-1].batch), None)


def call_key(call: ToolCallPart) -> CallKey:
    """Return the key of a call."""
    return CallKey(call.id, "" if call.id else call.name)


def result_key(result: ToolResultPart) -> CallKey:
    """Return the key of the call that a result belongs to."""
    return CallKey(result.call_id, "" if result.call_id else result.name)


def _result_message(message: Message, result: ToolResultPart) -> Message:
    if message.role == "tool" and message.parts == (result,):
        return message
    return Message(role="tool", parts=(result,), extra=message.extra if message.role == "tool" else {})


def _has_tool_parts(message: Message) -> bool:
    return message.role == "tool" or any(isinstance(part, ToolCallPart | ToolResultPart) for part in message.parts)


def _without_results(message: Message) -> Message | None:
    """Return a message without its results, and without calls if it is not the assistant's; None if nothing is left."""
    if message.role == "tool":
        return None
    strays = (ToolResultPart,) if message.role == "assistant" else (ToolResultPart, ToolCallPart)
    if not any(isinstance(part, strays) for part in message.parts):
        return message
    rest = tuple(part for part in message.parts if not isinstance(part, strays))
    return msgspec.structs.replace(message, parts=rest) if rest else None


def _missing(call: ToolCallPart) -> Message:
    text = TextPart(text=MISSING_RESULT)
    result = ToolResultPart(call_id=call.id, name=call.name, parts=(text,), is_error=True)
    return Message(role="tool", kind=MISSING_RESULT_KIND, parts=(result,))


def _late(call: ToolCallPart, result: ToolResultPart) -> Message:
    text = TextPart(text=LATE_RESULT.format(" ".join(word for word in (call.name, call.id) if word)) + "\n")
    return Message(role="user", kind=LATE_RESULT_KIND, parts=(text, *result.parts))
