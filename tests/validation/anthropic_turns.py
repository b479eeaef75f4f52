"""What Anthropic's Messages API refuses in the order of messages and in the pairing of tools."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

__all__ = ["turn_problems"]

_ASSISTANT_ONLY = frozenset({"thinking", "redacted_thinking", "tool_use", "server_tool_use"})
_USER_ONLY = frozenset({"image", "document", "tool_result", "search_result", "container_upload"})
_SERVER_RESULTS = {
    "web_search_tool_result": frozenset({"web_search"}),
    "web_fetch_tool_result": frozenset({"web_fetch"}),
    "code_execution_tool_result": frozenset({"code_execution"}),
    "bash_code_execution_tool_result": frozenset({"bash_code_execution"}),
    "text_editor_code_execution_tool_result": frozenset({"text_editor_code_execution"}),
    "tool_search_tool_result": frozenset({"tool_search_tool_regex", "tool_search_tool_bm25"}),
}

Message = Mapping[str, Any]
Block = Mapping[str, Any]


def turn_problems(messages: Sequence[Message]) -> Iterator[str]:
    """Return what is wrong with the order of messages and blocks."""
    if not messages:
        yield "messages: empty"  # API: "messages: at least one message is required"
        return
    yield from _role_problems(messages)
    for index, message in enumerate(messages):
        yield from (f"messages[{index}]: {problem}" for problem in _content_problems(message))
    yield from _id_problems(messages)
    yield from _result_problems(messages)
    yield from _server_problems(messages)


def _blocks(message: Message) -> list[Block]:
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content)


def _role_problems(messages: Sequence[Message]) -> Iterator[str]:
    """A request starts and ends with the user; roles in between may repeat.

    API: "first message must use the user role"; "This model does not support assistant message prefill. The conversation
    must end with a user message" from Claude 4.6 on (errors page; strands-agents/sdk-python#1694). The one exception is a
    turn that paused in a server tool: it goes back as the last message (anthropic-sdk-python#1507). A system message
    between others is read by some models only (mid-conversation system messages guide), and never as the first.
    """
    if messages[0]["role"] != "user":
        yield f"messages[0]: begins with {messages[0]['role']}"
    last = messages[-1]
    if last["role"] == "assistant" and not _is_paused(last):
        yield "end: the last message is the assistant's"
    for index, message in enumerate(messages):
        if message["role"] == "system":
            yield f"messages[{index}]: a system message, which most models refuse"


def _is_paused(message: Message) -> bool:
    blocks = _blocks(message)
    return bool(blocks) and (blocks[-1]["type"] == "server_tool_use" or blocks[-1]["type"] in _SERVER_RESULTS)


def _content_problems(message: Message) -> Iterator[str]:
    """Content is not empty, blocks belong to their role, thinking does not end a message.

    API: "all messages must have non-empty content except for the optional final assistant message"; "`tool_result` blocks
    can only be in `user` messages", and the like; "The final block in an assistant message cannot be `thinking`"
    (forgecode#2107).
    """
    blocks = _blocks(message)
    if not blocks:
        yield "empty content"
        return
    wrong = _USER_ONLY if message["role"] == "assistant" else _ASSISTANT_ONLY | frozenset(_SERVER_RESULTS)
    yield from (f"{block['type']} in a message of {message['role']}" for block in blocks if block["type"] in wrong)
    if message["role"] == "assistant" and blocks[-1]["type"] in ("thinking", "redacted_thinking"):
        yield "thinking is the last block"


def _id_problems(messages: Sequence[Message]) -> Iterator[str]:
    """API: "`tool_use` ids must be unique" (trycua/cua#524)."""
    seen: set[str] = set()
    for index, message in enumerate(messages):
        for block in _blocks(message):
            if block["type"] in ("tool_use", "server_tool_use"):
                if block["id"] in seen:
                    yield f"messages[{index}]: tool use id {block['id']!r} is used twice"
                seen.add(block["id"])


def _turns(messages: Sequence[Message]) -> list[tuple[str, list[Block]]]:
    """Return messages with neighbours of one role joined, as the API joins them."""
    turns: list[tuple[str, list[Block]]] = []
    for message in messages:
        if turns and turns[-1][0] == message["role"]:
            turns[-1][1].extend(_blocks(message))
        else:
            turns.append((message["role"], _blocks(message)))
    return turns


def _result_problems(messages: Sequence[Message]) -> Iterator[str]:
    """Every ``tool_use`` has one result at the start of the next user turn, and every result its call.

    Tool use guide: results follow immediately and come first in the content. API: "`tool_use` ids were found without
    `tool_result` blocks immediately after"; "unexpected `tool_use_id` found in `tool_result` blocks"; "each tool_use must
    have a single result".
    """
    turns = _turns(messages)
    for index, (role, blocks) in enumerate(turns):
        calls = [block["id"] for block in blocks if block["type"] == "tool_use"] if role == "assistant" else []
        following = turns[index + 1][1] if calls and index + 1 < len(turns) else []
        results = [block["tool_use_id"] for block in following if block["type"] == "tool_result"]
        if missing := [call_id for call_id in calls if call_id not in results]:
            yield f"turn {index}: calls without a result: {missing}"
        if role != "user":
            continue
        before = turns[index - 1][1] if index else []
        asked = {block["id"] for block in before if block["type"] == "tool_use"}
        own = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        if orphans := [call_id for call_id in own if call_id not in asked]:
            yield f"turn {index}: results without a call: {orphans}"
        if len(set(own)) < len(own):
            yield f"turn {index}: two results for one call: {own}"
        if any(block["type"] != "tool_result" for block in blocks[: len(own)]):
            yield f"turn {index}: something stands before the results"


def _server_problems(messages: Sequence[Message]) -> Iterator[str]:
    """A server tool's use and its result are in one assistant turn, the use first.

    API: "`web_search` tool use with id … was found without a corresponding `web_search_tool_result` block"
    (anthropic-sdk-python#961, #1339); "Each … result block must have a corresponding `server_tool_use` block before it"
    (claude-code#64383). Open is allowed in the turn that goes on now: the last message, or the one before results alone
    (server tools guide; vellum-assistant#40145).
    """
    turns = _turns(messages)
    for index, (role, blocks) in enumerate(turns):
        if role != "assistant":
            continue
        open_uses: dict[str, str] = {}
        for block in blocks:
            if block["type"] == "server_tool_use":
                open_uses[block["id"]] = block["name"]
            elif block["type"] in _SERVER_RESULTS:
                name = open_uses.pop(block["tool_use_id"], None)
                if name not in _SERVER_RESULTS[block["type"]]:
                    yield f"turn {index}: {block['type']} without its server_tool_use"
        rest = [block for _, later in turns[index + 1 :] for block in later]
        goes_on = len(turns) <= index + 2 and all(block["type"] == "tool_result" for block in rest)
        if open_uses and not goes_on:
            yield f"turn {index}: server tools without a result: {sorted(open_uses)}"
