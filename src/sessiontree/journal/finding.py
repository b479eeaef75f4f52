"""Verbs that find conversations and carry them away."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sessiontree.journal.base import Verbs
from sessiontree.later import Later
from sessiontree.operations import exports, search
from sessiontree.operations.exports import ExportFormat
from sessiontree.progress import Progress
from sessiontree.search import SearchOrder, SearchPage

if TYPE_CHECKING:
    from sessiontree.exports import native
else:
    native = Later("sessiontree.exports.native")

__all__ = ["FindingVerbs"]


class FindingVerbs(Verbs):
    def search(
        self,
        text: str,
        *,
        order: SearchOrder = "best",
        limit: int = 20,
        cursor: str | None = None,
        progress: Progress | None = None,
    ) -> SearchPage:
        """Entries by what they say: words, "phrases", prefix*, -without, and filters such as role:user or after:7d.

        Filters are role, tool, model, file, label, thread, branch, before and after. A search sees everything that
        was committed before it began; ``progress`` hears how far the index has caught up.
        """
        operation = search.search(self._sources, text, order=order, limit=limit, cursor=cursor, progress=progress)
        return self._run(operation)

    def thread_ids(self, part: str, *, limit: int = 20) -> list[str]:
        """Ids of threads that begin or end with ``part``; only ``part`` itself where it is an id."""
        return self._run(search.thread_ids(part, limit))

    def entry_ids(self, thread_id: str, part: str, *, limit: int = 20) -> list[str]:
        """Ids of entries that the thread sees and that begin or end with ``part``."""
        return self._run(search.entry_ids(thread_id, part, limit))

    def export(
        self,
        thread_id: str,
        *,
        format: ExportFormat = "markdown",
        scope: native.Scope | None = None,
        progress: Progress | None = None,
    ) -> str:
        """A thread as text: ``markdown`` of its path, or ``json`` or ``jsonl`` that ``import_sessions`` reads back.

        ``scope`` is ``path``, ``thread`` (every branch, the default) or ``tree`` (with all forks). ``progress`` hears
        how many entries were written, and how many there are.
        """
        return self._run(exports.export(thread_id, format, scope, progress))
