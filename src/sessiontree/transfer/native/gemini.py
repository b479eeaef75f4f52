"""A chat of Gemini CLI: one JSON document in the folder of its project."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

from sessiontree.model import ImagePart, TextPart, ToolResultPart
from sessiontree.transfer.native.conversation import Conversation, NativeSession, Said, arguments_of, result_text

__all__ = ["make"]


Wire = dict[str, Any]


def make(conversation: Conversation) -> NativeSession:
    """The session as a document; results stand with the calls that they answer."""
    results = {part.call_id: part for said in conversation.said for part in said.message.tool_results}
    messages = [wire for said in conversation.said if (wire := _message(said, conversation, results)) is not None]
    project = hashlib.sha256(conversation.workspace.encode()).hexdigest()
    document = {
        "sessionId": conversation.id,
        "projectHash": project,
        "startTime": conversation.start.iso,
        "lastUpdated": conversation.end_iso,
        "messages": messages,
        "kind": "main",
        **({"summary": conversation.title} if conversation.title else {}),
        "directories": [conversation.workspace] if conversation.workspace else [],
    }
    stamp = conversation.start.iso[:16].replace(":", "-")
    name = f"tmp/{project}/chats/session-{stamp}-{conversation.id[:8]}.json"
    return NativeSession(
        tool="gemini",
        id=conversation.id,
        files={name: msgspec.json.format(msgspec.json.encode(document))},
        command=("gemini", "--resume", conversation.id),
        workspace=conversation.workspace,
    )


def _message(said: Said, conversation: Conversation, results: dict[str, ToolResultPart]) -> Wire | None:
    message = said.message
    frame: Wire = {"id": said.id, "timestamp": said.iso}
    content = [part for part in map(_part, message.parts) if part]
    if message.role == "assistant":
        calls = [
            _call(call.id, call.name, call.arguments, results.get(call.id), said.iso) for call in message.tool_calls
        ]
        words = "".join(part["text"] for part in content if "text" in part)
        facts = {"toolCalls": calls} if calls else {}
        model = conversation.model or "gemini-2.5-pro"
        return {**frame, "type": "gemini", "content": words, "thoughts": [], "model": model, **facts}
    return {**frame, "type": "user", "content": content} if content else None


def _part(part: object) -> Wire:
    match part:
        case TextPart(text=text) if text:
            return {"text": text}
        case ImagePart(data=data, mime=mime) if data:
            return {"inlineData": {"mimeType": mime or "image/png", "data": data}}
        case _:
            return {}


def _call(call_id: str, name: str, arguments: str, result: ToolResultPart | None, time: str) -> Wire:
    wire: Wire = {"id": call_id, "name": name, "args": arguments_of(arguments), "timestamp": time}
    if result is None:
        return {**wire, "status": "cancelled"}
    said = result_text(result)
    response = {"error": said} if result.is_error else {"output": said}
    answer = [{"functionResponse": {"id": call_id, "name": name, "response": response}}]
    return {**wire, "status": "error" if result.is_error else "success", "result": answer, "resultDisplay": said[:1000]}
