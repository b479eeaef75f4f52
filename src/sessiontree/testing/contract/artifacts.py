"""Artifacts: stored once, kept while an entry refers to them, resolved when a request is built."""

from __future__ import annotations

from base64 import b64encode
from pathlib import Path

import pytest

from sessiontree.context.dialects import DIALECTS
from sessiontree.errors import BlobNotFoundError, InvalidInputError, MissingBlobsError
from sessiontree.journal import Journal
from sessiontree.journal.operations.erase import erase_contents
from sessiontree.model import (
    ArtifactRef,
    Custom,
    FilePart,
    ImagePart,
    Payload,
    ResultView,
    TextPart,
    blob_of,
)
from sessiontree.model.builders import assistant, call, tool_result, user
from sessiontree.testing.contract.base import Contract, Opened, is_on_disk

__all__ = ["ArtifactContract"]

# Random-looking bytes, so that no compression hides them from a search of the files.
_PICTURE = bytes.fromhex("89504e470d0a1a0a") + b"needle-7f3a91c4-picture"
_NEEDLE = "needle-7f3a91c4-picture"


def _shown(ref: ArtifactRef) -> Payload:
    return user([TextPart(text="look"), ImagePart(artifact=ref)])


class ArtifactContract(Contract):
    def test_equal_content_is_stored_once_and_read_back(self, store: Opened) -> None:
        journal = store.journal
        ref = journal.put_artifact(_PICTURE, mime="image/png")
        assert (ref.size, ref.mime, ref.sha256) == (len(_PICTURE), "image/png", blob_of(_PICTURE).hash)
        size = journal.stats().bytes
        assert journal.put_artifact(_PICTURE, mime="image/png") == ref
        assert journal.stats().bytes == size
        again = store.reopen()
        assert again.read_artifact(ref) == again.read_artifact(ref.sha256) == _PICTURE
        assert again.read_artifact(again.put_artifact(b"")) == b""

    def test_a_file_gives_the_artifact_its_name_and_type(self, journal: Journal, tmp_path: Path) -> None:
        file = tmp_path / "notes.txt"
        file.write_text("first line\nsecond line\n")
        ref = journal.put_artifact(file)
        assert (ref.label, ref.mime, ref.preview) == ("notes.txt", "text/plain", "first line\nsecond line\n")
        assert journal.put_artifact(str(file), mime="text/x-notes", label="mine").label == "mine"
        with pytest.raises(FileNotFoundError):
            journal.put_artifact(tmp_path / "missing")

    def test_requests_hold_the_data_of_what_messages_show(self, store: Opened) -> None:
        journal = store.journal
        journal.create_thread("t")
        ref = journal.put_artifact(_PICTURE, mime="image/png")
        journal.append("t", _shown(ref))
        journal.append("t", assistant(calls=[call("c1", "shoot")]))
        journal.append("t", tool_result("c1", [FilePart(name="a.png", artifact=ref), ImagePart(artifact=ref)]))
        context = store.reopen().context("t")
        data = b64encode(_PICTURE).decode()
        for name in DIALECTS:
            assert data in str(DIALECTS[name].to_request(context)), name
        stored = store.journal.path("t")[0].payload
        assert stored == _shown(ref), "the entry keeps the reference"

    def test_an_entry_cannot_refer_to_what_is_not_there(self, journal: Journal) -> None:
        journal.create_thread("t")
        missing = ArtifactRef(sha256="ab" * 32, mime="image/png")
        for content in (
            _shown(missing),
            tool_result("c1", [ImagePart(artifact=missing)]),
            tool_result("c1", "cut", view=ResultView(full_output=missing)),
        ):
            with pytest.raises(MissingBlobsError, match="abab"):
                journal.append("t", content)
            with pytest.raises(MissingBlobsError):
                journal.append_many("t", [user("kept out"), content])
            with pytest.raises(MissingBlobsError):
                journal.create_thread("u", contents=[content])
        with pytest.raises(InvalidInputError, match="64"):
            journal.append("t", _shown(ArtifactRef(sha256="aaaa")))
        assert journal.path("t") == []

    def test_references_to_other_places_are_not_checked(self, journal: Journal) -> None:
        journal.create_thread("t")
        elsewhere = ArtifactRef(id="artifact-1", label="log", size=9)
        journal.append("t", tool_result("c1", "cut", view=ResultView(full_output=elsewhere)))
        journal.append("t", _shown(ArtifactRef(sha256="ab" * 32, url="https://example.com/a.png")))
        assert len(journal.path("t")) == 2

    def test_an_artifact_goes_with_the_last_entry_that_refers_to_it(self, store: Opened, tmp_path: Path) -> None:
        journal = store.journal
        ref = journal.put_artifact(_PICTURE, mime="image/png")
        for name in ("t", "u"):
            journal.create_thread(name)
            journal.append(name, _shown(ref), id=name)
        journal.fork("u", new_id="f")
        for name in ("t", "u"):
            journal.delete_thread(name)
            journal = store.reopen()
            assert journal.read_artifact(ref) == _PICTURE
        journal.delete_thread("f")
        with pytest.raises(BlobNotFoundError):
            journal.read_artifact(ref)
        assert not is_on_disk(tmp_path, _NEEDLE)

    def test_an_artifact_goes_with_an_erased_entry(self, store: Opened, tmp_path: Path) -> None:
        journal = store.journal
        journal.create_thread("t")
        ref, kept = journal.put_artifact(_PICTURE, mime="image/png"), journal.put_artifact(b"kept")
        journal.append("t", _shown(ref), id="a")
        journal.append("t", _shown(kept), id="b")
        journal.run(erase_contents(journal.runtime, "t", ["a"], Custom(name="note"), expect_leaf="b"))
        journal = store.reopen()
        with pytest.raises(BlobNotFoundError):
            journal.read_artifact(ref)
        assert journal.read_artifact(kept) == b"kept"
        assert not is_on_disk(tmp_path, _NEEDLE)

    def test_no_delete_takes_what_was_put_and_is_not_shown_yet(self, store: Opened) -> None:
        journal = store.journal
        first = journal.put_artifact(b"first")
        for name in ("t", "u"):
            journal.create_thread(name)
            journal.append(name, _shown(first))
        new = journal.put_artifact(b"second")
        journal.delete_thread("t")
        assert journal.put_artifact(b"first") == first, "shown before, and about to be shown again"
        journal.delete_thread("u")
        journal = store.reopen()
        journal.create_thread("v", contents=[_shown(first), _shown(new)])
        assert [journal.read_artifact(ref) for ref in (first, new)] == [b"first", b"second"]

    def test_artifacts_and_checkpoints_of_equal_content_keep_each_other(self, store: Opened, tmp_path: Path) -> None:
        if not self.has_blobs:
            pytest.skip("this store has no blobs")
        journal = store.journal
        folder = tmp_path / "folder"
        folder.mkdir()
        (folder / "a.png").write_bytes(_PICTURE)
        ref = journal.put_artifact(_PICTURE, mime="image/png")
        for name in ("files", "picture"):
            journal.create_thread(name)
        entry = journal.append("files", user("snapshot"))
        journal.workspace.snapshot("files", entry.id, folder)
        journal.append("picture", _shown(ref))
        journal.delete_thread("picture")
        assert journal.read_artifact(ref) == _PICTURE
        journal.create_thread("picture", contents=[_shown(ref)])
        journal.delete_thread("files")
        assert store.reopen().read_artifact(ref) == _PICTURE
