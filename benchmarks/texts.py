"""The messages: 1 KB of English words each, never the same twice, and the shape of a recorded agent's turn."""

from __future__ import annotations

import random

_SENTENCES = (
    "the agent reads a file and finds that the parser skips the last line so it writes a test which fails then changes "
    "one condition runs every test again and reports what it did with the paths of both files"
)

TURN = (("user", 400), ("assistant", 300), ("tool", 20_000), ("tool", 20_000), ("tool", 6_000), ("assistant", 1_200))
"""Roles and sizes of one turn of a coding agent: a question, three parallel calls, their results, the answer."""


def text(number: int, size: int = 1_000) -> str:
    """The text of a number; equal for equal numbers."""
    begin = f"message {number}: "
    return begin + _BODIES[number % len(_BODIES)][: size - len(begin)]


def texts(count: int, start: int = 0) -> list[str]:
    """Texts that follow each other."""
    return [text(number) for number in range(start, start + count)]


_source, _words = random.Random(7), _SENTENCES.split()
_BODIES = [" ".join(_source.choices(_words, k=5_000)) for _ in range(32)]
