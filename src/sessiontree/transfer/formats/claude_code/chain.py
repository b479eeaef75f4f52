"""Where the lines of a Claude Code file belong in the tree.

Each line names its parent, but the names alone give far more branches than anybody made: lines that only the screen needs
are links of the chain, and calls made in parallel give one response several children. So within a turn the lines follow
one another as they stand in the file, and a branch begins where a line goes back to before the turn.
"""

from __future__ import annotations

from sessiontree.transfer.formats._resume import LooksBackError
from sessiontree.transfer.formats._wire import Json

__all__ = ["Chain"]


class Chain:
    """Entries by the ids of the lines that they stand for, and the turn that is being read.

    Where reading goes on in the middle of a file, only the lines of the turn there are known.
    """

    def __init__(self, state: Json | None = None) -> None:
        self.tip: str | None = state["tip"] if state else None
        self._turn_lines: dict[str, str] = dict(state["turn"]) if state else {}
        self._entry: dict[str, str] = dict(self._turn_lines)
        self._turn: set[str] = set(self._turn_lines.values())
        self._has_all_lines = state is None

    @property
    def state(self) -> Json:
        """What is needed to go on from here."""
        return {"tip": self.tip, "turn": dict(self._turn_lines)}

    @property
    def turn_size(self) -> int:
        """How many lines of the turn were read."""
        return len(self._turn_lines)

    def knows(self, line_id: str) -> bool:
        """Whether a line of that id was read; LooksBackError if it may have been, before the place where reading went on."""
        if line_id not in self._entry and not self._has_all_lines:
            raise LooksBackError(line_id)
        return line_id in self._entry

    def has_read(self, line_id: str) -> bool:
        """Whether a line of that id was read since the place where reading went on."""
        return line_id in self._entry

    def entry_or_line(self, line_id: str) -> str:
        """The entry that stands for a line; the line's id if it was not read, which is that of a prompt's entry, too."""
        return self._entry.get(line_id, line_id)

    def entry(self, line_id: str) -> str:
        """The entry that stands for a line."""
        return self._entry[line_id]

    def under(self, line_id: str) -> str | None:
        """The entry that a child of the line goes under: the last one, unless the line is older than this turn."""
        found = self._entry[line_id]
        if found in self._turn:
            return self.tip
        self._begin_turn()
        return found

    def add(self, entry: str, *line_ids: str, starts_turn: bool = False) -> None:
        """Register an entry that was put under what ``under`` returned, or under the tip."""
        if starts_turn:
            self._begin_turn()
        self._turn.add(entry)
        for line_id in line_ids:
            self._entry[line_id] = self._turn_lines[line_id] = entry
        self.tip = entry

    def _begin_turn(self) -> None:
        self._turn, self._turn_lines = set(), {}
