"""Diffs with the words that changed inside a line marked.

>>> from sessiontree.render.changes import Change, DiffLine
>>> diff_table(Change(path="a.py", lines=(DiffLine("-", "x = now()"), DiffLine("+", "x = now(UTC)"))), 9)
'<div class="dl del"><i>−</i><code>x = now()</code></div><div class="dl add"><i>+</i><code>x = now(<mark>UTC</mark>)</code></div>'
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence

from sessiontree.render.changes import Change, DiffLine
from sessiontree.render.html.blocks import text

__all__ = ["diff_table"]


_WORDS = re.compile(r"\w+|\s+|.")
_LONGEST_COMPARED = 400
_MOST_CHANGED = 0.6


def diff_table(change: Change, limit: int) -> str:
    """Return the first lines of a change; a pair of a removed and an added line shows the words that differ."""
    return "".join(_rows(change.lines[:limit]))


def _rows(lines: Sequence[DiffLine]) -> Iterator[str]:
    at = 0
    while at < len(lines):
        removed = _run(lines, at, "-")
        added = _run(lines, at + len(removed), "+")
        if not removed and not added:
            yield _row(lines[at].sign, text(lines[at].text))
            at += 1
            continue
        marked = [_words(old.text, new.text) for old, new in zip(removed, added, strict=False)]
        for number, line in enumerate(removed):
            yield _row("-", marked[number][0] if number < len(marked) else text(line.text))
        for number, line in enumerate(added):
            yield _row("+", marked[number][1] if number < len(marked) else text(line.text))
        at += len(removed) + len(added)


def _run(lines: Sequence[DiffLine], start: int, sign: str) -> list[DiffLine]:
    end = start
    while end < len(lines) and lines[end].sign == sign:
        end += 1
    return list(lines[start:end])


def _row(sign: str, shown: str) -> str:
    kind = {"+": "add", "-": "del"}.get(sign, "same")
    return f'<div class="dl {kind}"><i>{"−" if sign == "-" else sign}</i><code>{shown}</code></div>'


def _words(old: str, new: str) -> tuple[str, str]:
    if max(len(old), len(new)) > _LONGEST_COMPARED:
        return text(old), text(new)
    before, after = _WORDS.findall(old), _WORDS.findall(new)
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    if matcher.ratio() < 1 - _MOST_CHANGED:
        return text(old), text(new)
    left, right = [], []
    for kind, at, end, there, there_end in matcher.get_opcodes():
        gone, come = text("".join(before[at:end])), text("".join(after[there:there_end]))
        left.append(gone if kind == "equal" or not gone else f"<mark>{gone}</mark>")
        right.append(come if kind == "equal" or not come else f"<mark>{come}</mark>")
    return "".join(left), "".join(right)
