"""Artifacts come along when a store is copied, and when threads are exported and imported."""

from __future__ import annotations

from pathlib import Path

import pytest

import sessiontree as st

PICTURE = b"\x89PNG" + bytes(range(256)) * 20


def filled(journal: st.Journal) -> st.ArtifactRef:
    ref = journal.put_artifact(PICTURE, mime="image/png", label="plot.png")
    journal.create_thread("t", contents=[st.user([st.ImagePart(artifact=ref)])])
    journal.append("t", st.tool_result("c", "cut", view=st.ResultView(full_output=journal.put_artifact(b"all of it"))))
    return ref


@pytest.mark.parametrize("target", ["memory:", "copy.db", "jsonl:///copy"])
def test_a_copied_store_has_the_artifacts(target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with st.open("old.db") as old, st.open(target) as new:
        ref = filled(old)
        assert st.copy_store(old, new).blobs == 2
        assert new.read_artifact(ref) == PICTURE
        assert new.check() == []
        new.delete_thread("t")
        with pytest.raises(st.BlobNotFoundError):
            new.read_artifact(ref)


def test_an_export_holds_the_artifacts_of_its_threads(tmp_path: Path) -> None:
    with st.open("memory:") as old, st.open("memory:") as new:
        ref = filled(old)
        st.export_sessions(old, tmp_path / "out", format="native")
        st.import_sessions(new, tmp_path / "out")
        assert new.path("t") == old.path("t")
        assert new.read_artifact(ref) == PICTURE
        assert new.check() == []
