"""A session of goose as the JSON document that ``goose session import`` reads."""

from __future__ import annotations

from typing import Any

import msgspec

from sessiontree.model import NANOSECONDS, ImagePart, Part, TextPart, ToolCallPart, ToolResultPart
from sessiontree.transfer.native.conversation import Conversation, NativeSession, Said, arguments_of, result_text

__all__ = ["make"]


Wire = dict[str, Any]


def make(conversation: Conversation) -> NativeSession:
    """The session as one document."""
    messages = [wire for said in conversation.said if (wire := _message(said))["content"]]
    document = {
        "id": conversation.id,
        "name": conversation.title or "Imported conversation",
        "working_dir": conversation.workspace,
        "created_at": conversation.start.iso,
        "updated_at": conversation.end_iso,
        "message_count": len(messages),
        "conversation": messages,
    }
    name = f"{conversation.id}.json"
    return NativeSession(
        tool="goose",
        id=conversation.id,
        files={name: msgspec.json.format(msgspec.json.encode(document))},
        command=("goose", "session", "import", "{folder}/" + name),
        workspace=conversation.workspace,
    )


def _message(said: Said) -> Wire:
    return {
        "id": said.id,
        "role": "assistant" if said.message.role == "assistant" else "user",
        "created": said.time_ns // NANOSECONDS,
        "content": [block for part in said.message.parts if (block := _block(part))],
        "metadata": {"userVisible": True, "agentVisible": True},
    }


def _block(part: Part) -> Wire:
    match part:
        case TextPart(text=text) if text:
            return {"type": "text", "text": text}
        case ImagePart(data=data, mime=mime) if data:
            return {"type": "image", "data": data, "mimeType": mime or "image/png"}
        case ToolCallPart():
            value = {"name": part.name, "arguments": arguments_of(part.arguments)}
            return {"type": "toolRequest", "id": part.id, "toolCall": {"status": "success", "value": value}}
        case ToolResultPart():
            content = [{"type": "text", "text": result_text(part)}]
            value = {"content": content, "isError": part.is_error}
            return {"type": "toolResponse", "id": part.call_id, "toolResult": {"status": "success", "value": value}}
        case _:
            return {}
