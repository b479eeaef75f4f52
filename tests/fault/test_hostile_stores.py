"""A store that someone tampered with: its blobs and manifests cost neither memory nor rights, and raise our errors only."""

from __future__ import annotations

import errno
import fcntl
import stat
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

import sessiontree as st
from sessiontree.model import Checkpoint
from sessiontree.model.blobs import Blob, _zstd, blob_of, check_blob, data_of, hash_of
from sessiontree.model.manifest import ItemKind, Manifest, ManifestItem, decode_manifest, encode_manifest
from sessiontree.stores.commands import PutBlobs
from sessiontree.stores.jsonl.packs import _LENGTH_BYTES, _MAGIC

BOMB_BYTES = 256 << 20


def bomb(size: int) -> Blob:
    """A few kilobytes that expand to ``BOMB_BYTES``, recorded with another size."""
    compressor = _zstd().ZstdCompressor()
    piece = bytes(1 << 20)
    body = b"".join([*(compressor.compress(piece) for _ in range(BOMB_BYTES >> 20)), compressor.flush()])
    return Blob(hash="00" * 32, size=size, body=body)


def peak_of(use: Callable[[Blob], object], blob: Blob) -> int:
    tracemalloc.start()
    try:
        with pytest.raises(st.DamagedDataError):
            use(blob)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("use", [data_of, check_blob])
def test_a_few_kilobytes_of_a_blob_expanded_to_gigabytes(use: Callable[[Blob], object]) -> None:
    assert peak_of(use, bomb(1000)) < 8 << 20


def test_a_check_kept_a_whole_blob_in_memory() -> None:
    assert peak_of(check_blob, bomb(BOMB_BYTES)) < 8 << 20


@pytest.mark.parametrize("cut", [1, 5, 50])
def test_a_blob_without_its_end_is_damaged(cut: int) -> None:
    data = bytes(range(256)) * 100
    whole = blob_of(data)
    with pytest.raises(st.DamagedDataError):
        data_of(Blob(hash=whole.hash, size=whole.size, body=whole.body[:-cut]))
    assert data_of(whole) == data


def checkpoint(journal: st.Journal, path: str, kind: ItemKind, mode: int, content: bytes) -> str:
    """Store a checkpoint with one item, as a program that wrote the store itself could have."""
    blob = blob_of(content)
    item = ManifestItem(kind, mode, len(content), bytes.fromhex(blob.hash) if kind == "file" else content)
    manifest = encode_manifest(Manifest(changed={path: item}))
    journal.store.commit(PutBlobs(blobs=(blob, blob_of(manifest))))
    target = journal.append("t", st.user("x")).id
    return journal.append("t", Checkpoint(target=target, root="", manifest=hash_of(manifest))).id


@pytest.mark.parametrize(("mode", "expected"), [(0o6755, 0o755), (0o1777, 0o777), (-2, 0o644), (-0o4000, 0o644)])
def test_a_manifest_made_files_setuid(tmp_path: Path, mode: int, expected: int) -> None:
    root = tmp_path / "root"
    root.mkdir()
    with st.open("memory:") as journal:
        journal.create_thread("t")
        entry = checkpoint(journal, "program", "file", mode, b"#!/bin/sh\n")
        journal.workspace.restore("t", entry, root)
    assert stat.S_IMODE((root / "program").stat().st_mode) == expected


def test_a_restore_leaves_the_setgid_bit_of_a_folder_alone(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "shared").mkdir(parents=True)
    (root / "shared").chmod(0o2775)
    (root / "shared" / "a").write_text("one")
    with st.open("memory:") as journal:
        journal.create_thread("t")
        entry = journal.append("t", st.user("x")).id
        journal.workspace.snapshot("t", entry, root)
        (root / "shared").chmod(0o2700)
        journal.workspace.restore("t", entry, root)
    assert stat.S_IMODE((root / "shared").stat().st_mode) == 0o2775


@pytest.mark.parametrize("target", [b"a\0b", b"", b"x" * 5000])
def test_the_target_of_a_link_raised_an_error_of_python(tmp_path: Path, target: bytes) -> None:
    root = tmp_path / "root"
    root.mkdir()
    with st.open("memory:") as journal:
        journal.create_thread("t")
        entry = checkpoint(journal, "link", "link", 0o777, target)
        with pytest.raises(st.UnsafePathError, match="target"):
            journal.workspace.restore("t", entry, root)
    assert [path.name for path in root.iterdir()] == [".sessiontree"]


@pytest.mark.parametrize("kind", ["sqlite", "jsonl"])
def test_a_lock_that_failed_raised_an_error_of_the_system(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    flock = fcntl.flock

    def failing(file: int, operation: int) -> None:
        if operation & fcntl.LOCK_EX:
            raise OSError(errno.EIO, "Input/output error")
        flock(file, operation)

    with st.open(f"{kind}:///{tmp_path / 'store'}") as journal:
        journal.create_thread("t")
        with monkeypatch.context() as patch:
            patch.setattr(fcntl, "flock", failing)
            with pytest.raises(st.StoreUnavailableError):
                journal.append("t", st.user("x"))
            with pytest.raises(st.StoreUnavailableError):
                journal.delete_thread("t")
        journal.append("t", st.user("x"))


@pytest.mark.parametrize("kind", ["sqlite", "jsonl"])
def test_an_unlock_that_failed_made_a_committed_append_look_failed(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    flock = fcntl.flock

    def failing(file: int, operation: int) -> None:
        if operation == fcntl.LOCK_UN:
            raise OSError(errno.EIO, "Input/output error")
        flock(file, operation)

    url = f"{kind}:///{tmp_path / 'store'}"
    with st.open(url) as journal, st.open(url) as other:
        journal.create_thread("t")
        with monkeypatch.context() as patch:
            patch.setattr(fcntl, "flock", failing)
            journal.append("t", st.user("x"))
        other.append("t", st.user("y"))
        journal.append("t", st.user("z"))
        assert journal.thread("t").entries == 3


def test_modes_of_a_manifest_are_permissions_only() -> None:
    items = {str(mode): ManifestItem("file", mode, 0, b"\0" * 32) for mode in (-1, -2, 0o644, 0o7777, 1 << 40)}
    decoded = decode_manifest(encode_manifest(Manifest(changed=items))).changed
    assert {name: item.mode for name, item in decoded.items()} == {
        "-1": -1, "-2": -1, str(0o644): 0o644, str(0o7777): 0o777, str(1 << 40): 0
    }  # fmt: skip


def _one_pack(tmp_path: Path) -> tuple[str, Path, str]:
    """A JSONL store with one artifact; its address, the pack, and the artifact's hash."""
    url = f"jsonl:///{tmp_path / 'trees'}"
    with st.open(url) as journal:
        journal.create_thread("t")
        reference = journal.put_artifact(b"content " * 100, mime="text/plain")
        journal.append("t", st.user([st.FilePart(artifact=reference)]))
    [pack] = (tmp_path / "trees" / "blobs").glob("*.pack")
    return url, pack, reference.sha256


def test_a_pack_with_a_damaged_length_took_gigabytes(tmp_path: Path) -> None:
    url, pack, _ = _one_pack(tmp_path)
    content = pack.read_bytes()
    length_at = content.index(b"\x91") - _LENGTH_BYTES
    pack.write_bytes(
        content[:length_at] + b"\x7f" + b"\xff" * (_LENGTH_BYTES - 1) + content[length_at + _LENGTH_BYTES :]
    )
    with st.open(url) as journal:
        tracemalloc.start()
        try:
            assert {finding.kind for finding in journal.check()} == {"blob"}
            assert tracemalloc.get_traced_memory()[1] < 64 << 20
        finally:
            tracemalloc.stop()


@pytest.mark.parametrize(
    ("start", "length"), [(0, 1 << 40), (0, -1), (-5, 10), (1 << 62, 10), ((1 << 64) - 1, (1 << 64) - 1)]
)
def test_a_pack_with_a_damaged_index_took_gigabytes(tmp_path: Path, start: int, length: int) -> None:
    url, pack, name = _one_pack(tmp_path)
    index = msgspec.msgpack.encode([(bytes.fromhex(name), 800, start, length)])
    pack.write_bytes(_MAGIC + len(index).to_bytes(_LENGTH_BYTES) + index + b"body")
    with st.open(url) as journal:
        tracemalloc.start()
        try:
            assert {finding.kind for finding in journal.check()} == {"blob"}
            assert tracemalloc.get_traced_memory()[1] < 64 << 20
        finally:
            tracemalloc.stop()
