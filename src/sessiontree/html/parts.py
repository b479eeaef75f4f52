"""Messages and their parts as HTML. Every foreign character passes ``text`` or the Markdown renderer below."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from html import escape
from typing import Any

from sessiontree.harmless import for_terminal, one_line, without_controls
from sessiontree.model import (
    FilePart,
    ImagePart,
    Message,
    OpaquePart,
    Part,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from sessiontree.model.message import ResultContent

__all__ = ["fold", "markdown", "message_html", "preformatted", "text"]

_LONGEST_MARKDOWN = 200_000
_LONGEST_LINE = 20_000
_IMAGE_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
_ALIGNMENT = re.compile(r' style="text-align:\w+"')
_BASE64 = re.compile(r"[A-Za-z0-9+/=\s]*")


def text(raw: str) -> str:
    """Foreign text inside an element or a quoted attribute."""
    return escape(without_controls(for_terminal(raw)), quote=True)


def markdown(raw: str) -> str:
    """Markdown without raw HTML, images or links that run anything; a text too long for that as it stands."""
    clean = for_terminal(raw)
    if len(clean) > _LONGEST_MARKDOWN or any(len(line) > _LONGEST_LINE for line in clean.splitlines()):
        return f"<pre>{escape(clean)}</pre>"
    # The policy allows no style but the sheet's. In text a quote is escaped, so this only ever meets an attribute.
    return _ALIGNMENT.sub("", str(_renderer().render(clean)))


def preformatted(raw: str) -> str:
    """Text as it stands; the lines of a diff in their colours."""
    clean = text(raw)
    if "\n@@ " not in "\n" + raw[:5000]:
        return f"<pre>{clean}</pre>"
    return "<pre>" + "".join(map(_diff_line, clean.splitlines())) + "</pre>"


def fold(summary: str, body: str) -> str:
    return f"<details><summary>{summary}</summary>{body}</details>"


def message_html(message: Message) -> str:
    return "".join(_part(part) for part in message.parts)


def _part(part: Part) -> str:
    match part:
        case TextPart(text=said):
            return f'<div dir="auto">{markdown(said)}</div>'
        case ReasoningPart(text=thought):
            return fold("thinking", preformatted(thought)) if thought else ""
        case ToolCallPart(name=name, arguments=arguments):
            return fold(f"→ {text(name)} {text(one_line(arguments, 100))}", preformatted(arguments))
        case ToolResultPart(name=name, parts=parts, is_error=is_error):
            said = "".join(_result(inner) for inner in parts)
            return fold(f"{'✗' if is_error else '←'} {text(name)} {text(_first_line(parts))}", said)
        case ImagePart():
            return _image(part)
        case FilePart(name=name, mime=mime):
            return f"<p>[file {text(name)} {text(mime)}]</p>"
        case OpaquePart(provider=provider, block=block):
            return fold(f"a block of {text(provider)}", preformatted(str(block)))


def _result(part: ResultContent) -> str:
    return preformatted(part.text) if isinstance(part, TextPart) else _part(part)


def _first_line(parts: Iterable[ResultContent]) -> str:
    return one_line(" ".join(part.text[:400] for part in parts if isinstance(part, TextPart)), 100)


def _image(part: ImagePart) -> str:
    """Inline images only: an address elsewhere would tell its host who reads this."""
    if part.data and part.mime in _IMAGE_TYPES and _BASE64.fullmatch(part.data):
        return f'<img alt="image" src="data:{part.mime};base64,{part.data}">'
    return f"<p>[image {text(part.url or part.mime)}]</p>"


def _diff_line(line: str) -> str:
    is_heading = line.startswith(("+++", "---", "@@", "diff "))
    kind = "at" if is_heading else {"+": "add", "-": "del"}.get(line[:1])
    return f'<span class="{kind}">{line}</span>' if kind else f"{line}\n"


@cache
def _renderer() -> Any:
    from markdown_it import MarkdownIt  # noqa: PLC0415  slow to load

    renderer = MarkdownIt("commonmark", {"html": False})
    renderer.enable(["table", "strikethrough"])
    renderer.disable(["image", "html_inline", "html_block"])
    renderer.validateLink = lambda url: url.lower().startswith(("http://", "https://", "mailto:", "#"))  # type: ignore[method-assign]
    return renderer
