"""Put, delete and purge documents."""

from __future__ import annotations

from typing import Protocol

from sessiontree.errors import StaleDocumentError
from sessiontree.model.documents import StoredDocument
from sessiontree.stores.commands import DeleteDocument, PurgeDocuments, SetDocument
from sessiontree.stores.rules.state import Decision, DropDocument, DropExpiredDocuments, PutDocument

__all__ = ["DocumentView", "delete_document", "purge_documents", "set_document"]


class DocumentView(Protocol):
    """What the rules read of documents."""

    def document(self, scope: str, key: str) -> StoredDocument | None:
        """A document, expired or not."""
        ...


def set_document(command: SetDocument, view: DocumentView) -> Decision:
    """Put a document."""
    stored = view.document(command.scope, command.key)
    _check(command, stored)
    # Higher than any version before a delete, so that whoever read one of those cannot overwrite this.
    version = max(stored.version + 1 if stored else 1, command.at_ns)
    new = StoredDocument(
        scope=command.scope,
        key=command.key,
        version=version if command.version is None else command.version,
        updated_ns=command.at_ns,
        expires_ns=command.expires_ns,
        body=command.body,
    )
    return Decision(new, (PutDocument(new),))


def delete_document(command: DeleteDocument, view: DocumentView) -> Decision:
    """Delete a document; the result is what was deleted, None if there was nothing."""
    stored = view.document(command.scope, command.key)
    _check(command, stored)
    if stored is None:
        return Decision(None)
    is_there = not stored.is_expired(command.at_ns)
    return Decision(stored if is_there else None, (DropDocument(command.scope, command.key),))


def purge_documents(command: PurgeDocuments) -> Decision:
    """Delete the documents that have expired."""
    return Decision(None, (DropExpiredDocuments(command.now_ns),))


def _check(command: SetDocument | DeleteDocument, stored: StoredDocument | None) -> None:
    actual = 0 if stored is None or stored.is_expired(command.at_ns) else stored.version
    if command.expect_version not in (None, actual):
        raise StaleDocumentError(command.scope, command.key, command.expect_version or 0, actual)
