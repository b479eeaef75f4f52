"""Reasoning that was imported from pi goes back to the provider that signed it, and to nobody else."""

from __future__ import annotations

import json
from typing import Any

import pytest

from known import present
from sessiontree.context import Context
from sessiontree.context.dialects import DIALECTS
from sessiontree.model.builders import message_of, tool_result, user
from sessiontree.transfer.formats.pi.records import payload_of_message, wire_message

ITEM = json.dumps({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "AAAA"})
CALL = {"type": "toolCall", "id": "c1", "name": "read", "arguments": {}}


def answer(api: str, signature: str, **fields: Any) -> dict[str, Any]:
    thought = {"type": "thinking", "thinking": "hm", "thinkingSignature": signature, **fields}
    return {"role": "assistant", "content": [thought, CALL], "api": api, "provider": "p", "model": "m"}


CASES = {
    "anthropic": (answer("anthropic-messages", "c2ln"), '"signature": "c2ln"'),
    "redacted": (answer("anthropic-messages", "c2ln", redacted=True), '"data": "c2ln"'),
    "openai-responses": (answer("openai-responses", ITEM), '"encrypted_content": "AAAA"'),
    "gemini": (answer("google-generative-ai", "c2ln"), '"thoughtSignature": "c2ln"'),
}


@pytest.mark.parametrize(("title", "wire", "sent"), [(title, *case) for title, case in CASES.items()], ids=CASES)
def test_a_signature_goes_back_to_the_provider_that_made_it(title: str, wire: dict[str, Any], sent: str) -> None:
    payload = payload_of_message(wire)
    said = present(message_of(payload))
    context = Context(messages=(user("hi").message, said, tool_result("c1", "ok").message))
    home = "anthropic" if title == "redacted" else title
    for name, dialect in DIALECTS.items():
        assert (sent in json.dumps(dialect.to_request(context))) == (name == home)
    assert wire_message(payload) == wire


def test_reasoning_of_an_unknown_interface_is_sent_to_nobody() -> None:
    payload = payload_of_message(answer("somewhere", "c2ln"))
    said = present(message_of(payload))
    context = Context(messages=(user("hi").message, said, tool_result("c1", "ok").message))
    assert all("c2ln" not in json.dumps(dialect.to_request(context)) for dialect in DIALECTS.values())
