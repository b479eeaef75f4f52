"""A session of Claude Code: one line to a message, linear, with all calls answered.

Reasoning is left out: the API accepts it only with the signature of the same model and session.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import Any

from sessiontree.model import ImagePart, Part, TextPart, ToolCallPart, ToolResultPart
from sessiontree.transfer.native.conversation import Conversation, NativeSession, Said, arguments_of, json_line

__all__ = ["make", "subagent_lines"]


_VERSION = "2.1.0"
_LONGEST_FOLDER = 200


def make(conversation: Conversation) -> NativeSession:
    """The session as a file in the folder of its project."""
    lines = [json_line(line) for line in _lines(conversation)]
    if conversation.title:
        lines.append(
            json_line({"type": "custom-title", "customTitle": conversation.title, "sessionId": conversation.id})
        )
    return NativeSession(
        tool="claude-code",
        id=conversation.id,
        files={f"projects/{folder_name(conversation.workspace)}/{conversation.id}.jsonl": b"".join(lines)},
        command=("claude", "--resume", conversation.id),
        workspace=conversation.workspace,
    )


def subagent_lines(conversation: Conversation, agent: str) -> bytes:
    """The file of a subagent; the id of the conversation is that of the session which started it."""
    marks = {"isSidechain": True, "agentId": agent}
    return b"".join(json_line({**line, **marks}) for line in _lines(conversation))


def _lines(conversation: Conversation) -> Iterator[dict[str, Any]]:
    parent: str | None = None
    for said in conversation.said:
        content = [block for part in said.message.parts for block in _blocks(part)]
        if content:
            yield _line(conversation, said, content, parent)
            parent = said.id


def folder_name(path: str) -> str:
    """The name of a project's folder: every character that is no ASCII letter or digit becomes a dash.

    >>> folder_name("/home/me/my.shop")
    '-home-me-my-shop'
    """
    name = re.sub(r"[^a-zA-Z0-9]", "-", unicodedata.normalize("NFC", path))
    return name[:_LONGEST_FOLDER] or "-"


def _line(conversation: Conversation, said: Said, content: list[Any], parent: str | None) -> dict[str, Any]:
    role = "assistant" if said.message.role == "assistant" else "user"
    message: dict[str, Any] = {"role": role, "content": content}
    if role == "assistant":
        has_calls = any(block["type"] == "tool_use" for block in content)
        message |= {
            "id": f"msg_{said.id.replace('-', '')[:24]}",
            "type": "message",
            "model": conversation.model or "claude-sonnet-5",
            "stop_reason": "tool_use" if has_calls else "end_turn",
            "stop_sequence": None,
            "usage": {"input_tokens": 1, "output_tokens": 1},
        }
    elif len(content) == 1 and content[0]["type"] == "text":
        message["content"] = content[0]["text"]
    return {
        "parentUuid": parent,
        "isSidechain": False,
        "userType": "external",
        "cwd": conversation.workspace,
        "sessionId": conversation.id,
        "version": _VERSION,
        "type": role,
        "message": message,
        "uuid": said.id,
        "timestamp": said.iso,
    }


def _blocks(part: Part) -> list[dict[str, Any]]:
    match part:
        case TextPart(text=text) if text:
            return [{"type": "text", "text": text}]
        case ImagePart(data=data, mime=mime) if data:
            return [{"type": "image", "source": {"type": "base64", "media_type": mime or "image/png", "data": data}}]
        case ToolCallPart():
            arguments = arguments_of(part.arguments)
            return [{"type": "tool_use", "id": part.id, "name": part.name, "input": arguments}]
        case ToolResultPart():
            inner = [block for one in part.parts for block in _blocks(one)]
            failed = {"is_error": True} if part.is_error else {}
            return [{"type": "tool_result", "tool_use_id": part.call_id, "content": inner, **failed}]
        case _:
            return []
