"""Control signals: calls of ``ask_user`` and ``task_complete``, which address the host and not a tool.

They end a turn and never get a tool result, so a provider would reject them. The model sees a sentence instead:

>>> signal_text(ToolCallPart(id="c1", name="ask_user", arguments='{"question": "Which file?"}'))
'Agent requested user input: Which file?'
>>> signal_text(ToolCallPart(id="c2", name="read")) is None
True
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from sessiontree.context.pairing import CallKey, call_key, result_key
from sessiontree.context.records import Projected, joined_text
from sessiontree.model import Entry, Message, Part, TextPart, ToolCallMessage, ToolCallPart
from sessiontree.model.tokens import BLANKS

__all__ = ["CONTROL_KIND", "answer_signals", "replace_signals", "signal_text"]


CONTROL_KIND = "control_signal"

_ASK = "ask_user"
_DONE = "task_complete"
_PREFIXES = {_ASK: "Agent requested user input: ", _DONE: "Agent completed the task: "}
_TEXTS = {_ASK: ("question", "reason_code"), _DONE: ("output", "result")}
_LISTS = {_ASK: ("required_from_user", "evidence_refs"), _DONE: ("remaining_risks", "next_actions", "evidence_refs")}


def signal_text(call: ToolCallPart) -> str | None:
    """Return the sentence that replaces a control signal; ``None`` for any other call."""
    if call.name not in _PREFIXES:
        return None
    return _PREFIXES[call.name] + (_content(call.name, call.arguments) or call.arguments)


def replace_signals(message: Message) -> Message:
    """Return the message with its control signals replaced by text.

    A message that has only signals becomes that text; beside other calls each signal is replaced where it stands.
    """
    texts = [signal_text(call) for call in message.tool_calls]
    if not any(text is not None for text in texts):
        return message
    if all(text is not None for text in texts):
        joined = "\n".join(text or "" for text in texts)
        return Message(role="assistant", kind=CONTROL_KIND, parts=(TextPart(text=joined),))
    return msgspec.structs.replace(message, parts=tuple(map(_replaced_part, message.parts)))


def answer_signals(view: Sequence[Projected]) -> list[Projected]:
    """Return the view with results of control signals as user messages, or without them if they say nothing.

    The call is not in the view, so the result would be dropped as an orphan and the user's answer lost.
    """
    signals: dict[CallKey, str] = {}
    answered: list[Projected] = []
    for item in view:
        _note_signals(item.entry, signals)
        answered.extend(_answered(item, signals) if signals else [item])
    return answered


def _note_signals(entry: Entry, signals: dict[CallKey, str]) -> None:
    """Record the signals without a result; another call with the same id replaces them."""
    if not isinstance(entry.payload, ToolCallMessage):
        return
    for call in entry.payload.message.tool_calls:
        signals.pop(call_key(call), None)
        if call.name in _PREFIXES:
            signals[call_key(call)] = call.name


def _answered(item: Projected, signals: Mapping[CallKey, str]) -> list[Projected]:
    results = [result for result in item.message.tool_results if result_key(result) in signals]
    if not results:
        return [item]
    rest = tuple(part for part in item.message.parts if part not in results)
    answer = "".join(joined_text(result.parts) for result in results if signals[result_key(result)] == _ASK)
    messages = [msgspec.structs.replace(item.message, parts=rest)] if rest else []
    if answer.strip(BLANKS):
        messages.append(Message(role="user", kind=CONTROL_KIND, parts=(TextPart(text=answer),)))
    return [Projected(entry=item.entry, message=message) for message in messages]


def _replaced_part(part: Part) -> Part:
    text = signal_text(part) if isinstance(part, ToolCallPart) else None
    return part if text is None else TextPart(text=text)


def _content(name: str, arguments: str) -> str:
    """Return the stripped question or outcome; empty if the arguments do not fit the tool's schema."""
    fields = _object(arguments)
    if fields is None or not _fits(name, fields):
        return ""
    if name == _ASK:
        candidates = [fields.get("question"), *(item.get("question") for item in fields.get("questions") or ())]
    else:
        candidates = [fields.get("output"), fields.get("result")]
    return next((text.strip(BLANKS) for text in candidates if isinstance(text, str) and text.strip(BLANKS)), "")


def _object(arguments: str) -> Mapping[str, Any] | None:
    import json  # noqa: PLC0415  slow to import, and rarely needed

    try:
        value = json.loads(arguments)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _fits(name: str, fields: Mapping[str, Any]) -> bool:
    return all(_field_fits(name, key, value) for key, value in fields.items())


def _field_fits(name: str, key: str, value: Any) -> bool:
    if value is None:
        return True
    if key in _TEXTS[name]:
        return isinstance(value, str)
    if key in _LISTS[name]:
        return isinstance(value, list) and all(isinstance(item, str) for item in value)
    if name == _ASK and key == "questions":
        return isinstance(value, list) and all(isinstance(item, dict) for item in value)
    return False
