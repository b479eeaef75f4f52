"""Where the lines of a Claude Code file belong in the tree.

Each line names its parent, but the names do not make the tree that the conversation was: lines that only the screen
needs are links of the chain, and calls made in parallel give one response several children, the results and its own
next line. Here such lines stand one behind the other, so that a branch is a branch.
"""

from __future__ import annotations

__all__ = ["Chain"]


class Chain:
    """Entries by the ids of the lines that they stand for, and what stands in line behind each of them."""

    def __init__(self) -> None:
        self.tip: str | None = None
        self._entry: dict[str, str | None] = {}
        self._behind: dict[str | None, str] = {}
        self._call: dict[str, str] = {}
        self._answered: dict[str, str | None] = {}
        self._result_of: dict[str | None, str] = {}

    def knows(self, line_id: str) -> bool:
        """Whether a line of that id was read."""
        return line_id in self._entry

    def under(self, line_id: str) -> str | None:
        """The entry that a child of the line goes under."""
        return self.end(self._entry[line_id])

    def end(self, entry: str | None) -> str | None:
        """The last of what stands in line behind an entry."""
        found = entry
        while found in self._behind:
            found = self._behind[found]
        if entry is not None and found != entry:
            self._behind[entry] = found or ""
        return found

    def add(self, entry: str, *line_ids: str) -> None:
        """Register a message that stands for the lines."""
        for line_id in line_ids:
            self._entry[line_id] = entry
        self.tip = entry

    def add_aside(self, entry: str, line_id: str, declared: str | None) -> None:
        """Register what stands at the tip and is no message; its children go under what it was declared to follow."""
        if self.tip is not None:
            self._behind[self.tip] = entry
        stands_for = self._entry.get(declared) if declared in self._entry else self.tip
        if line_id:
            self._entry[line_id] = entry if stands_for == self.tip else stands_for
        self.tip = entry

    def add_calls(self, entry: str, call_ids: list[str]) -> None:
        """Register the calls of a message."""
        for call_id in call_ids:
            self._call[call_id] = entry

    def place_results(self, call_ids: list[str], parent: str | None) -> str | None:
        """The entry that the results go under: behind other results of the same response.

        A second result for the same call is a branch beside the first.
        """
        for call_id in call_ids:
            if call_id in self._answered:
                return self._answered[call_id]
        self._answered.update(dict.fromkeys(call_ids, parent))
        return parent

    def add_results(self, entry: str, call_ids: list[str], parent: str | None) -> None:
        """Register results: what follows the response follows them too."""
        asked = next((self._call[call_id] for call_id in call_ids if call_id in self._call), None)
        if asked is None:
            return
        self._result_of[entry] = asked
        if parent == asked or self._result_of.get(parent) == asked or self.end(asked) == parent:
            self._behind[parent] = entry
