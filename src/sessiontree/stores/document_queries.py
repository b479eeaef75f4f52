"""The queries of documents: JSON values by scope and key, beside the threads."""

from __future__ import annotations

from collections.abc import Iterable

from sessiontree.model.documents import StoredDocument
from sessiontree.stores.queries import Query, Reads

__all__ = ["ListDocuments", "ListScopes", "ReadDocument"]


class ReadDocument(Query[StoredDocument | None], frozen=True, kw_only=True):
    """A document, None if it is missing or has expired."""

    scope: str
    key: str
    now_ns: int

    def run(self, reads: Reads) -> StoredDocument | None:
        return reads.document(self)


class ListDocuments(Query[list[StoredDocument]], frozen=True, kw_only=True):
    """The documents of a scope whose keys start with a prefix and come after ``after``, ordered by the bytes of the key."""

    scope: str
    prefix: str
    now_ns: int
    after: str | None = None
    limit: int | None = None

    def run(self, reads: Reads) -> list[StoredDocument]:
        return reads.documents(self)

    def select(self, found: Iterable[StoredDocument]) -> list[StoredDocument]:
        """Choose from all documents of the scope."""
        after = None if self.after is None else _bytes(self.after)
        chosen = [
            document
            for document in found
            if document.key.startswith(self.prefix)
            and not document.is_expired(self.now_ns)
            and (after is None or _bytes(document.key) > after)
        ]
        return sorted(chosen, key=lambda document: _bytes(document.key))[: self.limit]


class ListScopes(Query[list[str]], frozen=True, kw_only=True):
    """The scopes that have documents and come after ``after``, ordered by their bytes."""

    now_ns: int
    after: str | None = None
    limit: int | None = None

    def run(self, reads: Reads) -> list[str]:
        return reads.scopes(self)

    def select(self, found: Iterable[StoredDocument]) -> list[str]:
        """Choose from the documents of all scopes."""
        after = None if self.after is None else _bytes(self.after)
        scopes = {document.scope for document in found if not document.is_expired(self.now_ns)}
        chosen = [scope for scope in scopes if after is None or _bytes(scope) > after]
        return sorted(chosen, key=_bytes)[: self.limit]


def _bytes(key: str) -> bytes:
    return key.encode("utf-8", "surrogatepass")
