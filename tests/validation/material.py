"""What random histories are made of: texts, names, ids, arguments and media, ordinary ones and odd ones."""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Sequence
from typing import Any, TypeVar

import sessiontree as st

__all__ = ["PAYLOAD", "Draw"]

T = TypeVar("T")

PAYLOAD = base64.b64encode(b"PAYLOAD!!" * 40).decode()
"""The content of every image and file: a request has it in a media field or not at all."""

_TEXTS = (
    "Please look at the file.",
    "Done: the test passes now.",
    "line one\nline two\n\n\tindented",
    "Привет, мир",
    "你好世界 🌍👩‍👩‍👧‍👦",
    "مرحبا \u202eabc\u202c",
    "e\u0301\u0302\u0303 zalgo",
    "nul \x00 bell \x07 escape \x1b[31m",
    "separators \u2028 and \u2029",
    "</system><|im_end|><|endoftext|>",
    '{"json": [1, 2.5, null]}',
    "x" * 3000,
    "`code` **bold** $math$ <b>tag</b>",
    "\ufeffbom \uffff\U0010ffff",
)
_BLANKS = ("", " ", "\n\n", "\t", "\u00a0", "\u200b")
_TOOLS = ("read_file", "bash", "search-web", "Edit", "get_weather_2")
_ODD_TOOLS = ("mcp.server/read file", "7zip", "", "lire_été", "a" * 150, "functions.bash:0", "tool name", "-dash")
_ODD_ARGUMENTS = (
    '{"a": "\\ud800"}',
    '{"n": 1e400}',
    '{"n": 123456789012345678901234567890}',
    '{"a": 1, "a": 2}',
    "",
    "{",
    '{"path": "a.tx',
    "null",
    "[]",
    '"text"',
    "12",
    "not json",
    '{"a": NaN}',
    " ",
    '{"a": 1} x',
)
_IMAGE_TYPES = ("image/png", "image/jpeg", "image/gif", "image/webp")
_ODD_IMAGE_TYPES = (
    "image/svg+xml",
    "image/bmp",
    "image/tiff",
    "image/heic",
    "",
    "image/jpg",
    "application/octet-stream",
)
_FILE_TYPES = ("application/pdf", "text/plain", "text/csv", "application/json", "application/zip", "audio/mpeg", "")


class Draw:
    """A seeded source of material; ``serial`` numbers what must differ, ``artifacts`` are those in the journal."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.artifacts: tuple[st.ArtifactRef, ...] = ()
        self._count = 0

    def serial(self) -> int:
        """Return the next number."""
        self._count += 1
        return self._count

    def chance(self, share: float) -> bool:
        """Return true with a probability."""
        return self.random.random() < share

    def pick(self, items: Sequence[T]) -> T:
        """Return one of the items."""
        return self.random.choice(items)

    def many(self, least: int, most: int) -> range:
        """Return a range of a random length."""
        return range(self.random.randint(least, most))

    def text(self) -> str:
        """Return a text with content."""
        return self.pick(_TEXTS)

    def any_text(self) -> str:
        """Return a text that may be blank."""
        return self.pick(_BLANKS) if self.chance(0.12) else self.text()

    def tool(self) -> str:
        """Return a tool name that every provider accepts."""
        return self.pick(_TOOLS)

    def any_tool(self) -> str:
        """Return a tool name, now and then one that some provider refuses."""
        return self.pick(_ODD_TOOLS) if self.chance(0.2) else self.tool()

    def call_id(self) -> str:
        """Return a call id as one of many servers writes it; some are used again, some are too long."""
        number = self.serial()
        return self.pick(
            (
                f"call_{number:024d}",
                f"toolu_{number:024d}",
                f"functions.bash:{number}",
                f"call_{number % 3}",
                "x" * 90 + str(number),
                f"id with blanks {number}",
                f"call_{number}|fc_{number}",
                str(number),
            )
        )

    def object(self) -> dict[str, Any]:
        """Return call arguments as an object."""
        return self.pick(({}, {"path": "a.txt"}, {"q": self.text(), "n": 3, "deep": {"list": [1, None, {"x": 1.5}]}}))

    def arguments(self) -> str:
        """Return call arguments as a model writes them, now and then broken."""
        return self.pick(_ODD_ARGUMENTS) if self.chance(0.25) else json.dumps(self.object(), ensure_ascii=False)

    def image_type(self) -> str:
        """Return a media type of an image, now and then an odd one."""
        return self.pick(_ODD_IMAGE_TYPES if self.chance(0.35) else _IMAGE_TYPES)

    def file_type(self) -> str:
        """Return a media type of a file, or none."""
        return self.pick(_FILE_TYPES)

    def address(self) -> str:
        """Return an address of a picture or a file, now and then one that providers cannot load."""
        return self.pick(
            (
                "https://example.com/a.png",
                "https://example.com/a.pdf?x=1&y=2",
                "http://example.com/a",
                "gs://bucket/object",
                "file:///tmp/a.png",
                "s3://bucket/a",
                f"data:image/png;base64,{PAYLOAD}",
                f"data:image/svg+xml;base64,{PAYLOAD}",
                f"data:application/pdf;base64,{PAYLOAD}",
                "data:text/plain,hello",
                "a.png",
                "https://generativelanguage.googleapis.com/v1beta/files/abc",
            )
        )
