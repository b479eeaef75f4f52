"""Verbs about documents."""

from __future__ import annotations

from typing import Any

import msgspec

from sessiontree.errors import InvalidInputError, StaleDocumentError
from sessiontree.journal.operations.entries import checked_id, checked_time
from sessiontree.journal.operations.requests import Operation, Runtime
from sessiontree.model import NANOSECONDS
from sessiontree.model.codec import check_finite, encode_record
from sessiontree.model.documents import Document, StoredDocument
from sessiontree.stores.commands import DeleteDocument, PurgeDocuments, SetDocument
from sessiontree.stores.document_queries import ListDocuments, ListScopes, ReadDocument

__all__ = ["delete", "get", "import_document", "list_", "purge", "put", "scopes"]

_LONGEST_SECONDS = 1_000_000_000


def put(
    runtime: Runtime, scope: str, key: str, value: Any, *, expect_version: int | None, ttl_seconds: float | None
) -> Operation[Document]:
    """Put a document."""
    now = runtime.clock()
    stored: StoredDocument = yield SetDocument(
        scope=checked_id(scope, "scope"),
        key=checked_id(key, "key"),
        body=_encoded(value, scope, key),
        at_ns=now,
        expires_ns=None if ttl_seconds is None else now + _nanoseconds(ttl_seconds),
        expect_version=expect_version,
    )
    return _public(stored)


def get(runtime: Runtime, scope: str, key: str) -> Operation[Document | None]:
    """Return a document, or None."""
    found: StoredDocument | None = yield ReadDocument(scope=scope, key=key, now_ns=runtime.clock())
    return None if found is None else _public(found)


def delete(runtime: Runtime, scope: str, key: str, expect_version: int | None) -> Operation[bool]:
    """Delete a document; return whether there was one."""
    gone: StoredDocument | None = yield DeleteDocument(
        scope=scope, key=key, at_ns=runtime.clock(), expect_version=expect_version
    )
    return gone is not None


def list_(runtime: Runtime, scope: str, prefix: str, after: str | None, limit: int | None) -> Operation[list[Document]]:
    """Return documents of a scope, ordered by key."""
    found: list[StoredDocument] = yield ListDocuments(
        scope=scope, prefix=prefix, after=after, limit=_checked_limit(limit), now_ns=runtime.clock()
    )
    return [_public(document) for document in found]


def scopes(runtime: Runtime, after: str | None, limit: int | None) -> Operation[list[str]]:
    """Return the scopes that have documents, in order."""
    found: list[str] = yield ListScopes(after=after, limit=_checked_limit(limit), now_ns=runtime.clock())
    return found


def import_document(runtime: Runtime, document: Document) -> Operation[Document]:
    """Store a document of another store as it is there; one that is there already is left alone."""
    known = yield from get(runtime, document.scope, document.key)
    if known == document:
        return known
    if known is not None:
        raise StaleDocumentError(document.scope, document.key, document.version, known.version)
    stored: StoredDocument = yield SetDocument(
        scope=checked_id(document.scope, "scope"),
        key=checked_id(document.key, "key"),
        body=_encoded(document.value, document.scope, document.key),
        at_ns=checked_time(document.updated_ns, "updated_ns"),
        expires_ns=document.expires_ns,
        expect_version=0,
        version=document.version,
    )
    return _public(stored)


def purge(runtime: Runtime) -> Operation[None]:
    """Delete the documents that have expired."""
    yield PurgeDocuments(now_ns=runtime.clock())


def _checked_limit(limit: int | None) -> int | None:
    if limit is not None and (type(limit) is not int or limit < 0):
        raise InvalidInputError(f"limit must be a non-negative integer, not {limit!r}")
    return limit


def _encoded(value: Any, scope: str, key: str) -> bytes:
    body = encode_record(value, f"document {key!r} in {scope!r}")
    check_finite(value)
    if msgspec.json.decode(body) != value:
        raise InvalidInputError(
            f"document {key!r} in {scope!r} is not JSON: use dicts with text keys, lists, numbers, text"
        )
    return body


def _nanoseconds(seconds: float) -> int:
    if not isinstance(seconds, int | float) or not 0 < seconds <= _LONGEST_SECONDS:
        raise InvalidInputError(f"ttl_seconds must be a positive number up to {_LONGEST_SECONDS}, not {seconds!r}")
    return int(seconds * NANOSECONDS)


def _public(stored: StoredDocument) -> Document:
    return Document(
        scope=stored.scope,
        key=stored.key,
        value=msgspec.json.decode(stored.body),
        version=stored.version,
        updated_ns=stored.updated_ns,
        expires_ns=stored.expires_ns,
    )
