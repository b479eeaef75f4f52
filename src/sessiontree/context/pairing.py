"""Tool pairing: every call is answered once, directly after its batch, and every result answers a call.

Providers reject a conversation where this does not hold, so the view is repaired; the log stays as it is.

- A batch is a run of consecutive assistant messages with calls. Its results follow it in the order of the calls,
  before any other message.
- A result answers the nearest preceding call with its id that is still open; without an id it goes by the name.
- The first result of a call counts, later ones are left out: so what was sent once never changes.
- A result that comes before its call is moved behind it.
- A result without a call is left out. A call without a result gets an error result that says so.

>>> from sessiontree.model.builders import assistant, call, user
>>> asked = assistant(calls=[call("c1", "read")]).message
>>> [item.message.role for item in pair([asked, user("are you there?").message])]
['assistant', 'tool', 'user']
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from sessiontree.model import Message, TextPart, ToolCallPart, ToolResultPart
from sessiontree.model._base import Record

__all__ = [
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


class CallKey(NamedTuple):
    """What a result and its call have in common: the id, or the name where a provider gives no ids."""

    id: str
    name: str


class PairedMessage(Record, frozen=True, kw_only=True):
    """A message of the paired view; ``source`` is the index of the message that it comes from.

    An answer that was made up has the source of its call.
    """

    message: Message
    source: int
    is_made_up: bool = False


def pair(messages: Sequence[Message], earlier_calls: Iterable[CallKey] = ()) -> list[PairedMessage]:
    """The same conversation with calls and results paired.

    ``earlier_calls`` are calls before the first message: a result of one of them is an orphan here, whatever id a
    later call has.
    """
    pairing = _Pairing(earlier_calls)
    for source, message in enumerate(messages):
        pairing.read(source, message)
    return pairing.placed()


def call_keys(messages: Iterable[Message]) -> set[CallKey]:
    return {call_key(call) for message in messages for call in message.tool_calls}


class _Slot:
    """The place where the answer to a call belongs."""

    def __init__(self, call: ToolCallPart, source: int) -> None:
        self.call = call
        self.source = source
        self.answer: PairedMessage | None = None

    def placed(self) -> PairedMessage:
        return self.answer or PairedMessage(message=_missing(self.call), source=self.source, is_made_up=True)


class _Batch:
    """Consecutive messages with calls, and where their answers belong."""

    def __init__(self) -> None:
        self.messages: list[PairedMessage] = []
        self.slots: list[_Slot] = []

    def is_answered(self) -> bool:
        return all(slot.answer for slot in self.slots)

    def placed(self) -> list[PairedMessage]:
        return [*self.messages, *(slot.placed() for slot in self.slots)]


class _Pairing:
    def __init__(self, earlier_calls: Iterable[CallKey]) -> None:
        self._view: list[PairedMessage | _Batch] = []
        self._batch: _Batch | None = None
        self._latest: _Batch | None = None
        self._seen = set(earlier_calls)
        self._slots: dict[CallKey, list[_Slot]] = {}
        self._early: dict[CallKey, PairedMessage] = {}

    def read(self, source: int, message: Message) -> None:
        if not _is_about_tools(message):
            self._add_plain(message, source)
            return
        for result in message.tool_results:
            self._answer(result, _result_message(message, result), source)
        said = _without_results(message)
        if said is None:
            self._batch = None
        elif said.tool_calls:
            self._call(said, source)
        else:
            self._add_plain(said, source)

    def placed(self) -> list[PairedMessage]:
        groups = (item.placed() if isinstance(item, _Batch) else [item] for item in self._view)
        return [item for group in groups for item in group]

    def _add_plain(self, message: Message, source: int) -> None:
        self._batch = None
        self._view.append(PairedMessage(message=message, source=source))

    def _call(self, message: Message, source: int) -> None:
        batch = self._batch
        # A batch whose answers are all there has been sent already: what follows must not change it.
        if batch is None or batch.is_answered():
            batch = self._batch = self._latest = _Batch()
            self._view.append(batch)
        batch.messages.append(PairedMessage(message=message, source=source))
        for call in message.tool_calls:
            self._open_slot(batch, _Slot(call, source))

    def _open_slot(self, batch: _Batch, slot: _Slot) -> None:
        key = call_key(slot.call)
        slot.answer = self._early.pop(key, None)
        same = [other for other in batch.slots if call_key(other.call) == key]
        self._slots[key] = [*same, slot]
        self._seen.add(key)
        batch.slots.append(slot)

    def _answer(self, result: ToolResultPart, message: Message, source: int) -> None:
        key = result_key(result)
        placed = PairedMessage(message=message, source=source)
        slot = self._open_call(key)
        if slot:
            slot.answer = placed
        elif key.id and key not in self._seen:
            self._early.setdefault(key, placed)

    def _open_call(self, key: CallKey) -> _Slot | None:
        candidates = self._slots.get(key, [])
        if not candidates and not key.id and self._latest:
            # Some providers give a call an id and take its result without one.
            candidates = [slot for slot in self._latest.slots if slot.call.name == key.name]
        return next((slot for slot in candidates if not slot.answer), None)


def call_key(call: ToolCallPart) -> CallKey:
    return CallKey(call.id, "" if call.id else call.name)


def result_key(result: ToolResultPart) -> CallKey:
    return CallKey(result.call_id, "" if result.call_id else result.name)


def _result_message(message: Message, result: ToolResultPart) -> Message:
    if message.role == "tool" and message.parts == (result,):
        return message
    return Message(role="tool", parts=(result,), extra=message.extra if message.role == "tool" else {})


def _is_about_tools(message: Message) -> bool:
    return message.role == "tool" or any(isinstance(part, ToolCallPart | ToolResultPart) for part in message.parts)


def _without_results(message: Message) -> Message | None:
    """What is left of a message when its results are taken out; calls belong to assistants only."""
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
