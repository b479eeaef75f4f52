"""Read the beginning of a JSON document that was cut off, such as by a full disk or a crash.

>>> beginning_of(b'[{"role": "user", "content": "hello"}, {"role": "assistant", "content": "I am fi')
([{'role': 'user', 'content': 'hello'}, {'role': 'assistant', 'content': 'I am fi'}], 80)
>>> beginning_of(b"no JSON") is None
True
"""

from __future__ import annotations

import re
from typing import Any

from sessiontree.transfer.formats import _go

__all__ = ["beginning_of"]


_TOKEN = re.compile(
    r'\s*(?:(?P<text>"[^"\\]*(?:\\.[^"\\]*)*")|(?P<mark>[{}\[\],:])|(?P<plain>[-+.\w]+)(?=[\s,\]}])|(?P<half>"[^"\\]*(?:\\.[^"\\]*)*\\?\Z))',
    re.DOTALL,
)
_SOUND = re.compile(r'"[^"\\]*(?:\\(?:[^u]|u[0-9a-fA-F]{4})[^"\\]*)*', re.DOTALL)
_ENDS = {"{": "}", "[": "]"}


def beginning_of(body: bytes) -> tuple[Any, int] | None:
    """The value up to where it ends or breaks, and how many bytes that are; ``None`` if nothing can be read.

    A text that was cut is kept as far as it goes; a key without a value is not.
    """
    text = _go.decode_text(body)
    scan = _Scan()
    token = _TOKEN.match(text)
    while token and scan.read(token):
        token = _TOKEN.match(text, token.end())
    if not scan.open:
        return None
    whole = text[: scan.end] + scan.quote + "".join(_ENDS[one] for one in reversed(scan.open))
    try:
        return _go.decode(whole.encode("utf-8", "surrogatepass")), len(
            text[: scan.end].encode("utf-8", "surrogatepass")
        )
    except _go.JsonError:
        return None


class _Scan:
    """The containers that are open, and where the last complete value ends."""

    def __init__(self) -> None:
        self.open: list[str] = []
        self.end = 0
        self.quote = ""
        self._is_key = False

    def read(self, token: re.Match[str]) -> bool:
        """Whether the document may go on after this token."""
        match token["mark"]:
            case "{" | "[" as mark:
                self.open.append(mark)
                self._is_key = mark == "{"
            case "}" | "]" as mark:
                if not self.open or _ENDS[self.open[-1]] != mark:
                    return False
                self.open.pop()
            case "," | ":" as mark:
                self._is_key = mark == "," and self.open[-1:] == ["{"]
                return True
            case _:
                if self._is_key:
                    return True
        half = token["half"]
        self.end = token.end()
        if half is not None:
            self.quote = '"'
            sound = _SOUND.match(half)
            self.end = token.start("half") + (sound.end() if sound else 0)
        return bool(self.open) and half is None
