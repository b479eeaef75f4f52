# Generated from imports_async.py by tools/async_to_sync.py; do not edit.
"""Verbs for imports: threads, histories and blobs of another store."""

from __future__ import annotations

from collections.abc import Iterable

from sessiontree.journal._base import Verbs
from sessiontree.journal.operations import documents, imports
from sessiontree.journal.thread_ids import ThreadLike, id_of
from sessiontree.model import Move, Thread
from sessiontree.model.blobs import Blob
from sessiontree.model.documents import Document
from sessiontree.stores.commands import PositionedDraft

__all__ = ["ImportVerbs"]


class ImportVerbs(Verbs):
    """The verbs for imports."""

    def import_thread(self, thread: Thread, *, base: str | None = None) -> Thread:
        """Create a thread as it is in another store, with its id, times, version and metadata, but without entries.

        ``base`` is the entry that it was forked from. A thread that is already there with the same metadata and base
        is left alone; a different one raises ThreadExistsError.
        """
        return self.run(imports.import_thread(thread, base))

    def import_history(self, thread_id: ThreadLike, steps: Iterable[PositionedDraft | Move]) -> Thread:
        """Add entries and leaf moves of another store to a thread, in the order in which they happened, in one commit.

        Make the drafts with ``make_draft``. Steps that are already there are skipped, so an interrupted import can be
        repeated. An entry id that is taken by different content raises DuplicateEntryError, and nothing is written.
        """
        return self.run(imports.import_history(id_of(thread_id), steps))

    def import_document(self, document: Document) -> Document:
        """Store a document as it is in another store, with its version and times.

        One that is already there with the same content is left alone; a different one raises StaleDocumentError.
        """
        return self.run(documents.import_document(self.runtime, document))

    def put_blobs(self, blobs: Iterable[Blob]) -> int:
        """Store the blobs that are missing, in one commit, and return how many those were.

        Blobs that no checkpoint refers to are removed by the next delete: put them just before the entry that needs
        them, and name them in its ``blobs``.
        """
        return self.run(imports.put_blobs(blobs))

    def missing_blobs(self, hashes: Iterable[str]) -> frozenset[str]:
        """Return those of the hashes for which the store has no blob."""
        return self.run(imports.missing_blobs(hashes))

    def read_blobs(self, hashes: Iterable[str]) -> list[Blob]:
        """Return the blobs with these hashes, in the same order. Raises BlobNotFoundError if one is missing."""
        return self.run(imports.read_blobs(hashes))
