"""Token counting: a counter is any callable from text to a number; the default is a fast estimate.

>>> estimate_text("hello world")
2
>>> estimate_text("你好")
2
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any, Literal

import msgspec

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
    "Tools",
    "estimate_message",
    "estimate_messages",
    "estimate_prompt",
    "estimate_text",
    "estimate_tools",
    "exact_counter",
]


TokenCounter = Callable[[str], int]
Encoding = Literal["o200k_base", "cl100k_base"]
Tools = Sequence[Any]
"""The definitions of the tools that are sent with a request, in the form that the provider takes."""

MESSAGE_OVERHEAD = 8
IMAGE_TOKENS = 1_100
"""A screenshot of 1920 x 1080 pixels: 1,105 tokens at OpenAI, 1,120 at Google, up to 1,600 at Anthropic."""
_BYTES_PER_FILE_TOKEN = 3
_CHARACTERS_PER_HIDDEN_TOKEN = 6

BLANKS = (
    "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)
"""Unicode white space. ``str.strip()`` without it would also remove U+001C to U+001F, which are not white space."""


_CLASSES = {
    "l": 0b0000_0001,  # small letters, and letters of Western Europe
    "U": 0b0000_0111,  # capitals
    "0": 0b0000_1101,  # digits
    ".": 0b0111_1111,  # punctuation
    " ": 0b1111_1010,  # spaces
    "n": 0b0000_0000,  # other white space
    "c": 0b0000_0010,  # Cyrillic, Greek, Arabic and their neighbours
    "i": 0b0000_0100,  # Indic scripts, Thai
    "s": 0b0000_1000,  # symbols
    "h": 0b1110_1111,  # Chinese, Japanese
    "k": 0b0000_1110,  # Korean
    "e": 0b1111_1111,  # emoji
}
"""Classes of characters, each a byte with as many bits set as a character has eighths of a token: one count of bits adds
up a whole text."""

PAIRS = {"  ": -1192, "lU": 726, "0l": 2250, "0U": 1837, "0.": 845}
"""What pairs of classes add, in thousandths of a token. Two spaces belong to an indentation; capitals after small letters
and letters after digits are frequent in base64 and in hexadecimal digits."""

RUNS = {" " * 32: -4_600, "n" * 8: 625}
"""What long runs of white space add: a token holds up to 128 spaces, or 16 tabs or ends of lines."""

WIDE = {"c": 86, "i": 172, "s": 311, "h": -23, "k": 27, "e": 1260}
"""What the classes outside ASCII add to their eighths, in thousandths of a token."""

_SAMPLED_CHARACTERS = 1_024
_SLICES = 16
_MARGIN = 16
"""So many blanks at the ends of a text, and more, do count."""


def _class_of(byte: int) -> str:
    """Return the class of a character by its first byte in UTF-8."""
    character = chr(byte)
    if byte < 0x80:
        if character.isalpha():
            return "l" if character.islower() else "U"
        return "0" if character.isdigit() else " " if character == " " else "n" if character.isspace() else "."
    for end, name in ((0xC4, "l"), (0xE0, "c"), (0xE2, "i"), (0xE3, "s"), (0xEA, "h"), (0xEE, "k"), (0xF0, "h")):
        if byte < end:
            return name
    return "e"


def pattern_of(names: str) -> bytes:
    """Return classes as they stand in a text after ``classes_of``."""
    return bytes(_CLASSES[name] for name in names)


_TABLE = pattern_of("".join(map(_class_of, range(256))))
_CONTINUATION = bytes(range(0x80, 0xC0))
_PAIRS = [(pattern_of(names), weight) for names, weight in {**PAIRS, **RUNS}.items()]
_WIDE = [(pattern_of(names), weight) for names, weight in WIDE.items()]


def classes_of(text: str) -> bytes:
    """Return a text with each character replaced by its class."""
    return text.encode("utf-8", "replace").translate(_TABLE, _CONTINUATION)


def estimate_text(text: str) -> int:
    """Estimate the tokens of a text by its classes of characters; of a long text, by samples from all of it.

    A few blanks at the ends do not count. Of prose, code, JSON, tables, encoded data and the large scripts, the
    estimate is between 0.8 and 1.5 of the tokens in the encoding o200k; ``benchmarks/quality/fit_estimate.py`` fitted it.
    """
    inner = text.strip(BLANKS)
    if len(text) - len(inner) < _MARGIN:
        text = inner
    size = len(text)
    if size > _SAMPLED_CHARACTERS:
        return _estimate(_sample(text)) * size // (_SAMPLED_CHARACTERS * 1_000)
    return max(1, -(-_estimate(text) // 1_000)) if text else 0


def _estimate(text: str) -> int:
    """Return thousandths of a token."""
    classes = classes_of(text)
    total = int.from_bytes(classes, "little").bit_count() * 125
    for pattern, weight in _PAIRS:
        # Looking for a byte costs next to nothing beside counting pairs, and many texts have no digits or capitals.
        if pattern[0] in classes and pattern[-1] in classes:
            total += classes.count(pattern) * weight
    if not text.isascii():
        for pattern, weight in _WIDE:
            total += classes.count(pattern) * weight
    return total


def _sample(text: str) -> str:
    length = _SAMPLED_CHARACTERS // _SLICES
    last = len(text) - length
    starts = [number * last // (_SLICES - 1) for number in range(_SLICES)]
    return "".join([text[start : start + length] for start in starts])


def estimate_message(message: Message, count: TokenCounter = estimate_text) -> int:
    """Return the tokens of a message, reasoning included.

    >>> from sessiontree.model.builders import user
    >>> estimate_message(user("hello world").message)
    10
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


def estimate_tools(tools: Tools, count: TokenCounter = estimate_text) -> int:
    """Return the tokens of tool definitions, counted as JSON.

    >>> estimate_tools([{"name": "ls", "description": "List a folder.", "input_schema": {"type": "object"}}])
    31
    """
    return sum(count(msgspec.json.encode(tool, enc_hook=str).decode()) for tool in tools)


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
            # A signature or an encrypted text holds the whole thought, of which the text may be a summary.
            hidden = (len(part.signature) + len(part.encrypted)) // _CHARACTERS_PER_HIDDEN_TOKEN
            return max(count(part.text), hidden)
        case ImagePart():
            return IMAGE_TOKENS
        case FilePart():
            return count(part.name) + len(part.data) // _BYTES_PER_FILE_TOKEN
        case OpaquePart():
            return count(str(part.block))
