"""Snapshots: what is taken, what is left out, what it costs, and when it goes away."""

from __future__ import annotations

import hashlib
import os
import random
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import sessiontree as st
from opened import open_store
from sessiontree.model.blobs import data_of
from sessiontree.stores.commands import Append, Command, Result
from sessiontree.workspace import Settings
from sessiontree.workspace.open_workspace import OpenWorkspace
from sessiontree.workspace.safe_paths import Folder
from stores import backend_of
from trees import contents


def say(journal: st.Journal, thread: str = "t") -> str:
    return journal.append(thread, st.user("x")).id


def listed(journal: st.Journal, root: Path, **settings: Any) -> set[str]:
    """The paths of files that a snapshot takes."""
    journal.workspace.cache.settings = Settings(**settings)
    taken = journal.workspace.snapshot("t", say(journal), root)
    changes = journal.workspace.diff("t", taken.id, root)
    assert len(changes) == 0
    empty = root.parent / "empty"
    empty.mkdir(exist_ok=True)
    return {os.fsdecode(path) for path in _tracked(journal)}


def _tracked(journal: st.Journal) -> set[str]:
    (resolved,) = list(journal.workspace.cache.resolved.values())[-1:]
    return {path for path, item in resolved.tree.items() if item.kind != "folder"}


def wait_for_the_clock(journal: st.Journal, root: Path) -> None:
    """Until the file system's clock shows another time than the newest file has."""
    newest = max(path.lstat().st_ctime_ns for path in [root, *root.rglob("*")])
    workspace = OpenWorkspace(journal.workspace.cache, root)
    try:
        workspace.open()
        while workspace.state.now_ns() <= newest:
            pass
    finally:
        workspace.close()


def test_an_unchanged_file_is_not_read_again(plain: st.Journal, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in "abc":
        (root / name).write_text(name)
    plain.workspace.snapshot("t", say(plain), root)
    wait_for_the_clock(plain, root)
    first = plain.workspace.snapshot("t", say(plain), root)
    read: list[str] = []
    plainly = Folder.read_file

    def read_file(folder: Folder, path: str) -> tuple[bytes, os.stat_result]:
        read.append(path)
        return plainly(folder, path)

    monkeypatch.setattr(Folder, "read_file", read_file)
    again = plain.workspace.snapshot("t", say(plain), root)
    assert read == []
    assert again.checkpoint.manifest == first.checkpoint.manifest
    (root / "b").write_text("B")
    plain.workspace.snapshot("t", say(plain), root)
    assert read == ["b"]


def test_an_edit_that_keeps_size_and_time_is_seen(plain: st.Journal, root: Path) -> None:
    (root / "a").write_text("one")
    first = plain.workspace.snapshot("t", say(plain), root)
    status = (root / "a").stat()
    (root / "a").write_text("two")
    os.utime(root / "a", ns=(status.st_atime_ns, status.st_mtime_ns))
    second = plain.workspace.snapshot("t", say(plain), root)
    assert first.checkpoint.manifest != second.checkpoint.manifest


def test_edits_within_one_tick_of_the_clock_are_seen(plain: st.Journal, root: Path) -> None:
    """A hundred edits of the same size, as fast as they come: every one must be in its own snapshot."""
    one = say(plain)
    seen = set()
    for number in range(100):
        (root / "a").write_text(f"{number:03}")
        seen.add(plain.workspace.snapshot("t", one, root).checkpoint.manifest)
    assert len(seen) == 100


def test_a_damaged_cache_is_as_good_as_none(plain: st.Journal, root: Path) -> None:
    (root / "a").write_text("one")
    first = plain.workspace.snapshot("t", say(plain), root)
    cache = root / ".sessiontree" / "cache"
    data = bytearray(cache.read_bytes())
    for damage in (b"", b"nonsense", bytes(len(data)), bytes(data[:-1]), bytes([*data[:-5], data[-5] ^ 1, *data[-4:]])):
        cache.write_bytes(damage)
        assert plain.workspace.snapshot("t", say(plain), root).checkpoint.manifest == first.checkpoint.manifest


def test_what_is_ignored_is_what_git_ignores(plain: st.Journal, root: Path) -> None:
    files = [
        "a.log",
        "keep.log",
        "sub/b.log",
        "sub/keep.log",
        "build/x",
        "build/y/z",
        "src/build/x",
        "doc/frotz/f",
        "a/doc/frotz/f",
        "temp",
        "tempfile",
        "in/a",
        "in/keep",
        "star/a.txt",
        "star/sub/b.txt",
        "neg/x.log",
        "foo/bar/baz",
        "foo/deep/bar/x",
        "#hash",
        "!bang",
        "trailing",
        "mid/one/two/end",
        "x.pyc",
        "deep/er/secret.txt",
        "deep/secret.txt",
    ]
    for path in files:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(path)
    (root / ".gitignore").write_text(
        "*.log\n!keep.log\n/build/\ndoc/frotz\ntemp?*\nfoo/**/bar\n\\#hash\n\\!bang\nin/**\n!in/keep\n/star/*\n!/star/sub\n!neg/\ntrailing   \nmid/**/end\n# comment\n*.pyc\n"
    )
    (root / "deep" / ".gitignore").write_text("secret.txt\n!er/secret.txt\n")
    (root / "sub" / ".gitignore").write_text("keep.log\n")
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    command = ["git", "ls-files", "-z", "--others", "--exclude-standard"]
    answer = subprocess.run(command, cwd=root, check=True, capture_output=True).stdout
    assert listed(plain, root, default_ignores=()) == {
        path for path in answer.decode().split("\0") if path and ".sessiontree" not in path
    }


def test_the_defaults_can_be_taken_back(plain: st.Journal, root: Path) -> None:
    for path in ("node_modules/m.js", ".venv/lib", "__pycache__/x.pyc", ".git/config", "sub/.git/config", "a"):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(path)
    assert listed(plain, root) == {"a"}
    (root / ".sessiontreeignore").write_text("!node_modules/\na\n")
    assert listed(plain, root) == {".sessiontreeignore", "node_modules/m.js"}
    assert listed(plain, root, ignore=("*.js",)) == {".sessiontreeignore"}


def test_beyond_the_total_the_largest_files_are_left_out(plain: st.Journal, root: Path) -> None:
    for name, size in (("small", 10), ("medium", 400), ("large", 700)):
        (root / name).write_bytes(bytes(size))
    plain.workspace.cache.settings = Settings(max_total_bytes=500)
    for _ in range(2):
        taken = plain.workspace.snapshot("t", say(plain), root)
        assert [(out.path, out.reason, out.size) for out in taken.left_out] == [("large", "total_too_large", 700)]
        assert (taken.checkpoint.files, taken.checkpoint.size) == (2, 410)


def test_names_that_are_no_text_come_back(journal: st.Journal, root: Path) -> None:
    path = root / os.fsdecode(b"caf\xe9 \xff")
    path.write_bytes(b"x")
    before = contents(root)
    one = say(journal)
    journal.workspace.snapshot("t", one, root)
    path.unlink()
    journal.rewind("t", one, files=root)
    assert contents(root) == before


def test_large_files_are_kept_in_pieces_and_come_back(journal: st.Journal, root: Path) -> None:
    source = random.Random(5)
    for number, size in enumerate((0, 1, 1 << 20, (1 << 20) + 1, 3_500_000)):
        (root / f"{number}").write_bytes(source.randbytes(size))
    before = contents(root)
    one = say(journal)
    journal.workspace.snapshot("t", one, root)
    for path in root.glob("[0-9]"):
        path.write_bytes(b"gone")
    journal.rewind("t", one, files=root)
    assert contents(root) == before


def test_the_same_content_is_kept_once(tmp_path: Path, root: Path) -> None:
    data = random.Random(6).randbytes(2_000_000)
    for kind in ("sqlite", "jsonl", "postgres"):
        with open_store(kind, tmp_path) as journal:
            for thread in ("t", "u"):
                journal.create_thread(thread)
                for name in "abc":
                    (root / name).write_bytes(data)
                journal.workspace.snapshot(thread, say(journal, thread), root)
            assert 2_000_000 < journal.stats().bytes < 4_000_000


def bytes_of(place: Path) -> bytes:
    return b"".join(path.read_bytes() for path in place.rglob("*") if path.is_file() and "root" not in path.parts)


@pytest.mark.parametrize("kind", ["sqlite", "jsonl"])
def test_files_are_gone_from_the_disk_with_the_last_thread_that_sees_them(
    tmp_path: Path, root: Path, kind: str
) -> None:
    source = random.Random(8)
    secret, shared = source.randbytes(3000), source.randbytes(3000)
    with open_store(kind, tmp_path) as journal:
        journal.create_thread("t")
        (root / "shared").write_bytes(shared)
        one = say(journal)
        checkpoint = journal.workspace.snapshot("t", one, root)
        journal.fork("t", at=checkpoint.id, new_id="fork")
        (root / "secret").write_bytes(secret)
        journal.workspace.snapshot("t", say(journal), root)
        assert secret in bytes_of(tmp_path)
        journal.delete_thread("t")
        assert secret not in bytes_of(tmp_path)
        assert shared in bytes_of(tmp_path)
        assert journal.check() == []
        (root / "shared").unlink()
        journal.rewind("fork", checkpoint.id, files=root, conflicts="force")
        assert (root / "shared").read_bytes() == shared
        journal.delete_thread("fork")
        assert shared not in bytes_of(tmp_path)
        assert journal.check() == []


@pytest.mark.parametrize("kind", ["memory", "sqlite", "jsonl", "postgres"])
def test_a_delete_in_the_middle_of_a_snapshot_takes_nothing_that_it_needs(
    tmp_path: Path, root: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "a").write_text("shared with a thread that goes away")
    with open_store(kind, tmp_path) as journal:
        journal.create_thread("t")
        journal.create_thread("u")
        journal.workspace.snapshot("t", say(journal), root)
        commit, is_first = journal.store.commit, True

        def deleting(command: Command) -> Result:
            nonlocal is_first
            if isinstance(command, Append) and command.drafts[0].blobs and is_first:
                is_first = False
                journal.delete_thread("t")
            return commit(command)

        one = say(journal, "u")
        with monkeypatch.context() as patch:
            patch.setattr(journal.store, "commit", deleting)
            journal.workspace.snapshot("u", one, root)
        assert not is_first
        assert journal.check() == []
        (root / "a").write_text("changed")
        journal.rewind("u", one, files=root)
        assert (root / "a").read_text() == "shared with a thread that goes away"


def test_doctor_sees_a_blob_that_is_damaged_or_gone(tmp_path: Path, root: Path) -> None:
    data = random.Random(9).randbytes(5000)
    (root / "a").write_bytes(data)
    with open_store("jsonl", tmp_path) as journal:
        journal.create_thread("t")
        journal.workspace.snapshot("t", say(journal), root)
        packs = list((tmp_path / "journal" / "blobs").iterdir())
        pack = next(path for path in packs if data in path.read_bytes())
        whole = pack.read_bytes()
        pack.write_bytes(whole.replace(data, data[:-1] + bytes([data[-1] ^ 1])))
        assert [finding.kind for finding in journal.check()] == ["blob"]
        pack.unlink()
        assert [finding.kind for finding in journal.check()] == ["blob"]
        pack.write_bytes(whole)
        assert journal.check() == []


def test_a_checkpoint_costs_what_changed_and_not_what_is_there(tmp_path: Path, root: Path) -> None:
    """Manifests are deltas: a thousand files that stay add nothing to a checkpoint."""
    for number in range(1000):
        (root / f"{number}").write_text(f"{number}")
    with open_store("jsonl", tmp_path) as journal:
        journal.create_thread("t")
        one = say(journal)
        journal.workspace.snapshot("t", one, root)
        before = journal.stats().bytes
        for number in range(20):
            (root / "7").write_text(f"changed {number}")
            journal.workspace.snapshot("t", one, root)
        assert journal.stats().bytes - before < 20 * 1000
        journal.workspace.cache.resolved.clear()
        assert len(journal.workspace.diff("t", one, root)) == 0


def test_a_long_chain_of_deltas_becomes_a_whole_manifest_again(plain: st.Journal, root: Path) -> None:
    for number in range(10):
        (root / f"{number}").write_text("start")
    one = say(plain)
    states = []
    for turn in range(30):
        (root / f"{turn % 10}").write_text(f"turn {turn}")
        states.append((plain.workspace.snapshot("t", one, root).id, contents(root)))
    plain.workspace.cache.resolved.clear()
    for checkpoint, state in states[::7]:
        plain.workspace.restore("t", checkpoint, root)
        assert contents(root) == state
    workspace = OpenWorkspace(plain.workspace.cache, root)
    workspace.open()
    assert workspace.stats.chain <= 12
    workspace.close()


def test_a_diff_shows_text_binaries_modes_and_renames(plain: st.Journal, root: Path) -> None:
    (root / "text").write_text("one\ntwo\nthree\n")
    (root / "binary").write_bytes(b"\0\1")
    (root / "script").write_text("run\n")
    (root / "moved").write_text("".join(f"line {number}\n" for number in range(40)))
    (root / "gone").write_text("gone\n")
    one = say(plain)
    plain.workspace.snapshot("t", one, root)
    (root / "text").write_text("one\n2\nthree\n")
    (root / "binary").write_bytes(b"\0\2")
    (root / "script").chmod(0o755)
    (root / "moved").rename(root / "elsewhere")
    with (root / "elsewhere").open("a") as file:
        file.write("one more\n")
    (root / "gone").unlink()
    (root / "link").symlink_to("text")
    found = plain.workspace.diff("t", one, root)
    assert [file.line for file in found] == [
        "M binary (binary)",
        "R moved -> elsewhere",
        "D gone",
        "A link",
        "T script",
        "M text",
    ]
    assert "-two\n+2\n" in found.text
    assert "+one more\n" in found.text
    assert "mode 0644 -> 0755 script\n" in found.text
    assert "Binary file binary changed\n" in found.text
    two = say(plain)
    plain.workspace.snapshot("t", two, root)
    assert plain.workspace.diff("t", one, root, other=two).text == found.text
    assert len(plain.workspace.diff("t", two, root)) == 0


def test_the_own_folder_is_hidden_from_git(plain: st.Journal, root: Path) -> None:
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    plain.workspace.snapshot("t", say(plain), root)
    status = subprocess.run(["git", "status", "--porcelain"], cwd=root, check=True, capture_output=True)
    assert status.stdout == b""


def test_sqlite_reads_blobs_as_of_one_moment(tmp_path: Path, root: Path) -> None:
    """Another process that collects garbage writes packs anew; a reader that has begun must not see half of that."""
    address = f"sqlite:///{tmp_path}/shared.db"
    with st.open(address) as journal, st.open(address) as other:
        journal.create_thread("t")
        (root / "a").write_text("a" * 100)
        (root / "b").write_text("b" * 100)
        journal.workspace.snapshot("t", None, root)
        names = [hashlib.sha256(letter * 100).hexdigest() for letter in (b"a", b"b")]

        class Slowly(list[str]):
            def __iter__(self) -> Iterator[str]:
                yield names[0]
                other.delete_thread("t")
                yield names[1]

        backend = backend_of(journal)
        found = backend.blobs(Slowly(names))
        assert [data_of(blob)[:1] for blob in found] == [b"a", b"b"]
        assert backend.missing_blobs(names) == frozenset(names)
