"""Content blocks in the shape of Anthropic's Messages, which many tools store, as parts of ours."""

from __future__ import annotations

from typing import Any

from sessiontree.model import (
    FilePart,
    ImagePart,
    OpaquePart,
    Part,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from sessiontree.transfer.formats._wire import Json, array, as_text, mapping, text

__all__ = ["arguments_text", "image_part", "parts_of", "result_content", "result_part"]


PROVIDER = "anthropic"


def parts_of(content: Any) -> tuple[Part, ...]:
    """The parts of a message's content: a text, a block or a list of them."""
    match content:
        case "" | None:
            return ()
        case str():
            return (TextPart(text=content),)
        case dict():
            return (_part(content),)
        case list():
            return tuple([_part(block) for block in content])
        case _:
            return (TextPart(text=as_text(content)),)


def _part(block: Any) -> Part:
    if not isinstance(block, dict):
        return TextPart(text=as_text(block))
    match block.get("type"):
        case "tool_use" if isinstance(block.get("id"), str):
            name, arguments = text(block.get("name")), arguments_text(block.get("input"))
            return ToolCallPart(id=block["id"], name=name, arguments=arguments)
        case "tool_result" if isinstance(block.get("tool_use_id"), str):
            return result_part(block)
        case "thinking" if isinstance(block.get("thinking"), str):
            return ReasoningPart(provider=PROVIDER, text=block["thinking"], signature=text(block.get("signature")))
        case "redacted_thinking" if isinstance(block.get("data"), str):
            return ReasoningPart(provider=PROVIDER, encrypted=block["data"])
        case _:
            return _content(block)


def _content(block: Json) -> TextPart | ImagePart | FilePart | OpaquePart:
    """A block that may also stand in a tool result."""
    match block.get("type"):
        case "text" if isinstance(block.get("text"), str):
            return TextPart(text=block["text"])
        case "image":
            return image_part(block) or OpaquePart(provider=PROVIDER, block=block)
        case "document":
            source = mapping(block.get("source"))
            if source.get("type") == "text" and isinstance(source.get("data"), str):
                return TextPart(text="\n".join(filter(None, (text(block.get("title")), source["data"]))))
            if source.get("type") == "content":
                return OpaquePart(provider=PROVIDER, block=block)
            return FilePart(
                data=text(source.get("data")) if source.get("type") == "base64" else "",
                url=text(source.get("url")),
                mime=text(source.get("media_type")),
                name=text(block.get("title")),
            )
        case "tool_reference" if isinstance(block.get("tool_name"), str):
            return TextPart(text=block["tool_name"])
        case _:
            return OpaquePart(provider=PROVIDER, block=block)


def image_part(block: Json) -> ImagePart | None:
    """An image in one of the shapes that tools write: with a source, with data and MIME type, or with a URL."""
    source = mapping(block.get("source")) or block
    data, url = text(source.get("data")), text(source.get("url") or source.get("image_url"))
    mime = text(source.get("media_type") or source.get("mimeType") or source.get("mime_type"))
    if not data and url.startswith("data:") and ";base64," in url:
        head, _, data = url.partition(";base64,")
        mime, url = mime or head.removeprefix("data:"), ""
    return ImagePart(data=data, url=url, mime=mime) if data or url else None


def result_part(block: Json) -> ToolResultPart:
    """The result of a tool call."""
    return ToolResultPart(
        call_id=text(block.get("tool_use_id")),
        parts=result_content(block.get("content")),
        is_error=block.get("is_error") is True,
    )


def result_content(content: Any) -> tuple[TextPart | ImagePart | FilePart | OpaquePart, ...]:
    """The content of a tool result: a text, blocks, or any other value as JSON."""
    match content:
        case "" | None:
            return ()
        case list() if all(isinstance(block, dict) for block in content):
            return tuple([_content(block) for block in array(content)])
        case _:
            return (TextPart(text=as_text(content)),)


def arguments_text(value: Any) -> str:
    """The arguments of a call as the text of a JSON value; a text is taken as it is."""
    return "{}" if value is None else as_text(value)
