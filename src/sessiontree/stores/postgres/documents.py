"""Documents in PostgreSQL: one row each."""

from __future__ import annotations

from collections.abc import Iterable

from sessiontree.model.documents import StoredDocument
from sessiontree.stores.commands import DeleteDocument, SetDocument
from sessiontree.stores.document_queries import ListDocuments, ListScopes, ReadDocument
from sessiontree.stores.postgres.steps import Row, Statement, Steps, to_bytes, to_text
from sessiontree.stores.rules.state import DropDocument, DropExpiredDocuments, PutDocument

__all__ = [
    "ALL_DOCUMENTS",
    "change_documents",
    "documents_of",
    "list_documents",
    "list_scopes",
    "lock_document",
    "read_document",
]


_COLUMNS = "scope, key, version, updated_ns, expires_ns, body"
_PLACE = "namespace = %(namespace)s AND scope = %(scope)s AND key = %(key)s"
# A missing document has no row to lock, so one of version 0 is inserted: the command replaces it, or is rolled back.
_RESERVE = """
INSERT INTO sessiontree.json_document (namespace, scope, key, version, updated_ns, body)
VALUES (%(namespace)s, %(scope)s, %(key)s, 0, 0, '') ON CONFLICT (namespace, scope, key) DO NOTHING"""
_READ = f"SELECT {_COLUMNS} FROM sessiontree.json_document WHERE {_PLACE}"
ALL_DOCUMENTS = f"SELECT {_COLUMNS} FROM sessiontree.json_document WHERE namespace = %(namespace)s ORDER BY scope, key"
_PUT = f"""
UPDATE sessiontree.json_document SET version = %(version)s, updated_ns = %(updated_ns)s, expires_ns = %(expires_ns)s,
    body = %(body)s WHERE {_PLACE}"""
_DROP = f"DELETE FROM sessiontree.json_document WHERE {_PLACE}"
_DROP_EXPIRED = "DELETE FROM sessiontree.json_document WHERE namespace = %(namespace)s AND expires_ns <= %(now)s"
_LIST = f"""
SELECT {_COLUMNS} FROM sessiontree.json_document WHERE namespace = %(namespace)s AND scope = %(scope)s
    AND key > %(after)s AND substring(key FROM 1 FOR %(length)s) = %(prefix)s
    AND (expires_ns IS NULL OR expires_ns > %(now)s) ORDER BY key LIMIT %(limit)s"""

_SCOPES = """
SELECT DISTINCT scope FROM sessiontree.json_document WHERE namespace = %(namespace)s AND scope > %(after)s
    AND (expires_ns IS NULL OR expires_ns > %(now)s) ORDER BY scope LIMIT %(limit)s"""


def documents_of(rows: Iterable[Row]) -> list[StoredDocument]:
    """Documents of rows of ``ALL_DOCUMENTS``, expired or not."""
    return [document for document in map(_document_of, rows) if document.version]


def lock_document(namespace: str, command: SetDocument | DeleteDocument) -> Steps[StoredDocument | None]:
    """Lock the document that a command is about and read it; one that will be put is locked even if it is missing."""
    values = {"namespace": namespace, "scope": to_bytes(command.scope), "key": to_bytes(command.key)}
    if isinstance(command, SetDocument):
        yield Statement(_RESERVE, values)
    rows = yield Statement(_READ + " FOR UPDATE", values)
    found = documents_of(rows)
    return found[0] if found else None


def change_documents(fact: PutDocument | DropDocument | DropExpiredDocuments, namespace: str) -> Statement:
    """The statement that writes a fact."""
    match fact:
        case PutDocument(document=document):
            values = {
                "namespace": namespace,
                "scope": to_bytes(document.scope),
                "key": to_bytes(document.key),
                "version": document.version,
                "updated_ns": document.updated_ns,
                "expires_ns": document.expires_ns,
                "body": document.body,
            }
            return Statement(_PUT, values)
        case DropDocument(scope=scope, key=key):
            return Statement(_DROP, {"namespace": namespace, "scope": to_bytes(scope), "key": to_bytes(key)})
        case DropExpiredDocuments(now_ns=now):
            return Statement(_DROP_EXPIRED, {"namespace": namespace, "now": now})


def read_document(namespace: str, query: ReadDocument) -> Steps[StoredDocument | None]:
    """A document, None if it is missing or has expired."""
    values = {"namespace": namespace, "scope": to_bytes(query.scope), "key": to_bytes(query.key)}
    rows = yield Statement(_READ, values)
    found = [document for document in map(_document_of, rows) if not document.is_expired(query.now_ns)]
    return found[0] if found else None


def list_documents(namespace: str, query: ListDocuments) -> Steps[list[StoredDocument]]:
    """Documents of a scope."""
    prefix = to_bytes(query.prefix)
    values = {
        "namespace": namespace,
        "scope": to_bytes(query.scope),
        "after": to_bytes(query.after or ""),
        "prefix": prefix,
        "length": len(prefix),
        "now": query.now_ns,
        "limit": query.limit,
    }
    rows = yield Statement(_LIST, values)
    return [_document_of(row) for row in rows]


def list_scopes(namespace: str, query: ListScopes) -> Steps[list[str]]:
    """Scopes of documents."""
    values = {"namespace": namespace, "after": to_bytes(query.after or ""), "now": query.now_ns, "limit": query.limit}
    rows = yield Statement(_SCOPES, values)
    return [to_text(scope) for (scope,) in rows]


def _document_of(row: Row) -> StoredDocument:
    scope, key, version, updated_ns, expires_ns, body = row
    return StoredDocument(
        scope=to_text(scope),
        key=to_text(key),
        version=version,
        updated_ns=updated_ns,
        expires_ns=expires_ns,
        body=body,
    )
