"""Streams of Anthropic Messages: the raw events, also among those of the SDK's stream helper."""

from __future__ import annotations

from sessiontree.context.dialects._streaming import NOTHING, AnswerBuilder, Delta, Wire
from sessiontree.model.tool_arguments import decode_arguments

__all__ = ["AnthropicAnswer"]

_JOINED = {"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "signature"}
"""The field of a block that a delta adds to; the field of the delta has the same name."""


class AnthropicAnswer(AnswerBuilder):
    dialect = "anthropic"

    def __init__(self) -> None:
        super().__init__()
        self._message: Wire = {}
        self._blocks: dict[int, Wire] = {}
        self._inputs: dict[int, str] = {}

    def response(self) -> Wire:
        return {**self._message, "content": [self._block(index) for index in sorted(self._blocks)]}

    def _add(self, event: Wire) -> Delta:
        match event:
            case {"type": "message_start", "message": dict(message)}:
                self._message = dict(message)
                self.model = message.get("model") or ""
            case {"type": "content_block_start", "index": int(index), "content_block": dict(block)}:
                self._blocks[index] = dict(block)
                return Delta(text=block.get("text") or "", reasoning=block.get("thinking") or "")
            case {"type": "content_block_delta", "index": int(index), "delta": dict(delta)}:
                return self._grow(index, delta)
            case {"type": "message_delta", "delta": dict(delta)}:
                used = {key: value for key, value in (event.get("usage") or {}).items() if value is not None}
                self._message |= {key: value for key, value in delta.items() if value is not None}
                self._message["usage"] = {**(self._message.get("usage") or {}), **used}
            case {"type": "message_stop"}:
                self.is_finished = True
            case {"type": "error", "error": error}:
                self.error = str(error.get("message") or error) if isinstance(error, dict) else str(error)
        return NOTHING

    def _grow(self, index: int, delta: Wire) -> Delta:
        block = self._blocks.setdefault(index, {"type": "text", "text": ""})
        match delta:
            case {"type": "input_json_delta", "partial_json": str(text)}:
                self._inputs[index] = self._inputs.get(index, "") + text
            case {"type": "citations_delta", "citation": citation}:
                block["citations"] = [*(block.get("citations") or ()), citation]
            case {"type": str(kind)} if kind in _JOINED:
                name = _JOINED[kind]
                added = delta.get(name) or ""
                block[name] = (block.get(name) or "") + added
                return Delta(text=added if name == "text" else "", reasoning=added if name == "thinking" else "")
        return NOTHING

    def _block(self, index: int) -> Wire:
        block = self._blocks[index]
        if index not in self._inputs:
            return block
        text = self._inputs[index]
        value = decode_arguments(text)
        # Arguments that were cut off stay as they are, so that the caller can see it.
        return {**block, "input": value if isinstance(value, dict) else text or {}}
