"""A rollout of Codex: what the model sees and what the screen shows, turn by turn."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sessiontree.model import ImagePart, TextPart
from sessiontree.transfer.native.conversation import Conversation, NativeSession, Said, json_line, result_text, texts_of

__all__ = ["make"]


_VERSION = "0.140.0"

Wire = dict[str, Any]


def make(conversation: Conversation) -> NativeSession:
    """The session as a rollout in the folder of its day."""
    start = conversation.start.iso
    day = start[:10].replace("-", "/")
    stamp = start[:19].replace(":", "-")
    return NativeSession(
        tool="codex",
        id=conversation.id,
        files={
            f"sessions/{day}/rollout-{stamp}-{conversation.id}.jsonl": b"".join(map(json_line, _lines(conversation)))
        },
        command=("codex", "resume", conversation.id),
        workspace=conversation.workspace,
    )


def _lines(conversation: Conversation) -> Iterator[Wire]:
    start = conversation.start.iso
    meta = {
        "id": conversation.id,
        "session_id": conversation.id,
        "timestamp": start,
        "cwd": conversation.workspace,
        "originator": "codex-tui",
        "cli_version": _VERSION,
        "source": "cli",
        "model_provider": conversation.provider if conversation.provider.startswith("openai") else "openai",
    }
    yield _record(start, "session_meta", meta)
    turn = 0
    last = start
    for said in conversation.said:
        words = "".join(texts_of(said.message))
        if said.message.role == "user":
            if turn:
                yield _event(last, "task_complete", turn_id=f"turn-{turn}", last_agent_message=None)
            turn += 1
            yield _event(said.iso, "task_started", turn_id=f"turn-{turn}", model_context_window=None)
            yield _event(said.iso, "user_message", message=words, images=[])
        elif words and said.message.role == "assistant":
            yield _event(said.iso, "agent_message", message=words)
        for item in _items(said):
            yield _record(said.iso, "response_item", item)
        last = said.iso
    if turn:
        yield _event(last, "task_complete", turn_id=f"turn-{turn}", last_agent_message=None)


def _record(time: str, kind: str, payload: Wire) -> Wire:
    return {"timestamp": time, "type": kind, "payload": payload}


def _event(time: str, kind: str, **facts: Any) -> Wire:
    return _record(time, "event_msg", {"type": kind, **facts})


def _items(said: Said) -> Iterator[Wire]:
    """The message, then its calls; or the outputs of calls."""
    message = said.message
    for result in message.tool_results:
        yield {"type": "function_call_output", "call_id": result.call_id, "output": result_text(result)}
    kind = "output_text" if message.role == "assistant" else "input_text"
    content: list[Wire] = []
    for part in message.parts:
        match part:
            case TextPart(text=text) if text:
                content.append({"type": kind, "text": text})
            case ImagePart(data=data, mime=mime) if data and message.role == "user":
                content.append({"type": "input_image", "image_url": f"data:{mime or 'image/png'};base64,{data}"})
    if content:
        yield {"type": "message", "role": "assistant" if message.role == "assistant" else "user", "content": content}
    for call in message.tool_calls:
        yield {"type": "function_call", "name": call.name, "arguments": call.arguments, "call_id": call.id}
