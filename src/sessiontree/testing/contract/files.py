"""Files: blobs are returned as they were stored, and removed with the last thread that sees their checkpoint."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TypeVar

import pytest

from sessiontree.errors import BlobNotFoundError, MissingBlobsError
from sessiontree.journal import Journal
from sessiontree.journal.operations.entries import NewEntry
from sessiontree.journal.operations.requests import Operation
from sessiontree.model.blobs import Blob, blob_of, data_of
from sessiontree.model.builders import user
from sessiontree.stores.commands import PutBlobs
from sessiontree.stores.queries import FindMissingBlobs, ReadBlobs
from sessiontree.testing.contract.base import Contract, Opened, fill

__all__ = ["FilesContract"]


T = TypeVar("T")

_MEBIBYTE = 1 << 20


def put(journal: Journal, *datas: bytes) -> list[str]:
    blobs = tuple(blob_of(data) for data in datas)
    _drive(journal, _put(blobs))
    return [blob.hash for blob in blobs]


def read(journal: Journal, *hashes: str) -> list[bytes]:
    return _drive(journal, _read(hashes))


def missing(journal: Journal, *hashes: str) -> frozenset[str]:
    return _drive(journal, _missing(hashes))


class FilesContract(Contract):
    """Blobs and checkpoints; skipped if ``has_blobs`` is False."""

    @pytest.fixture(autouse=True)
    def _only_stores_with_blobs(self) -> None:
        if not self.has_blobs:
            pytest.skip("this store keeps no blobs")

    def test_blobs_of_every_size_come_back(self, store: Opened) -> None:
        source = random.Random(1)  # noqa: S311  the same data every time
        datas = [source.randbytes(size) for size in (0, 1, 1000, _MEBIBYTE - 1, _MEBIBYTE, _MEBIBYTE + 1)]
        datas += [b"text " * 100_000, source.randbytes(3 * _MEBIBYTE + 7)]
        hashes = put(store.journal, *datas)
        assert read(store.reopen(), *hashes) == datas
        assert read(store.journal, *reversed(hashes)) == datas[::-1]

    def test_a_blob_that_is_there_is_not_put_twice(self, journal: Journal) -> None:
        (first,) = put(journal, b"same" * 100)
        before = journal.stats().bytes
        assert put(journal, b"same" * 100, b"same" * 100) == [first, first]
        assert journal.stats().bytes == before

    def test_what_is_missing_is_reported(self, journal: Journal) -> None:
        (known,) = put(journal, b"known")
        unknown = blob_of(b"unknown").hash
        assert missing(journal, known, unknown) == {unknown}
        with pytest.raises(BlobNotFoundError):
            read(journal, known, unknown)

    def test_an_entry_is_refused_while_a_blob_that_it_needs_is_missing(self, journal: Journal) -> None:
        journal.create_thread("t")
        needed = blob_of(b"needed").hash
        entry = NewEntry(content=user("x"), blobs=(needed,))
        with pytest.raises(MissingBlobsError) as caught:
            journal.append_many("t", [entry])
        assert caught.value.hashes == (needed,)
        assert journal.path("t") == []
        put(journal, b"needed")
        journal.append_many("t", [entry])

    def test_undo_and_redo_name_the_folder_that_a_move_took_along(self, journal: Journal, tmp_path: Path) -> None:
        root = tmp_path / "workspace"
        root.mkdir()
        (root / "file").write_text("one")
        journal.create_thread("t")
        fill(journal, "t", "one")
        journal.workspace.snapshot("t", "one", root)
        (root / "file").write_text("two")
        journal.rewind("t", "one", files=root)
        rewind = journal.undo("t", dry_run=True)
        assert rewind.checkpoint is not None
        assert (rewind.move.reason, rewind.checkpoint.root) == ("rewind", str(root.resolve()))
        assert journal.undo("t").leaf == rewind.move.from_entry
        assert (root / "file").read_text() == "two"
        undo = journal.redo("t", dry_run=True)
        assert undo.checkpoint is not None
        assert (undo.move.reason, undo.checkpoint.root) == ("undo", str(root.resolve()))
        assert journal.redo("t").leaf == undo.move.from_entry
        assert (root / "file").read_text() == "one"

    def test_blobs_go_with_the_last_thread_that_sees_their_checkpoint(self, journal: Journal, tmp_path: Path) -> None:
        root = tmp_path / "workspace"
        root.mkdir()
        (root / "file").write_text("kept while a thread sees it")
        kept = blob_of(b"kept while a thread sees it").hash
        journal.create_thread("t")
        fill(journal, "t", "one")
        checkpoint = journal.workspace.snapshot("t", "one", root)
        journal.fork("t", at=checkpoint.id, new_id="fork")
        journal.delete_thread("t")
        assert missing(journal, kept) == frozenset()
        (root / "file").write_text("changed")
        journal.rewind("fork", checkpoint.id, files=root, conflicts="force")
        assert (root / "file").read_text() == "kept while a thread sees it"
        journal.delete_thread("fork")
        assert missing(journal, kept) == {kept}


def _drive(journal: Journal, operation: Operation[T]) -> T:
    return journal.run(operation)


def _put(blobs: tuple[Blob, ...]) -> Operation[None]:
    yield PutBlobs(blobs=blobs)


def _read(hashes: tuple[str, ...]) -> Operation[list[bytes]]:
    found: list[Blob] = yield ReadBlobs(hashes=hashes)
    return [data_of(blob) for blob in found]


def _missing(hashes: tuple[str, ...]) -> Operation[frozenset[str]]:
    found: frozenset[str] = yield FindMissingBlobs(hashes=hashes)
    return found
