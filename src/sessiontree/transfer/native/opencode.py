"""A session of OpenCode in the shape of ``opencode export``, which ``opencode import`` reads."""

from __future__ import annotations

from typing import Any

import msgspec

from sessiontree.model import FilePart, ImagePart, Part, TextPart, ToolCallPart, ToolResultPart
from sessiontree.transfer.native.conversation import Conversation, NativeSession, Said, arguments_of, result_text

__all__ = ["make"]


_VERSION = "1.3.0"

Wire = dict[str, Any]


def make(conversation: Conversation) -> NativeSession:
    """The session as one document; results stand with the calls that they answer."""
    results = {part.call_id: part for said in conversation.said for part in said.message.tool_results}
    session = f"ses_{conversation.id.replace('-', '')[:26]}"
    messages: list[Wire] = []
    asked = ""
    for number, said in enumerate(conversation.said):
        if said.message.role == "tool":
            continue
        info = _info(said, f"msg_{number:06}{said.id.replace('-', '')[:20]}", session, conversation, asked)
        asked = info["id"] if info["role"] == "user" else asked
        parts = [_part(part, results, said.time_ns) for part in said.message.parts]
        named = [
            {"id": f"prt_{number:06}{index:04}", "sessionID": session, "messageID": info["id"], **part}
            for index, part in enumerate(parts)
            if part
        ]
        messages.append({"info": info, "parts": named})
    times = [said.time_ns // 1_000_000 for said in conversation.said] or [0]
    info = {
        "id": session,
        "slug": session.removeprefix("ses_")[:12],
        "version": _VERSION,
        "projectID": "global",
        "directory": conversation.workspace,
        "title": conversation.title or "Imported conversation",
        "time": {"created": times[0], "updated": times[-1]},
    }
    name = f"{session}.json"
    return NativeSession(
        tool="opencode",
        id=session,
        files={name: msgspec.json.format(msgspec.json.encode({"info": info, "messages": messages}))},
        command=("sh", "-c", f"opencode import {{folder}}/{name} && opencode --session {session}"),
        workspace=conversation.workspace,
    )


def _info(said: Said, name: str, session: str, conversation: Conversation, asked: str) -> Wire:
    time = said.time_ns // 1_000_000
    model = {"providerID": conversation.provider or "anthropic", "modelID": conversation.model or "unknown"}
    frame: Wire = {"id": name, "sessionID": session}
    if said.message.role != "assistant":
        return {**frame, "role": "user", "time": {"created": time}, "agent": "build", "model": model}
    return {
        **frame,
        "role": "assistant",
        "parentID": asked,
        "time": {"created": time, "completed": time},
        **model,
        "mode": "build",
        "agent": "build",
        "path": {"cwd": conversation.workspace, "root": conversation.workspace},
        "cost": 0,
        "tokens": {"input": 0, "output": 0, "reasoning": 0, "cache": {"read": 0, "write": 0}},
        "finish": "tool-calls" if said.message.tool_calls else "stop",
    }


def _part(part: Part, results: dict[str, ToolResultPart], time_ns: int) -> Wire:
    match part:
        case TextPart(text=text) if text:
            return {"type": "text", "text": text}
        case ImagePart(data=data, mime=mime) if data:
            return {"type": "file", "mime": mime or "image/png", "url": f"data:{mime or 'image/png'};base64,{data}"}
        case FilePart(name=name, url=url, mime=mime) if name or url:
            return {"type": "file", "mime": mime or "text/plain", "filename": name, "url": url}
        case ToolCallPart():
            return {
                "type": "tool",
                "callID": part.id,
                "tool": part.name,
                "state": _state(part, results.get(part.id), time_ns),
            }
        case _:
            return {}


def _state(call: ToolCallPart, result: ToolResultPart | None, time_ns: int) -> Wire:
    time = {"start": time_ns // 1_000_000, "end": time_ns // 1_000_000}
    state: Wire = {"input": arguments_of(call.arguments), "time": time}
    if result is None or result.is_error:
        return {**state, "status": "error", "error": result_text(result) if result else "no result"}
    return {**state, "status": "completed", "output": result_text(result), "title": call.name, "metadata": {}}
