"""Where the lines of a Claude Code file belong in the tree.

Each line names its parent, but the names alone give far more branches than anybody made: lines that only the screen needs
are links of the chain, and calls made in parallel give one response several children. So within a turn the lines follow
one another as they stand in the file, and a branch begins where a line goes back to before the turn.
"""

from __future__ import annotations

__all__ = ["Chain"]


class Chain:
    """Entries by the ids of the lines that they stand for, and the turn that is being read."""

    def __init__(self) -> None:
        self.tip: str | None = None
        self._entry: dict[str, str] = {}
        self._turn: set[str] = set()

    def knows(self, line_id: str) -> bool:
        """Whether a line of that id was read."""
        return line_id in self._entry

    def entry(self, line_id: str) -> str:
        """The entry that stands for a line."""
        return self._entry[line_id]

    def under(self, line_id: str) -> str | None:
        """The entry that a child of the line goes under: the last one, unless the line is older than this turn."""
        found = self._entry[line_id]
        if found in self._turn:
            return self.tip
        self._turn = set()
        return found

    def add(self, entry: str, *line_ids: str, starts_turn: bool = False) -> None:
        """Register an entry that was put under what ``under`` returned, or under the tip."""
        if starts_turn:
            self._turn = set()
        self._turn.add(entry)
        self._entry.update(dict.fromkeys(line_ids, entry))
        self.tip = entry
