"""A session of pi, version 3: one path, in pi's own entries."""

from __future__ import annotations

from typing import Any

from sessiontree.model import ReasoningPart, UserMessage, payload_of
from sessiontree.model.message import Message
from sessiontree.transfer.formats.pi.records import wire_message
from sessiontree.transfer.native.conversation import Conversation, NativeSession, Said, json_line

__all__ = ["make"]


def make(conversation: Conversation) -> NativeSession:
    """The session as a file in the folder of its working folder."""
    header = {
        "type": "session",
        "version": 3,
        "id": conversation.id,
        "timestamp": conversation.start.iso,
        "cwd": conversation.workspace,
    }
    lines = [json_line(header)]
    parent: str | None = None
    for number, said in enumerate(conversation.said):
        for index, message in enumerate(_messages(said)):
            name = f"{number:06x}{index:02x}"
            frame: dict[str, Any] = {"type": "message", "id": name, "parentId": parent, "timestamp": said.iso}
            lines.append(json_line({**frame, "message": message}))
            parent = name
    if conversation.title:
        info = {"type": "session_info", "id": "ffffffff", "parentId": parent, "timestamp": conversation.end_iso}
        lines.append(json_line({**info, "name": conversation.title}))
    folder = conversation.workspace.strip("/").replace("/", "-").replace("\\", "-").replace(":", "-")
    stamp = conversation.start.iso.replace(":", "-").replace(".", "-")
    name = f"agent/sessions/--{folder}--/{stamp}_{conversation.id}.jsonl"
    return NativeSession(
        tool="pi",
        id=conversation.id,
        files={name: b"".join(lines)},
        command=("pi", "--session", "{folder}/" + name),
        workspace=conversation.workspace,
    )


def _messages(said: Said) -> list[dict[str, Any]]:
    """pi's messages for one of ours: each result is a message of its own."""
    parts = tuple(part for part in said.message.parts if not isinstance(part, ReasoningPart))
    if said.message.role == "tool":
        split = [Message(role="tool", parts=(result,)) for result in said.message.tool_results]
    else:
        split = [Message(role=said.message.role, parts=parts)] if parts else []
    found = []
    for message in split:
        payload = UserMessage(message=message) if message.role == "user" else payload_of(message)
        wire = wire_message(payload)
        if wire is not None:
            found.append({**wire, "timestamp": said.time_ns // 1_000_000})
    return found
