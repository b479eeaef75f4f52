"""The validators by the names of the dialects."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from validation import anthropic_messages, chat_completions, gemini_content, responses

__all__ = ["VALIDATORS", "faults"]

VALIDATORS: dict[str, Callable[[Mapping[str, Any]], list[str]]] = {
    "openai-chat": chat_completions.problems,
    "openai-responses": responses.problems,
    "anthropic": anthropic_messages.problems,
    "gemini": gemini_content.problems,
}


def faults(dialect: str, request: Mapping[str, Any]) -> list[str]:
    """Return what is wrong with a request; empty if its provider takes it."""
    return VALIDATORS[dialect](request)
