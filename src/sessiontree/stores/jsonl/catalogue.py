"""All trees at a glance, for lists and statistics."""

from __future__ import annotations

from sessiontree.model import Thread
from sessiontree.stores.jsonl.index import Index, Stamp, Summary
from sessiontree.stores.jsonl.layout import name_of
from sessiontree.stores.jsonl.shelf import Shelf

__all__ = ["Catalogue"]


class Catalogue:
    def __init__(self, shelf: Shelf, index: Index) -> None:
        self._shelf = shelf
        self._index = index
        self._summaries: dict[str, Summary] | None = None
        self._unsaved: set[str] = set()
        self._gone: set[str] = set()

    def refresh(self) -> dict[str, Summary]:
        """Summaries of all tree files; only those that changed since the last look are read."""
        before = self._index.load() if self._summaries is None else self._summaries
        now: dict[str, Summary] = {}
        for name, found in self._shelf.names():
            stamp = Stamp.of(found)
            known = before.get(name)
            summary = known if known is not None and known.stamp == stamp else self._summarised(name, stamp)
            if summary is None:
                continue
            now[name] = summary
            if summary is not known:
                self._unsaved.add(name)
        self._gone |= before.keys() - now.keys()
        self._summaries = now
        return now

    def threads(self) -> list[Thread]:
        """Every thread once. A tree file under a wrong name shows its threads unless the right file has them."""
        summaries = self.refresh()
        by_name = sorted(summaries, key=lambda name: name == name_of(summaries[name].tree_id or ""))
        found = {thread.id: thread for name in by_name for thread in summaries[name].threads}
        return list(found.values())

    @property
    def has_unsaved(self) -> bool:
        return bool(self._unsaved or self._gone)

    def save(self) -> None:
        """Write the cache. With the gate held, so that no delete runs: what it removed must not come back."""
        current = {name: Stamp.of(found) for name, found in self._shelf.names()} if self._unsaved else {}
        summaries = self._summaries or {}
        changed = {name: summaries[name] for name in self._unsaved if name in summaries}
        fresh = {name: summary for name, summary in changed.items() if current.get(name) == summary.stamp}
        self._index.save(fresh, self._gone)
        self._unsaved.clear()
        self._gone.clear()

    def forget(self, name: str) -> None:
        self._index.forget(name)
        if self._summaries is not None:
            self._summaries.pop(name, None)
        self._unsaved.discard(name)

    def close(self) -> None:
        self._index.close()

    def _summarised(self, name: str, stamp: Stamp) -> Summary | None:
        tree = self._shelf.peek(name)
        if tree is None:
            return None
        try:
            return Summary.of(tree, stamp)
        finally:
            self._shelf.release(tree)
