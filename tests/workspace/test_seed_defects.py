"""The defects P1 to P9 of the snapshot feature that this one replaces, each on a real file system."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import sessiontree as st
from known import of_kind
from sessiontree.sessions.checkpointed import CheckpointedSessions
from trees import contents


def say(journal: st.Journal, text: str = "x") -> str:
    return journal.append("t", st.user(text)).id


def test_p1_binary_content_and_the_exec_bit_survive(journal: st.Journal, root: Path) -> None:
    (root / "data.bin").write_bytes(b"\xff\xfe\x00\x80\x61")
    (root / "run.sh").write_text("#!/bin/sh\n")
    (root / "run.sh").chmod(0o755)
    before = contents(root)
    entry = say(journal)
    journal.workspace.snapshot("t", entry, root)
    (root / "data.bin").write_bytes(b"gone")
    (root / "run.sh").unlink()
    journal.rewind("t", entry, files=root)
    assert contents(root) == before


@pytest.mark.parametrize("place", ["file", "folder"])
def test_p2_nothing_is_written_outside_the_root(journal: st.Journal, root: Path, tmp_path: Path, place: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "a.txt").write_text("not yours")
    (root / "sub").mkdir()
    (root / "sub" / "a.txt").write_text("mine")
    entry = say(journal)
    journal.workspace.snapshot("t", entry, root)
    (root / "sub" / "a.txt").unlink()
    if place == "file":
        (root / "sub" / "a.txt").symlink_to(outside / "a.txt")
    else:
        (root / "sub").rmdir()
        (root / "sub").symlink_to(outside)
    journal.rewind("t", entry, files=root)
    assert (outside / "a.txt").read_text() == "not yours"
    assert sorted(path.name for path in outside.iterdir()) == ["a.txt"]
    assert (root / "sub" / "a.txt").read_text() == "mine"
    assert not (root / "sub").is_symlink()


def test_p3_links_and_empty_folders_come_back(journal: st.Journal, root: Path) -> None:
    (root / "empty" / "inner").mkdir(parents=True)
    (root / "link").symlink_to("nowhere")
    before = contents(root)
    entry = say(journal)
    journal.workspace.snapshot("t", entry, root)
    (root / "empty" / "inner").rmdir()
    (root / "empty").rmdir()
    (root / "link").unlink()
    (root / "link").write_text("a file now")
    journal.rewind("t", entry, files=root)
    assert contents(root) == before


def test_p4_a_file_that_became_a_folder_goes_back_whole(journal: st.Journal, root: Path) -> None:
    (root / "thing").write_text("file")
    (root / "other").write_text("other")
    before = contents(root)
    entry = say(journal)
    journal.workspace.snapshot("t", entry, root)
    (root / "thing").unlink()
    (root / "thing" / "deep").mkdir(parents=True)
    (root / "thing" / "deep" / "inner").write_text("inner")
    after = contents(root)
    journal.rewind("t", entry, files=root)
    assert contents(root) == before
    journal.undo("t")
    assert contents(root) == after


@pytest.mark.parametrize("address", ["sqlite:///{}/journal.db", "jsonl:///{}/journal"])
def test_p5_the_store_inside_the_root_is_never_in_a_snapshot(root: Path, address: str) -> None:
    (root / "code.py").write_text("print()\n")
    with st.open(address.format(root)) as journal:
        journal.create_thread("t")
        counts = []
        for turn in range(8):
            entry = say(journal, f"turn {turn}")
            assert journal.search(f'"turn {turn}"').hits
            counts.append(journal.workspace.snapshot("t", entry, root).checkpoint.files)
        assert counts == [1] * 8
        first = journal.path("t")[0].id
        journal.rewind("t", first, files=root)
        assert journal.thread("t").leaf == first
        assert journal.check() == []


def test_p6_a_torn_store_keeps_every_checkpoint_that_was_acknowledged(tmp_path: Path, root: Path) -> None:
    (root / "a").write_text("one")
    with st.open(f"jsonl:///{tmp_path}/journal") as journal:
        journal.create_thread("t")
        entry = say(journal)
        journal.workspace.snapshot("t", entry, root)
    (tree,) = (tmp_path / "journal" / "trees").iterdir()
    with tree.open("ab") as file:
        file.write(b'{"kind":"entry","n":99,"id":"to')
    (root / "a").write_text("two")
    with st.open(f"jsonl:///{tmp_path}/journal") as journal:
        journal.rewind("t", entry, files=root)
        assert (root / "a").read_text() == "one"
        assert journal.check() == []


def test_p7_integers_of_messages_survive_a_rewind(journal: st.Journal, root: Path) -> None:
    entry = journal.append("t", st.Custom(name="n", data={"id": 9007199254740993})).id
    journal.workspace.snapshot("t", entry, root)
    say(journal)
    journal.rewind("t", entry, files=root)
    assert of_kind(st.Custom, journal.path("t")[-1].payload).data == {"id": 9007199254740993}


def test_p8_the_seeds_surface_restores_turns_skips_taken_ids_and_shares_nothing(
    journal: st.Journal, root: Path
) -> None:
    sessions = CheckpointedSessions(journal)
    nested: dict[str, Any] = {"role": "user", "content": "hello", "meta": {"n": 1}}
    sessions.set_state("a", [nested], user_turns=1)
    sessions.snapshot("a", "a-u1")
    nested["meta"]["n"] = 2
    sessions.set_state("a", [nested, {"role": "assistant", "content": "hi"}], user_turns=2)
    assert sessions.rewind("a", "a-u1").user_turns == 1
    assert sessions.get("a").messages == ({"role": "user", "content": "hello", "meta": {"n": 1}},)

    sessions.get_or_create("a#fork-1")
    assert sessions.new_fork_id("a") == "a#fork-2"
    sessions.get_or_create("")
    sessions.snapshot("", "m")
    assert sessions.rewind("", "m").id == "default"
    with pytest.raises(st.NoCheckpointError):
        sessions.rewind("a", "never")
    with pytest.raises(st.NoCheckpointError):
        sessions.rewind_files("a", "a-u1", root)


_ONE_PROCESS = """
import sys, sessiontree as st
place, root, name = sys.argv[1:]
with st.open(place) as journal:
    journal.create_thread(name)
    for turn in range(5):
        entry = journal.append(name, st.user(f"{name} {turn}")).id
        journal.workspace.snapshot(name, entry, root)
"""


@pytest.mark.parametrize("address", ["sqlite:///{}/journal.db", "jsonl:///{}/journal"])
def test_p9_two_processes_lose_nothing_of_each_other(tmp_path: Path, root: Path, address: str) -> None:
    for number in range(20):
        (root / f"{number}.txt").write_text(f"{number}\n")
    place = address.format(tmp_path)
    started = [subprocess.Popen([sys.executable, "-c", _ONE_PROCESS, place, root, name]) for name in ("one", "two")]
    assert [process.wait(60) for process in started] == [0, 0]
    with st.open(place) as journal:
        for name in ("one", "two"):
            assert len(journal.workspace.checkpoints(name, root)) == 5
            assert len(journal.path(name)) == 10
        assert journal.check() == []


def test_an_unsafe_path_is_refused_before_anything_is_deleted(plain: st.Journal, root: Path) -> None:
    """The seed wiped the tree first and rejected the path afterwards."""
    from sessiontree.model.blobs import blob_of  # noqa: PLC0415
    from sessiontree.model.manifest import Manifest, ManifestItem, encode_manifest  # noqa: PLC0415
    from sessiontree.stores.commands import PutBlobs  # noqa: PLC0415

    (root / "keep.txt").write_text("keep")
    evil = blob_of(b"evil")
    item = ManifestItem("file", 0o644, 4, bytes.fromhex(evil.hash))
    for path in ("../out", "/abs", "a/../../out", "..", "a//b", "a/.", "nul\0byte", ".git/hooks/pre-commit", "x" * 300):
        manifest = blob_of(encode_manifest(Manifest(changed={path: item})))
        plain.store.commit(PutBlobs(blobs=(evil, manifest)))
        entry = say(plain)
        payload = st.Checkpoint(target=entry, root=os.path.realpath(root), manifest=manifest.hash)
        plain.append("t", payload)
        with pytest.raises(st.UnsafePathError):
            plain.rewind("t", entry, files=root)
        assert contents(root) == {b"keep.txt": ("file", 0o644, b"keep")}
        assert plain.thread("t").leaf != entry
