"""A unified diff as rows of two columns: the old line on the left, the new one on the right.

>>> rows = split_rows("--- a/x\\n+++ b/x\\n@@ -1,2 +1,2 @@\\n same\\n-old\\n+new\\n")
>>> [(row.old_number, row.old, row.new_number, row.new) for row in rows]
[(1, 'same', 1, 'same'), (2, 'old', 2, 'new')]
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from sessiontree.model import Record

__all__ = ["SplitRow", "split_rows"]


_HUNK = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")


class SplitRow(Record, frozen=True, kw_only=True):
    """A line of both files, or of one of them; None where a file has no such line. A gap stands for lines left out."""

    old_number: int = 0
    old: str | None = None
    new_number: int = 0
    new: str | None = None
    is_gap: bool = False

    @property
    def is_changed(self) -> bool:
        """Whether the two sides differ."""
        return self.old != self.new


def split_rows(diff: str) -> list[SplitRow]:
    """Return the rows of a unified diff of one file."""
    return list(_rows(diff.splitlines()))


def _rows(lines: Sequence[str]) -> Iterator[SplitRow]:
    left = right = 0
    removed: list[str] = []
    added: list[str] = []

    def flush() -> Iterator[SplitRow]:
        nonlocal left, right
        for at in range(max(len(removed), len(added))):
            old = removed[at] if at < len(removed) else None
            new = added[at] if at < len(added) else None
            yield SplitRow(old_number=left, old=old, new_number=right, new=new)
            left, right = left + (old is not None), right + (new is not None)
        removed.clear()
        added.clear()

    for line in lines:
        hunk = _HUNK.match(line)
        if hunk:
            yield from flush()
            if left:
                yield SplitRow(is_gap=True)
            left, right = int(hunk[1]), int(hunk[2])
        elif not left and not right:
            continue
        elif line.startswith("-"):
            removed.append(line[1:])
        elif line.startswith("+"):
            added.append(line[1:])
        elif line.startswith(" "):
            yield from flush()
            yield SplitRow(old_number=left, old=line[1:], new_number=right, new=line[1:])
            left, right = left + 1, right + 1
    yield from flush()
