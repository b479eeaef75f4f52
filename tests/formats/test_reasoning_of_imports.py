"""Reasoning and signatures that were imported belong to the provider that the source names."""

from __future__ import annotations

import json

import pytest

from sessiontree.context import Context
from sessiontree.context.dialects import DIALECTS, openai_chat
from sessiontree.model import AssistantMessage, ReasoningPart, ToolCallMessage
from sessiontree.model.builders import tool_result, user
from sessiontree.transfer.formats.floret import records as floret
from sessiontree.transfer.formats.floret.entries import payload_of as floret_payload
from sessiontree.transfer.formats.picoclaw import records as picoclaw


def test_reasoning_of_picoclaw_goes_back_to_a_chat_server_that_wants_it() -> None:
    payload = picoclaw.payload_of(picoclaw.PicoclawMessage(role="assistant", content="x", reasoning_content="hm"))
    assert isinstance(payload, AssistantMessage)
    context = Context(messages=(user("q").message, payload.message))
    assert openai_chat.to_request(context, reasoning="send")["messages"][1]["reasoning_content"] == "hm"
    assert all('"hm"' not in json.dumps(dialect.to_request(context)) for dialect in DIALECTS.values())
    assert picoclaw.wire_of(payload) == picoclaw.PicoclawMessage(role="assistant", content="x", reasoning_content="hm")


@pytest.mark.parametrize("is_beside", [True, False])
def test_a_signature_of_picoclaw_goes_back_to_gemini(is_beside: bool) -> None:
    google = picoclaw.ExtraContent(google=picoclaw.Google(thought_signature="c2ln"))
    call = picoclaw.ToolCall(
        id="c",
        type="function",
        function=picoclaw.Function(name="read", arguments="{}", thought_signature="" if is_beside else "c2ln"),
        extra_content=google if is_beside else None,
    )
    message = picoclaw.PicoclawMessage(role="assistant", content="", tool_calls=[call])
    payload = picoclaw.payload_of(message)
    assert isinstance(payload, ToolCallMessage)
    context = Context(messages=(user("q").message, payload.message, tool_result("c", "ok").message))
    for name, dialect in DIALECTS.items():
        assert ("c2ln" in json.dumps(dialect.to_request(context))) == (name == "gemini")
    assert picoclaw.wire_of(payload) == message


@pytest.mark.parametrize(
    ("provider", "dialect"), [("anthropic", "anthropic"), ("openai", "openai-chat"), ("google", "gemini"), ("x", "")]
)
def test_reasoning_of_floret_has_the_dialect_of_its_provider(provider: str, dialect: str) -> None:
    said = floret.FloretMessage(role="assistant", content="x", reasoning="hm")
    entry = floret.FloretEntry(
        id="e",
        thread_id="t",
        type="assistant_message",
        created_at="",
        message=said,
        provider=provider,
        context_usage_before=floret.FloretUsage(),
        context_usage_after=floret.FloretUsage(),
    )
    payload = floret_payload(entry)
    assert isinstance(payload, AssistantMessage)
    assert payload.message.parts[0] == ReasoningPart(provider=dialect, text="hm")
