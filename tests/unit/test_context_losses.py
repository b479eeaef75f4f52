"""What a change of provider loses is told, not hidden."""

from __future__ import annotations

from typing import Any

import pytest

from sessiontree.context import Context, Loss
from sessiontree.context.dialects import DIALECTS, UnknownDialectError
from sessiontree.model import ImagePart, Message, Part, ToolResultPart
from sessiontree.model.builders import user


def lost(dialect: str, *parts: Part, role: Any = "assistant") -> list[str]:
    context = Context(messages=(user("hi").message, Message(role=role, parts=parts)))
    losses = context.losses(dialect)
    assert all(isinstance(loss, Loss) and loss.message_index == 1 for loss in losses)
    return [loss.what for loss in losses]


def read(dialect: str, body: dict[str, Any]) -> tuple[Part, ...]:
    return DIALECTS[dialect].from_response(body).message.parts


THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
SEARCH = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}
CITED = {"type": "text", "text": "so", "citations": [{"type": "web_search_result_location"}]}


def test_another_provider_loses_thinking_server_tools_and_citations() -> None:
    parts = read("anthropic", {"content": [THOUGHT, SEARCH, CITED]})
    for dialect in ("openai-chat", "openai-responses", "gemini"):
        assert lost(dialect, *parts) == [
            "reasoning of anthropic",
            "server_tool_use of anthropic",
            "fields of anthropic: citations",
        ]
    assert lost("anthropic", *parts) == []


def test_images_of_results_and_the_mark_of_an_error_are_lost_where_there_is_no_place_for_them() -> None:
    image = ImagePart(data="iVBORw0KGgo=", mime="image/png")
    result = ToolResultPart(call_id="c", parts=(image,), is_error=True)
    assert lost("openai-chat", result, role="tool") == ["the mark of an error result", "image, a note in its place"]
    assert lost("openai-responses", result, role="tool") == ["the mark of an error result"]
    assert lost("gemini", result, role="tool") == ["image, a note in its place"]


def test_an_image_that_a_provider_does_not_read_is_lost() -> None:
    svg = ImagePart(data="PHN2Zz4=", mime="image/svg+xml")
    for dialect in ("openai-chat", "openai-responses", "anthropic", "gemini"):
        assert lost(dialect, svg, role="user") == ["image, a note in its place"]


def test_an_unknown_dialect_has_no_losses() -> None:
    with pytest.raises(UnknownDialectError):
        Context().losses("claude")
