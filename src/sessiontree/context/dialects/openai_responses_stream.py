"""Streams of OpenAI Responses: the events, also those of the SDK's stream helper, which have the same types."""

from __future__ import annotations

from sessiontree.context.dialects._streaming import NOTHING, AnswerBuilder, Delta, Wire

__all__ = ["ResponsesAnswer"]

_TEXTS = ("response.output_text.delta", "response.refusal.delta")
_THOUGHTS = ("response.reasoning_summary_text.delta", "response.reasoning_text.delta")
_ENDS = ("response.completed", "response.incomplete")


class ResponsesAnswer(AnswerBuilder):
    dialect = "openai-responses"

    def __init__(self) -> None:
        super().__init__()
        self._response: Wire = {}
        self._items: dict[int, Wire] = {}

    def response(self) -> Wire:
        output = self._response.get("output") or [self._items[index] for index in sorted(self._items)]
        return {**self._response, "output": output}

    def _add(self, event: Wire) -> Delta:
        match event:
            case {"type": kind, "delta": str(text)} if kind in _TEXTS:
                return Delta(text=text)
            case {"type": kind, "delta": str(text)} if kind in _THOUGHTS:
                return Delta(reasoning=text)
            case {"type": "response.output_item.done", "output_index": int(index), "item": dict(item)}:
                self._items[index] = item
            case {"type": str(kind), "response": dict(response)}:
                self._response = response
                self.model = response.get("model") or self.model
                self.is_finished = kind in _ENDS
                if kind == "response.failed":
                    self.error = str((response.get("error") or {}).get("message") or "the response failed")
            case {"type": "error"}:
                self.error = str(event.get("message") or "the provider reported an error")
        return NOTHING
