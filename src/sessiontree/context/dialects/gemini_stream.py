"""Streams of Gemini: responses whose parts follow each other."""

from __future__ import annotations

from sessiontree.context.dialects._streaming import AnswerBuilder, Delta, Wire

__all__ = ["GeminiAnswer"]


class GeminiAnswer(AnswerBuilder):
    dialect = "gemini"

    def __init__(self) -> None:
        super().__init__()
        self._response: Wire = {}
        self._candidate: Wire = {}
        self._parts: list[Wire] = []

    def response(self) -> Wire:
        content = {**(self._candidate.get("content") or {}), "role": "model", "parts": self._parts}
        return {**self._response, "candidates": [{**self._candidate, "content": content}]}

    def _add(self, event: Wire) -> Delta:
        given = {key: value for key, value in event.items() if value is not None and key != "candidates"}
        self._response |= given
        self.model = event.get("modelVersion") or event.get("model_version") or self.model
        if isinstance(event.get("error"), dict):
            self.error = str(event["error"].get("message") or event["error"])
        feedback: Wire = event.get("promptFeedback") or event.get("prompt_feedback") or {}
        candidate: Wire = next(iter(event.get("candidates") or ()), {})
        self._candidate |= {key: value for key, value in candidate.items() if value is not None and key != "content"}
        ended = candidate.get("finishReason") or candidate.get("finish_reason")
        self.is_finished = self.is_finished or bool(
            ended or feedback.get("blockReason") or feedback.get("block_reason")
        )
        text, reasoning = "", ""
        for part in (candidate.get("content") or {}).get("parts") or ():
            added = {key: value for key, value in part.items() if value is not None}
            self._put(added)
            if added.get("thought"):
                reasoning += added.get("text") or ""
            else:
                text += added.get("text") or ""
        return Delta(text=text, reasoning=reasoning)

    def _put(self, part: Wire) -> None:
        """Join texts that follow each other. A signed part stays by itself: the signature is that of its own text."""
        last = self._parts[-1] if self._parts else {}
        if _is_plain(part) and _is_plain(last) and bool(part.get("thought")) == bool(last.get("thought")):
            last["text"] += part["text"]
        else:
            self._parts.append(part)


def _is_plain(part: Wire) -> bool:
    return isinstance(part.get("text"), str) and set(part) <= {"text", "thought"}
