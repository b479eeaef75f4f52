"""A provider's message survives the way through ours and back, with everything that only this provider knows."""

from __future__ import annotations

from typing import Any

import pytest

from known import present
from sessiontree.context import Context
from sessiontree.context.dialects import DIALECTS
from sessiontree.model import Message
from sessiontree.model.builders import message_of, payload_of
from sessiontree.model.codec import decode_payload, encode_payload
from validation.validators import faults

Wire = dict[str, Any]

PNG = "iVBORw0KGgo="
FILE_CITED: Wire = {"type": "file_citation", "file_id": "f", "filename": "a.txt", "index": 0}
ASK: Wire = {"role": "user", "content": "What is the weather?"}

CHAT: dict[str, list[Wire]] = {
    "plain texts": [ASK, {"role": "assistant", "content": "Sunny."}, {"role": "user", "content": "Thanks."}],
    "text as blocks": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}],
    "several blocks": [
        {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b", "extra": {"x": 1}}]}
    ],
    "developer message": [{"role": "developer", "content": "Be brief."}, ASK],
    "system message with a name": [{"role": "system", "content": "Be brief.", "name": "rules"}, ASK],
    "names": [{"role": "user", "name": "ann", "content": "hi"}],
    "image by url": [
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://a.b/c.png", "detail": "low"}}]}
    ],
    "image as data": [
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}]}
    ],
    "file as data": [
        {
            "role": "user",
            "content": [
                {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,AAAA"}}
            ],
        }
    ],
    "file by id": [{"role": "user", "content": [{"type": "file", "file": {"file_id": "file-1"}}]}],
    "audio": [
        {"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}}]},
        {"role": "assistant", "audio": {"id": "audio_1"}},
        ASK,
    ],
    "refusal as a block": [ASK, {"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]}, ASK],
    "parallel calls": [
        ASK,
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "call_1", "type": "function", "function": {"name": "w", "arguments": '{"a": 1.50}'}},
                {"id": "call_2", "type": "function", "function": {"name": "w", "arguments": '{"a":2 }'}, "index": 1},
            ],
        },
        {"role": "tool", "tool_call_id": "call_1", "content": "sun"},
        {"role": "tool", "tool_call_id": "call_2", "content": [{"type": "text", "text": "rain"}]},
    ],
    "calls without content": [
        ASK,
        {
            "role": "assistant",
            "tool_calls": [{"id": "c", "type": "function", "function": {"name": "w", "arguments": "{}"}}],
        },
        {"role": "tool", "tool_call_id": "c", "content": ""},
    ],
    "empty content beside calls": [
        ASK,
        {
            "role": "assistant",
            "content": "",
            "refusal": None,
            "tool_calls": [{"id": "c", "type": "function", "function": {"name": "w", "arguments": "{}"}}],
        },
        {"role": "tool", "tool_call_id": "c", "content": "ok", "name": "w"},
    ],
    "custom tool": [
        ASK,
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "c", "type": "custom", "custom": {"name": "sql", "input": "select 1"}}],
        },
        {"role": "tool", "tool_call_id": "c", "content": "1"},
    ],
    "ids used again": [
        message
        for _ in range(2)
        for message in (
            ASK,
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": "c", "type": "function", "function": {"name": "w", "arguments": "{}"}}],
            },
            {"role": "tool", "tool_call_id": "c", "content": "ok"},
        )
    ],
}

RESPONSES: dict[str, list[Wire]] = {
    "plain texts": [ASK, {"role": "assistant", "content": "Sunny."}, {"role": "user", "content": "Thanks."}],
    "typed messages": [{"type": "message", **ASK}, {"role": "developer", "content": "Be brief."}],
    "blocks": [
        {
            "role": "user",
            "content": [
                {"type": "input_text", "text": "look"},
                {"type": "input_image", "image_url": "https://a.b/c.png", "detail": "high"},
                {"type": "input_image", "image_url": f"data:image/png;base64,{PNG}", "detail": "auto"},
                {"type": "input_image", "file_id": "file-1", "detail": "auto"},
                {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,AAAA"},
                {"type": "input_file", "file_url": "https://a.b/c.pdf"},
            ],
        }
    ],
    "output message": [
        ASK,
        {
            "type": "message",
            "id": "msg_1",
            "role": "assistant",
            "status": "completed",
            "phase": "final_answer",
            "content": [
                {"type": "output_text", "text": "a", "annotations": [FILE_CITED], "logprobs": []},
                {"type": "output_text", "text": "b", "annotations": []},
            ],
        },
        ASK,
    ],
    "two output messages": [
        ASK,
        *(
            {
                "type": "message",
                "id": f"msg_{number}",
                "role": "assistant",
                "status": "completed",
                "content": [{"type": "output_text", "text": "a", "annotations": []}],
            }
            for number in range(2)
        ),
    ],
    "refusal": [
        ASK,
        {
            "type": "message",
            "id": "msg_1",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "refusal", "refusal": "no"}],
        },
    ],
    "reasoning with calls": [
        ASK,
        {
            "type": "reasoning",
            "id": "rs_1",
            "summary": [{"type": "summary_text", "text": "s"}, {"type": "summary_text", "text": "t"}],
            "content": [{"type": "reasoning_text", "text": "hm"}],
            "encrypted_content": "AAAA",
            "status": "completed",
        },
        {
            "type": "function_call",
            "id": "fc_1",
            "call_id": "call_1",
            "name": "w",
            "arguments": '{"a": 1}',
            "status": "completed",
        },
        {"type": "function_call", "call_id": "call_2", "name": "w", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "call_1", "output": "sun", "id": "fco_1", "status": "completed"},
        {
            "type": "function_call_output",
            "call_id": "call_2",
            "output": [
                {"type": "input_text", "text": "see"},
                {"type": "input_image", "image_url": f"data:image/png;base64,{PNG}", "detail": "low"},
            ],
        },
    ],
    "reasoning without a summary": [
        ASK,
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": None},
        {"role": "assistant", "content": "x"},
    ],
    "custom tool": [
        ASK,
        {"type": "custom_tool_call", "call_id": "c", "name": "sql", "input": "select 1"},
        {"type": "custom_tool_call_output", "call_id": "c", "output": "1"},
    ],
    "items of hosted tools": [
        ASK,
        {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "q"}},
        {"type": "mcp_list_tools", "id": "m", "server_label": "s", "tools": []},
        {"role": "assistant", "content": "x"},
        {"type": "item_reference", "id": "msg_9"},
        {
            "type": "computer_call",
            "id": "cu_1",
            "call_id": "c",
            "action": {"type": "screenshot"},
            "pending_safety_checks": [],
            "status": "completed",
        },
        {"type": "computer_call_output", "call_id": "c", "output": {"type": "computer_screenshot", "file_id": "f"}},
    ],
}

ANTHROPIC: dict[str, list[Wire]] = {
    "plain texts": [ASK, {"role": "assistant", "content": "Sunny."}, {"role": "user", "content": "Thanks."}],
    "blocks with a cache mark": [
        {"role": "user", "content": [{"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}}]}
    ],
    "images and documents": [
        {
            "role": "user",
            "content": [
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}},
                {"type": "image", "source": {"type": "url", "url": "https://a.b/c.png"}},
                {"type": "image", "source": {"type": "file", "file_id": "file_1"}},
                {
                    "type": "document",
                    "title": "Report",
                    "source": {"type": "base64", "media_type": "application/pdf", "data": "AAAA"},
                    "citations": {"enabled": True},
                },
                {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "x"}},
                {"type": "document", "source": {"type": "url", "url": "https://a.b/c.pdf"}, "title": None},
            ],
        }
    ],
    "thinking and parallel calls": [
        ASK,
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
                {"type": "redacted_thinking", "data": "AAAA"},
                {"type": "text", "text": "Let me look."},
                {"type": "tool_use", "id": "toolu_1", "name": "w", "input": {"city": "Rome", "n": 1.5}},
                {
                    "type": "tool_use",
                    "id": "toolu_2",
                    "name": "w",
                    "input": {},
                    "cache_control": {"type": "ephemeral", "ttl": "1h"},
                },
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "toolu_1", "content": "no network", "is_error": True},
                {
                    "type": "tool_result",
                    "tool_use_id": "toolu_2",
                    "content": [
                        {"type": "text", "text": "see"},
                        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}},
                    ],
                    "is_error": False,
                    "cache_control": {"type": "ephemeral"},
                },
                {"type": "text", "text": "and tomorrow?"},
            ],
        },
    ],
    "empty results": [
        ASK,
        {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "w", "input": {"_raw": "{}"}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t"}]},
    ],
    "server tools": [
        ASK,
        {
            "role": "assistant",
            "content": [
                {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "q"}},
                {
                    "type": "web_search_tool_result",
                    "tool_use_id": "srvtoolu_1",
                    "content": [
                        {"type": "web_search_result", "url": "https://a.b", "title": "A", "encrypted_content": "AAAA"}
                    ],
                },
                {
                    "type": "text",
                    "text": "Sunny.",
                    "citations": [
                        {
                            "type": "web_search_result_location",
                            "url": "https://a.b",
                            "title": "A",
                            "encrypted_index": "AA",
                            "cited_text": "x",
                        }
                    ],
                },
            ],
        },
        {"role": "user", "content": "Thanks."},
    ],
}

GEMINI: dict[str, list[Wire]] = {
    "plain texts": [
        {"role": "user", "parts": [{"text": "hi"}]},
        {"role": "model", "parts": [{"text": "hello"}, {"text": "!"}]},
        {"role": "user", "parts": [{"text": "bye"}]},
    ],
    "media": [
        {
            "role": "user",
            "parts": [
                {"inlineData": {"mimeType": "image/png", "data": PNG}},
                {"inlineData": {"mimeType": "audio/wav", "data": "AAAA"}},
                {"fileData": {"fileUri": "https://a.b/c.mp4", "mimeType": "video/mp4"}, "videoMetadata": {"fps": 2}},
                {"fileData": {"fileUri": "gs://a/b.png", "mimeType": "image/png", "displayName": "b"}},
            ],
        }
    ],
    "calls without an id": [
        {"role": "user", "parts": [{"text": "hi"}]},
        {
            "role": "model",
            "parts": [
                {"text": "hm", "thought": True, "thoughtSignature": "AAAA"},
                {"functionCall": {"name": "w", "args": {"city": "Rome"}}, "thoughtSignature": "c2ln"},
                {"functionCall": {"name": "w", "args": {"city": "Oslo"}}},
                {"functionCall": {"name": "now"}},
            ],
        },
        {
            "role": "user",
            "parts": [
                {"functionResponse": {"name": "w", "response": {"output": "sun"}}},
                {"functionResponse": {"name": "w", "response": {"degrees": 3, "sky": ["grey"]}}},
                {"functionResponse": {"name": "now", "response": {"error": "no clock"}}},
            ],
        },
    ],
    "calls with an id": [
        {"role": "user", "parts": [{"text": "hi"}]},
        {
            "role": "model",
            "parts": [{"functionCall": {"id": "f1", "name": "w", "args": {}}, "thoughtSignature": "c2ln"}],
        },
        {"role": "user", "parts": [{"functionResponse": {"id": "f1", "name": "w", "response": {"result": 1}}}]},
    ],
    "results with media": [
        {"role": "user", "parts": [{"text": "hi"}]},
        {
            "role": "model",
            "parts": [{"functionCall": {"id": "f1", "name": "w", "args": {}}, "thoughtSignature": "c2ln"}],
        },
        {
            "role": "user",
            "parts": [
                {
                    "functionResponse": {
                        "id": "f1",
                        "name": "w",
                        "response": {"output": "see"},
                        "parts": [{"inlineData": {"mimeType": "image/png", "data": PNG}}],
                    }
                }
            ],
        },
    ],
    "a signature on an empty text": [
        {"role": "user", "parts": [{"text": "hi"}]},
        {"role": "model", "parts": [{"text": "x"}, {"text": "", "thoughtSignature": "c2ln"}]},
        {"role": "user", "parts": [{"text": "bye"}]},
    ],
    "code execution": [
        {"role": "user", "parts": [{"text": "hi"}]},
        {
            "role": "model",
            "parts": [
                {"executableCode": {"code": "1", "language": "PYTHON"}},
                {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}},
            ],
        },
        {"role": "user", "parts": [{"text": "bye"}]},
    ],
    "the words of the Python SDK": [
        {"role": "user", "parts": [{"inline_data": {"mime_type": "image/png", "data": PNG}}]},
        {"role": "model", "parts": [{"function_call": {"name": "w", "args": {}}, "thought_signature": "c2ln"}]},
        {"role": "user", "parts": [{"function_response": {"name": "w", "response": {"output": "sun"}}}]},
    ],
}

BODIES = {
    "openai-chat": ("messages", CHAT),
    "openai-responses": ("input", RESPONSES),
    "anthropic": ("messages", ANTHROPIC),
    "gemini": ("contents", GEMINI),
}
CASES = [
    pytest.param(dialect, {field: messages}, id=f"{dialect}: {title}")
    for dialect, (field, cases) in BODIES.items()
    for title, messages in cases.items()
]


@pytest.mark.parametrize(("name", "body"), CASES)
def test_a_conversation_comes_back_unchanged(name: str, body: Wire) -> None:
    dialect = DIALECTS[name]
    system, messages = dialect.from_request(body)
    assert dialect.to_request(Context(system=system, messages=tuple(messages))) == body


@pytest.mark.parametrize(("name", "body"), CASES)
def test_a_conversation_comes_back_unchanged_after_it_was_stored(name: str, body: Wire) -> None:
    dialect = DIALECTS[name]
    system, messages = dialect.from_request(body)
    stored = tuple(through_store(message) for message in messages)
    assert dialect.to_request(Context(system=system, messages=stored)) == body


@pytest.mark.parametrize("target", DIALECTS)
@pytest.mark.parametrize(("name", "body"), CASES)
def test_a_conversation_can_move_to_any_other_provider(name: str, body: Wire, target: str) -> None:
    system, messages = DIALECTS[name].from_request(body)
    if target == name:
        return
    assert faults(target, DIALECTS[target].to_request(Context(system=system, messages=tuple(messages)))) == []


def through_store(message: Message) -> Message:
    return present(message_of(decode_payload(encode_payload(payload_of(message)))))
