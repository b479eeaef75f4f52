"""Documents of the JSONL store: one small JSON file each, in a folder for each scope, replaced as a whole."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

from sessiontree.errors import DamagedDataError
from sessiontree.model._base import UNREADABLE, Record, json_decoder
from sessiontree.model.documents import StoredDocument
from sessiontree.stores._io import Files
from sessiontree.stores.jsonl.layout import name_of
from sessiontree.stores.rules.state import DropDocument, DropExpiredDocuments, Fact, PutDocument

__all__ = ["DocumentFolder"]

_SUFFIX = ".json"


class _File(Record, frozen=True, kw_only=True):
    scope: str
    key: str
    version: int
    updated_ns: int
    expires_ns: int | None = None
    value: msgspec.Raw


class DocumentFolder:
    """The documents of a store, read from their files each time: another process may change them."""

    def __init__(self, folder: Path, files: Files) -> None:
        self._folder = folder
        self._files = files

    def document(self, scope: str, key: str) -> StoredDocument | None:
        """A document, expired or not."""
        return _read(self._path(scope, key))

    def of_scope(self, scope: str) -> Iterator[StoredDocument]:
        """All documents of a scope, in any order."""
        return _documents_in(self._scope(scope))

    def all(self) -> Iterator[StoredDocument]:
        """All documents, in any order."""
        for folder in _listed(self._folder):
            yield from _documents_in(folder)

    def apply(self, fact: Fact) -> None:
        """Write a fact durably; the caller holds the process lock."""
        match fact:
            case PutDocument(document=document):
                self._files.make_folder(self._folder)
                self._files.make_folder(self._scope(document.scope))
                self._files.put(self._path(document.scope, document.key), _text_of(document))
            case DropDocument(scope=scope, key=key):
                # It is missing if this commit is carried out for the second time, after a crash.
                with suppress(FileNotFoundError):
                    self._files.remove(self._path(scope, key))
            case DropExpiredDocuments(now_ns=now):
                for document in list(self.all()):
                    if document.is_expired(now):
                        self._files.remove(self._path(document.scope, document.key))

    def _scope(self, scope: str) -> Path:
        return self._folder / name_of(scope)

    def _path(self, scope: str, key: str) -> Path:
        return self._scope(scope) / (name_of(key) + _SUFFIX)


def _listed(folder: Path) -> list[Path]:
    try:
        return [folder / name for name in os.listdir(folder)]  # noqa: PTH208  only names are needed
    except FileNotFoundError:
        return []


def _documents_in(folder: Path) -> Iterator[StoredDocument]:
    for path in _listed(folder):
        if path.name.endswith(_SUFFIX) and (document := _read(path)) is not None:
            yield document


def _text_of(document: StoredDocument) -> bytes:
    fields = {name: getattr(document, name) for name in document.__struct_fields__ if name != "body"}
    return msgspec.json.encode(_File(**fields, value=msgspec.Raw(document.body))) + b"\n"


def _read(path: Path) -> StoredDocument | None:
    try:
        file = json_decoder(_File).decode(path.read_bytes())
    except FileNotFoundError:
        return None
    except UNREADABLE as error:
        raise DamagedDataError(str(path), 0, f"cannot read the document: {error}") from error
    return StoredDocument(
        scope=file.scope,
        key=file.key,
        version=file.version,
        updated_ns=file.updated_ns,
        expires_ns=file.expires_ns,
        body=bytes(file.value),
    )
