"""``journal.documents``: small JSON documents for the state of applications and users."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sessiontree.journal.operations import documents
from sessiontree.model.documents import Document

if TYPE_CHECKING:
    from sessiontree.journal._base_async import AsyncVerbs

__all__ = ["AsyncDocuments"]


class AsyncDocuments:
    """JSON values under a scope and a key, each with a version."""

    def __init__(self, journal: AsyncVerbs) -> None:
        self._journal = journal

    async def put(
        self, scope: str, key: str, value: Any, *, expect_version: int | None = None, ttl_seconds: float | None = None
    ) -> Document:
        """Store a value; it is durable when this returns.

        With ``expect_version``, raises StaleDocumentError if the version is another one; 0 is a missing document. After
        ``ttl_seconds`` the document counts as missing.
        """
        operation = documents.put(
            self._journal.runtime, scope, key, value, expect_version=expect_version, ttl_seconds=ttl_seconds
        )
        return await self._journal.run(operation)

    async def get(self, scope: str, key: str) -> Document | None:
        """Return a document; ``None`` if it is missing or has expired."""
        return await self._journal.run(documents.get(self._journal.runtime, scope, key))

    async def delete(self, scope: str, key: str, *, expect_version: int | None = None) -> bool:
        """Delete a document, and return whether there was one; ``expect_version`` as in ``put``.

        It cannot be undone. Unlike erased entries, its bytes may stay in the log of a SQLite store until that is emptied,
        at the latest when the last program closes the store.
        """
        return await self._journal.run(documents.delete(self._journal.runtime, scope, key, expect_version))

    async def scopes(self, *, after: str | None = None, limit: int | None = None) -> list[str]:
        """Return the scopes that have documents, in order; ``after`` is the last one of the page before."""
        return await self._journal.run(documents.scopes(self._journal.runtime, after, limit))

    async def list(
        self, scope: str, prefix: str = "", *, after: str | None = None, limit: int | None = None
    ) -> list[Document]:
        """Return the documents of a scope whose keys start with ``prefix``, in the order of their keys.

        ``after`` is the key of the last document of the page before.
        """
        return await self._journal.run(documents.list_(self._journal.runtime, scope, prefix, after, limit))

    async def purge(self) -> None:
        """Delete the documents of all scopes that have expired. Until then they only count as missing."""
        await self._journal.run(documents.purge(self._journal.runtime))
