"""Small documents beside the conversations: state of an application or of a user, each a JSON value under a scope and a key."""

from __future__ import annotations

from typing import Any

from sessiontree.model._base import Record

__all__ = ["Document", "StoredDocument"]


class StoredDocument(Record, frozen=True, kw_only=True):
    """A document as stores keep it: ``body`` is the encoded value."""

    scope: str
    key: str
    version: int
    updated_ns: int
    expires_ns: int | None = None
    body: bytes

    def is_expired(self, now_ns: int) -> bool:
        """Whether the document counts as missing."""
        return self.expires_ns is not None and self.expires_ns <= now_ns


class Document(Record, frozen=True, kw_only=True):
    """A JSON value. ``version`` grows with every change, also when the document is deleted and put again."""

    scope: str
    key: str
    value: Any
    version: int
    updated_ns: int
    expires_ns: int | None = None
