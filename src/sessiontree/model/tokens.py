"""Token counting: a counter is any callable from text to a number; the default is a fast estimate.

>>> estimate_text("hello world")
4
>>> estimate_text("你好")
2
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import Literal

from sessiontree.errors import MissingExtraError
from sessiontree.model.message import (
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

__all__ = [
    "Encoding",
    "TokenCounter",
    "estimate_message",
    "estimate_messages",
    "estimate_prompt",
    "estimate_text",
    "exact_counter",
]


TokenCounter = Callable[[str], int]
Encoding = Literal["o200k_base", "cl100k_base"]

MESSAGE_OVERHEAD = 8
IMAGE_TOKENS = 765
_BYTES_PER_FILE_TOKEN = 3

BLANKS = (
    "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)
"""Unicode white space. ``str.strip()`` without it would also remove U+001C to U+001F, which are not white space."""


def estimate_text(text: str) -> int:
    """Estimate the tokens of a text: a third of its ASCII characters, plus one for each other character.

    White space at the ends does not count.
    """
    text = text.strip(BLANKS)
    if text.isascii():
        return -(-len(text) // 3)
    ascii_count = len(text.encode("ascii", "ignore"))
    return -(-ascii_count // 3) + len(text) - ascii_count


def estimate_message(message: Message, count: TokenCounter = estimate_text) -> int:
    """Return the tokens of a message. Reasoning does not count: providers drop that of earlier turns.

    >>> from sessiontree.model.builders import user
    >>> estimate_message(user("hello world").message)
    12
    """
    total = MESSAGE_OVERHEAD + (count(message.kind) if message.kind else 0)
    for part in message.parts:
        total += count(part.text) if type(part) is TextPart else _part_tokens(part, count)
    return total


def estimate_messages(messages: Iterable[Message], count: TokenCounter = estimate_text) -> list[int]:
    """Return the tokens of each message."""
    return [estimate_message(message, count) for message in messages]


def estimate_prompt(text: str, count: TokenCounter = estimate_text) -> int:
    """Return the tokens of a system prompt; an empty one is not sent and costs nothing."""
    return MESSAGE_OVERHEAD + count(text) if text.strip(BLANKS) else 0


def exact_counter(encoding: Encoding = "o200k_base") -> TokenCounter:
    """Return a counter that agrees with OpenAI's tokenizers and works offline. Needs the extra ``tokens``.

    >>> exact_counter("o200k_base")("hello world")
    2
    """
    return _exact_counter(encoding)


@cache
def _exact_counter(encoding: Encoding) -> TokenCounter:
    try:
        from splintr import Tokenizer  # noqa: PLC0415 - an extra, and slow to load
    except ImportError as error:
        raise MissingExtraError(f"an exact counter for {encoding}", "tokens") from error
    encode = Tokenizer.from_pretrained(encoding).encode_ordinary
    return lambda text: len(encode(text))


def _part_tokens(part: Part, count: TokenCounter) -> int:
    match part:
        case TextPart():
            return count(part.text)
        case ToolCallPart():
            return count(part.id) + count(part.name) + count(part.arguments)
        case ToolResultPart():
            return count(part.call_id) + count(part.name) + sum([_part_tokens(inner, count) for inner in part.parts])
        case ReasoningPart():
            return 0
        case ImagePart():
            return IMAGE_TOKENS
        case FilePart():
            return count(part.name) + len(part.data) // _BYTES_PER_FILE_TOKEN
        case OpaquePart():
            return count(str(part.block))
