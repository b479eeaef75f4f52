"""Did you mean: known words that are close to what was typed.

>>> similar("lst", ["ls", "list", "show"])
['list', 'ls']
>>> similar("shop.bd", ["shop.db", "notes.db"])
['shop.db']
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sessiontree.cli.screen.lines import DIM, Line

__all__ = ["did_you_mean", "similar"]


_CLOSE = 0.7
_MOST = 3


def similar(word: str, known: Iterable[str]) -> list[str]:
    """Return the known words that begin alike or differ in a letter or two, the closest first."""
    from difflib import SequenceMatcher  # noqa: PLC0415  slow to load, only needed after a mistake

    matcher = SequenceMatcher(autojunk=False)
    matcher.set_seq2(word.casefold())
    found: list[tuple[float, str]] = []
    for name in known:
        matcher.set_seq1(name.casefold())
        if matcher.real_quick_ratio() < _CLOSE and not name.startswith(word):
            continue
        score = 1.0 if name.startswith(word) and len(word) > 1 else matcher.ratio()
        if score >= _CLOSE:
            found.append((-score, name))
    return [name for _, name in sorted(found)[:_MOST]]


def did_you_mean(rows: Sequence[tuple[str, str]]) -> list[Line]:
    """Return the lines that offer known words, each with a few words about it."""
    return [
        Line(("  did you mean  " if number == 0 else " " * 16, DIM), name).add(f"  {about}" if about else "", DIM)
        for number, (name, about) in enumerate(rows)
    ]
