"""Artifacts come along when a store is copied, and when threads are exported and imported."""

from __future__ import annotations

from collections.abc import Callable
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


def _export_with(tmp_path: Path, change: Callable[[list[str]], list[str]]) -> Path:
    """An export whose lines were changed; the picture is in its second line."""
    with st.open("memory:") as old:
        filled(old)
        st.export_sessions(old, tmp_path / "out", format="native")
    (file,) = (tmp_path / "out").glob("*.jsonl")
    lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
    assert lines[1].startswith('{"blob":')
    file.write_text("".join(change(lines)), encoding="utf-8")
    return tmp_path / "out"


def test_an_import_said_nothing_of_an_artifact_that_the_file_had_lost(tmp_path: Path) -> None:
    source = _export_with(tmp_path, lambda lines: [lines[0], *lines[2:]])
    with st.open("memory:") as new:
        report = st.import_sessions(new, source)
        assert [(note.kind, note.thread_id) for note in report.notes] == [("damage", "t")]
        assert "is missing in the source" in report.notes[0].problem
        new.put_artifact(PICTURE)
        assert st.import_sessions(new, source).notes == ()


def test_a_damaged_artifact_took_its_message_with_it(tmp_path: Path) -> None:
    source = _export_with(tmp_path, lambda lines: [lines[0], lines[1].replace("AAEC", "AAED", 1), *lines[2:]])
    with st.open("memory:") as new:
        report = st.import_sessions(new, source)
        assert [entry.type for entry in new.path("t")] == ["user_message", "tool_result"]
        first, second = report.notes
        assert "does not match its hash" in first.problem
        assert (first.kind, second.kind) == ("damage", "damage")
        assert "is missing in the source" in second.problem


def test_an_artifact_that_stands_with_another_thread_is_not_called_missing(tmp_path: Path) -> None:
    with st.open("memory:") as old:
        ref = old.put_artifact(PICTURE, mime="image/png")
        old.create_thread("main", contents=[st.user("hello")])
        old.fork("main", new_id="fork")
        old.append("fork", st.user([st.ImagePart(artifact=ref)]))
        old.append("main", st.user([st.ImagePart(artifact=ref)]))
        st.export_sessions(old, tmp_path / "out", format="native")
    with st.open("memory:") as new:
        assert st.import_sessions(new, tmp_path / "out").notes == ()
        assert new.check() == []
