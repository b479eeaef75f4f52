"""Conversations as rows for training: OpenAI's chat, ShareGPT, and preference pairs from branches (DPO).

>>> import sessiontree as st
>>> with st.open("memory:") as journal:
...     thread = journal.create_thread("t")
...     asked = journal.append("t", st.user("a joke?"))
...     _ = journal.append("t", st.assistant("knock knock"))
...     _ = journal.append("t", st.assistant("a horse walks in"), parent=asked.id)
...     [row["chosen"][0]["content"] for row in rows(journal, "t", "dpo")]
['a horse walks in']
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

import msgspec

from sessiontree.context.dialects import DIALECTS
from sessiontree.journal import Journal
from sessiontree.model import (
    AssistantMessage,
    Entry,
    Message,
    TextPart,
    ToolCallMessage,
    ToolResultMessage,
    UserMessage,
)
from sessiontree.transfer.native.conversation import arguments_of

__all__ = ["SHAPES", "Shape", "rows"]


Shape = Literal["openai-jsonl", "sharegpt", "dpo"]

SHAPES: tuple[Shape, ...] = ("openai-jsonl", "sharegpt", "dpo")
"""The shapes of rows."""

Row = dict[str, Any]
_SPEAKERS = {"user": "human", "assistant": "gpt", "system": "system", "tool": "tool"}


def rows(journal: Journal, thread_id: str, shape: Shape, *, leaf: str | None = None) -> Iterator[Row]:
    """The rows of a thread: one for each branch, or one for each pair of answers to the same question.

    With ``leaf`` there is one row, for the branch that ends there; preference pairs need all branches.
    """
    ends = [leaf] if leaf is not None else _leaves(journal, thread_id)
    match shape:
        case "openai-jsonl":
            yield from ({"messages": _chat(journal, thread_id, end)} for end in ends)
        case "sharegpt":
            for end in ends:
                yield {"id": f"{thread_id}:{end}", "conversations": _sharegpt(journal, thread_id, end)}
        case "dpo":
            yield from _pairs(journal, thread_id)


def _leaves(journal: Journal, thread_id: str) -> list[str]:
    """The last message of every branch, that of the active path first."""
    entries = journal.entries(thread_id)
    above = {entry.id: entry.parent for entry in entries}
    ends = {entry.parent for entry in entries}
    found: dict[str, None] = {}
    active = journal.thread(thread_id).leaf
    tips = [entry.id for entry in entries if entry.id not in ends]
    said = {entry.id for entry in entries if _is_said(entry)}
    covered: set[str | None] = set()
    for tip in sorted(tips, key=lambda name: name != active):
        at: str | None = tip
        while at is not None and at not in said:
            at = above.get(at)
        if at is not None and at not in covered:
            found[at] = None
        while at is not None and at not in covered:
            covered.add(at)
            at = above.get(at)
    return list(found)


def _is_said(entry: Entry) -> bool:
    return isinstance(entry.payload, UserMessage | AssistantMessage | ToolCallMessage | ToolResultMessage)


def _chat(journal: Journal, thread_id: str, leaf: str | None) -> list[Row]:
    messages: list[Row] = DIALECTS["openai-chat"].to_request(journal.context(thread_id, leaf=leaf))["messages"]
    return messages


def _sharegpt(journal: Journal, thread_id: str, leaf: str) -> list[Row]:
    context = journal.context(thread_id, leaf=leaf)
    found = [{"from": "system", "value": context.system}] if context.system else []
    for message in context.messages:
        found += _turns(message)
    return found


def _turns(message: Message) -> Iterator[Row]:
    words = "\n".join(part.text for part in message.parts if isinstance(part, TextPart) and part.text)
    if words and not message.tool_results:
        yield {"from": _SPEAKERS[message.role], "value": words}
    for call in message.tool_calls:
        value = {"name": call.name, "arguments": arguments_of(call.arguments)}
        yield {"from": "function_call", "value": msgspec.json.encode(value).decode()}
    for result in message.tool_results:
        yield {
            "from": "observation",
            "value": "\n".join(part.text for part in result.parts if isinstance(part, TextPart)),
        }


def _pairs(journal: Journal, thread_id: str) -> Iterator[Row]:
    """Two answers to the same question: that of the active path, or of the last branch, is the chosen one."""
    entries = journal.entries(thread_id)
    children: dict[str | None, list[Entry]] = {}
    for entry in entries:
        children.setdefault(entry.parent, []).append(entry)
    active = {entry.id for entry in journal.path(thread_id)}
    for parent, branches in children.items():
        answers = [answer for answer in (_answer(branch, children, active) for branch in branches) if answer]
        if parent is None or len(answers) < 2:
            continue
        chosen = next((answer for answer in answers if answer[0].id in active), answers[-1])
        prompt = _chat(journal, thread_id, parent)
        for answer in answers:
            if answer is not chosen:
                yield {"prompt": prompt, "chosen": _said(chosen), "rejected": _said(answer)}


def _answer(start: Entry, children: dict[str | None, list[Entry]], active: set[str]) -> list[Entry]:
    """The entries of an answer that begins here, up to the next question; empty if it does not begin with the model."""
    found: list[Entry] = []
    at: Entry | None = start
    while at is not None and not isinstance(at.payload, UserMessage):
        found.append(at)
        after = children.get(at.id, [])
        at = next((entry for entry in after if entry.id in active), after[-1] if after else None)
    said = [entry for entry in found if _is_said(entry)]
    return said if said and isinstance(said[0].payload, AssistantMessage | ToolCallMessage) else []


def _said(answer: Sequence[Entry]) -> list[Row]:
    """An answer as chat messages."""
    found: list[Row] = []
    for entry in answer:
        message = entry.message
        assert message is not None
        words = "\n".join(part.text for part in message.parts if isinstance(part, TextPart) and part.text)
        for result in message.tool_results:
            said = "\n".join(part.text for part in result.parts if isinstance(part, TextPart))
            found.append({"role": "tool", "tool_call_id": result.call_id, "content": said})
        if message.role == "assistant":
            calls = [
                {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
                for call in message.tool_calls
            ]
            found.append({"role": "assistant", "content": words or None, **({"tool_calls": calls} if calls else {})})
    return found
