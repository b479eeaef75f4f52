"""The arguments of tool calls: decoding them, and the file paths that they name.

>>> list(paths_in(decode_arguments('{"file_path": "a.py", "files": ["b.py"], "text": "c"}')))
['a.py', 'b.py']
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

__all__ = ["PATH_KEYS", "decode_arguments", "paths_in"]


PATH_KEYS = (
    "path", "paths", "file", "files", "file_path", "filepath", "filename", "notebook_path", "target_file", "source",
    "destination", "old_path", "new_path",
)  # fmt: skip
"""The arguments that name a file or a list of files."""


def decode_arguments(arguments: str) -> Any:
    """Return the JSON value of a call's arguments; None if they are not JSON."""
    try:
        return msgspec.json.decode(arguments)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return None


def paths_in(arguments: Any) -> Iterator[str]:
    """Yield the paths in decoded arguments: the texts, and lists of texts, under PATH_KEYS."""
    if not isinstance(arguments, dict):
        return
    for key, value in arguments.items():
        if key in PATH_KEYS:
            yield from (text for text in (value if isinstance(value, list) else [value]) if isinstance(text, str))
