"""Codex's response items, which are those of OpenAI's Responses, in our terms."""

from __future__ import annotations

from typing import Any

from sessiontree.model import (
    AssistantMessage,
    ImagePart,
    Message,
    OpaquePart,
    Part,
    Payload,
    ReasoningPart,
    TextPart,
    ToolCallMessage,
    ToolCallPart,
    Usage,
)
from sessiontree.model.builders import payload_of_any_role, tool_result
from sessiontree.transfer.formats import _go
from sessiontree.transfer.formats._blocks import arguments_text, image_part
from sessiontree.transfer.formats._wire import Json, as_text, mapping, objects, parse, text, usage

__all__ = ["PROVIDER", "answer_of", "answer_parts", "is_injected", "message_payload", "result_payload", "usage_of"]


PROVIDER = "openai-responses"
_INJECTED = (
    "<environment_context>",
    "<user_instructions>",
    "<permissions instructions>",
    "<collaboration_mode>",
    "<turn_aborted>",
    "<skills_instructions>",
    "<user_shell_command>",
    "# AGENTS.md instructions",
)
_COUNTS = {
    "input_tokens": "input_tokens",
    "output_tokens": "output_tokens",
    "cached_input_tokens": "cache_read_tokens",
    "reasoning_output_tokens": "reasoning_tokens",
    "total_tokens": "total_tokens",
}


def is_injected(words: str) -> bool:
    """Whether a user message was written by the program and not by a person."""
    return words.lstrip().startswith(_INJECTED)


def content_parts(content: Any) -> tuple[Part, ...]:
    """The parts of a message's content."""
    if isinstance(content, str):
        return (TextPart(text=content),) if content else ()
    return tuple([_content_part(block) for block in objects(content)])


def _content_part(block: Json) -> TextPart | ImagePart | OpaquePart:
    if isinstance(block.get("text"), str):
        return TextPart(text=block["text"])
    if block.get("type") in ("input_image", "image", "image_url"):
        address = block.get("image_url")
        source = {"url": address} if isinstance(address, str) else mapping(address) or block
        return image_part(source) or OpaquePart(provider=PROVIDER, block=block)
    if isinstance(block.get("refusal"), str):
        return TextPart(text=block["refusal"])
    return OpaquePart(provider=PROVIDER, block=block)


def message_payload(item: Json) -> Payload:
    """A message of the user, of the program, or of the model."""
    role: Any = text(item.get("role")) or "user"
    parts = content_parts(item.get("content"))
    words = "".join(part.text for part in parts if isinstance(part, TextPart))
    kind = "meta" if role == "user" and is_injected(words) else ""
    if role == "system":
        role = "developer"
    return payload_of_any_role(Message(role=role, parts=parts, kind=kind))


def answer_parts(item: Json) -> tuple[Part, ...] | None:
    """The parts that an item adds to the model's response; ``None`` if it is no part of one."""
    call = text(item.get("call_id")) or text(item.get("id"))
    match item.get("type"):
        case "message" | None if item.get("role") == "assistant":
            return content_parts(item.get("content"))
        case "reasoning":
            return (_reasoning(item),)
        case "function_call":
            name = ".".join(filter(None, [text(item.get("namespace")), text(item.get("name"))]))
            return (ToolCallPart(id=call, name=name, arguments=arguments_text(item.get("arguments"))),)
        case "custom_tool_call":
            arguments = as_text({"input": item.get("input")})
            return (ToolCallPart(id=call, name=text(item.get("name")), arguments=arguments),)
        case "local_shell_call":
            return (ToolCallPart(id=call, name="local_shell", arguments=arguments_text(item.get("action"))),)
        case "tool_search_call":
            return (ToolCallPart(id=call, name="tool_search", arguments=arguments_text(item.get("arguments"))),)
        case "web_search_call":
            return (TextPart(text=_search_words(item)), OpaquePart(provider=PROVIDER, block=item))
        case "image_generation_call" if isinstance(item.get("result"), str):
            prompt = text(item.get("revised_prompt"))
            return (
                *((TextPart(text=f"[image: {prompt}]"),) if prompt else ()),
                ImagePart(data=item["result"], mime="image/png"),
            )
        case _:
            return None


def _search_words(item: Json) -> str:
    action = mapping(item.get("action"))
    queries = [text(action.get("query")), *(one for one in action.get("queries") or () if isinstance(one, str))]
    return f"[web search: {'; '.join(dict.fromkeys(filter(None, queries))) or text(action.get('url'))}]"


def _reasoning(item: Json) -> ReasoningPart:
    said = [text(block.get("text")) for name in ("summary", "content") for block in objects(item.get(name))]
    return ReasoningPart(
        provider=PROVIDER,
        text="\n".join(filter(None, said)),
        encrypted=text(item.get("encrypted_content")),
        id=text(item.get("id")),
    )


def answer_of(parts: tuple[Part, ...], provider: str, model: str) -> Payload:
    """The model's message."""
    message = Message(role="assistant", parts=parts)
    kind = ToolCallMessage if message.tool_calls else AssistantMessage
    return kind(message=message, provider=provider, model=model)


def result_payload(item: Json) -> Payload:
    """The result of a call; the output is a text, items, or a text that is JSON with the output in it."""
    output = item.get("output", item.get("tools"))
    is_error = False
    if isinstance(output, str) and output.startswith('{"output":'):
        output, is_error = _unwrapped(output)
    elif isinstance(output, dict):
        is_error = output.get("success") is False
        output = output.get("content", output)
    parts: Any = content_parts(output) if isinstance(output, list) else (TextPart(text=as_text(output)),)
    return tool_result(text(item.get("call_id")), parts, is_error=is_error)


def _unwrapped(output: str) -> tuple[Any, bool]:
    try:
        found = mapping(parse(output))
    except _go.JsonError:
        return output, False
    code = mapping(found.get("metadata")).get("exit_code")
    return found.get("output"), code not in (0, None)


def usage_of(info: Json) -> Usage | None:
    """The tokens of the last request; those that were read from the cache are not counted twice."""
    found = usage(info.get("last_token_usage"), _COUNTS)
    if found is None:
        return None
    fresh = max(found.input_tokens - found.cache_read_tokens, 0)
    return Usage(
        input_tokens=fresh,
        output_tokens=found.output_tokens,
        cache_read_tokens=found.cache_read_tokens,
        reasoning_tokens=found.reasoning_tokens,
        total_tokens=found.total_tokens,
    )
