"""Streams of OpenAI Chat Completions: chunks, also inside the events of the SDK's stream helper."""

from __future__ import annotations

from sessiontree.context.dialects._streaming import NOTHING, AnswerBuilder, Delta, Wire

__all__ = ["ChatAnswer"]

_JOINED = ("content", "refusal", "reasoning_content", "reasoning")
"""Texts of a message that deltas add to; the last two are those of other vendors that speak this protocol."""
_AROUND = ("id", "object", "created", "model", "service_tier", "system_fingerprint")


class ChatAnswer(AnswerBuilder):
    dialect = "openai-chat"

    def __init__(self) -> None:
        super().__init__()
        self._completion: Wire = {}
        self._message: Wire = {"role": "assistant", "content": None}
        self._calls: dict[int, Wire] = {}
        self._finish_reason = ""

    def response(self) -> Wire:
        calls = {"tool_calls": [self._calls[index] for index in sorted(self._calls)]} if self._calls else {}
        choice = {"index": 0, "finish_reason": self._finish_reason, "message": {**self._message, **calls}}
        return {**self._completion, "object": "chat.completion", "choices": [choice]}

    def _add(self, event: Wire) -> Delta:
        if event.get("type") == "chunk":
            return self._add(event["chunk"])
        if "choices" not in event:
            error = event.get("error")
            self.error = str(error.get("message") or error) if isinstance(error, dict) else str(error or "")
            return NOTHING
        self._completion |= {key: event[key] for key in _AROUND if event.get(key) is not None}
        self.model = event.get("model") or self.model
        if event.get("usage"):
            self._completion["usage"] = event["usage"]
        choice = next((choice for choice in event["choices"] or () if not choice.get("index")), None)
        return NOTHING if choice is None else self._choice(choice)

    def _choice(self, choice: Wire) -> Delta:
        delta: Wire = choice.get("delta") or {}
        for name in _JOINED:
            if delta.get(name):
                self._message[name] = (self._message.get(name) or "") + delta[name]
        for name in ("role", "annotations", "reasoning_details", "audio"):
            if delta.get(name):
                before = self._message.get(name)
                self._message[name] = [*before, *delta[name]] if isinstance(before, list) else delta[name]
        for call in delta.get("tool_calls") or ():
            self._call(call)
        if choice.get("finish_reason"):
            self._finish_reason = choice["finish_reason"]
            self.is_finished = True
        text = (delta.get("content") or "") + (delta.get("refusal") or "")
        return Delta(text=text, reasoning=delta.get("reasoning_content") or delta.get("reasoning") or "")

    def _call(self, added: Wire) -> None:
        index = added.get("index")
        call = self._calls.setdefault(
            len(self._calls) if index is None else int(index),
            {"id": "", "type": "function", "function": {"name": "", "arguments": ""}},
        )
        function: Wire = added.get("function") or {}
        call["id"] = added.get("id") or call["id"]
        call["function"]["name"] = function.get("name") or call["function"]["name"]
        call["function"]["arguments"] += function.get("arguments") or ""
        # A vendor may sign its calls, such as Gemini behind this protocol.
        if added.get("extra_content"):
            call["extra_content"] = added["extra_content"]
