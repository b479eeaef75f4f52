"""Messages of chat formats in our terms, and trees of them in an order in which parents come first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sessiontree.model import (
    AssistantMessage,
    Custom,
    Message,
    Part,
    Payload,
    ToolCallMessage,
    ToolResultMessage,
    ToolResultPart,
    Usage,
)
from sessiontree.model.builders import payload_of_any_role

__all__ = ["answer", "by_role", "parents_first", "split_results"]


def answer(
    parts: Sequence[Part], *, provider: str = "", model: str = "", stop_reason: str = "", usage: Usage | None = None
) -> AssistantMessage | ToolCallMessage:
    """A message of the model."""
    message = Message(role="assistant", parts=tuple(parts))
    kind = ToolCallMessage if message.tool_calls else AssistantMessage
    return kind(message=message, provider=provider, model=model, stop_reason=stop_reason, usage=usage)


def by_role(role: str, parts: Sequence[Part], **answered: Any) -> list[Payload]:
    """The payloads of a message: results of tools in one of their own, before what was said beside them."""
    if role == "assistant":
        return [answer(parts, **answered)]
    results, others = split_results(parts)
    found: list[Payload] = [ToolResultMessage(message=Message(role="tool", parts=results))] if results else []
    if others or not results:
        if role == "tool":
            found.append(Custom(name="tool", message=Message(role="user", parts=others)))
        else:
            found.append(payload_of_any_role(Message(role=role, parts=others)))  # type: ignore[arg-type]
    return found


def split_results(parts: Sequence[Part]) -> tuple[tuple[ToolResultPart, ...], tuple[Part, ...]]:
    """The tool results, and the other parts."""
    results = tuple(part for part in parts if isinstance(part, ToolResultPart))
    return results, tuple(part for part in parts if not isinstance(part, ToolResultPart))


def parents_first(parents: Mapping[str, str | None]) -> Iterator[str]:
    """The ids of a tree in an order in which each parent comes before its children, otherwise as they stand.

    >>> list(parents_first({"c": "b", "b": "a", "a": None, "x": "y", "y": "x"}))
    ['a', 'b', 'c', 'x', 'y']
    """
    done: set[str] = set()
    for start in parents:
        line: list[str] = []
        at: str | None = start
        while at is not None and at in parents and at not in done:
            done.add(at)
            line.append(at)
            at = parents[at]
        # A ring has no first one: it begins where it was met.
        yield from reversed(line) if at not in line else line
