"""File names for sessions whose names a file system would not take."""

from __future__ import annotations

import hashlib
import re

__all__ = ["stem_of"]

_LONGEST_STEM = 200


def stem_of(key: str) -> str:
    """The file name of a key without its ending. Two keys may share one: only the file's content knows the real key.

    >>> stem_of("agent:main/1")
    'agent_main_1'
    """
    stem = re.sub(r"[:/\\\x00]", "_", key)
    if len(stem.encode()) <= _LONGEST_STEM:
        return stem
    return stem.encode()[:100].decode(errors="ignore") + "-" + hashlib.sha256(key.encode()).hexdigest()[:32]
