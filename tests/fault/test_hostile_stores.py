"""A store that someone tampered with: its blobs and manifests cost neither memory nor rights, and raise our errors only."""

from __future__ import annotations

import errno
import fcntl
import sqlite3
import stat
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from zlib import crc32

import msgspec
import pytest

import sessiontree as st
from sessiontree.model import Checkpoint
from sessiontree.model.blobs import Blob, _zstd, blob_of, check_blob, data_of, hash_of
from sessiontree.model.manifest import ItemKind, Manifest, ManifestItem, decode_manifest, encode_manifest
from sessiontree.stores.backup.folder import BackupFolder
from sessiontree.stores.backup.manifest import Manifest as BackupManifest
from sessiontree.stores.backup.snapshot import Snapshot, SnapshotFile
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


def crafted_folder(tmp_path: Path) -> Path:
    """A JSONL store beside a file of somebody else."""
    with st.open(f"jsonl:///{tmp_path / 'trees'}") as journal:
        journal.create_thread("t")
        journal.append("t", st.user("hello"))
    (tmp_path / "victim.jsonl").write_bytes(b"mine\n")
    return tmp_path / "trees"


def crafted_plan(**fields: object) -> bytes:
    return msgspec.json.encode(fields)


def crafted_log(text: bytes, **fields: object) -> bytes:
    header = {"tree": "t", "offset": 0, "length": len(text), "crc": f"{crc32(text):08x}"} | fields
    return msgspec.json.encode(header) + b"\n" + text


def restored_backup_of(store: Path) -> Path:
    """What becomes of a backup in which somebody put all files of a store."""
    files = tuple(
        SnapshotFile(name=path.relative_to(store).as_posix(), size=path.stat().st_size, read=partial(_content, path))
        for path in store.rglob("*")
        if path.is_file()
    )
    backups = BackupFolder(store.with_name("backups"))
    backups.create()
    stored = [file for file, _ in backups.add_pieces(Snapshot(kind="jsonl", place="", files=files), {}, None)]
    backups.complete(BackupManifest(version=1, created_ns=1, kind="jsonl", place="", files=tuple(stored)))
    with suppress(st.SessionTreeError):
        st.restore_backup(backups.path, store.with_name("restored"))
    return store.with_name("restored")


def _content(path: Path) -> Iterator[bytes]:
    yield path.read_bytes()


OUT = "../../victim"
LINES = {"tree": OUT, "offset": 5, "text": b"not mine\n"}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("commit.json", crafted_plan(lines=[LINES])),
        ("commit.json", crafted_plan(removed=[OUT])),
        ("commit.json", crafted_plan(rewritten=[OUT])),
        ("commits.log", crafted_log(b"not mine\n", tree=OUT, offset=5)),
    ],
)
@pytest.mark.parametrize("is_restored", [False, True])
def test_a_commit_in_a_crafted_store_changed_files_outside_of_it(
    tmp_path: Path, name: str, content: bytes, is_restored: bool
) -> None:
    folder = crafted_folder(tmp_path)
    (tmp_path / "victim.jsonl.new").write_bytes(b"not mine\n")
    (folder / name).write_bytes(content)
    if is_restored:
        folder = restored_backup_of(folder)
    with suppress(st.SessionTreeError), st.open(f"jsonl:///{folder}") as journal:
        journal.append("t", st.user("more"))
    assert (tmp_path / "victim.jsonl").read_bytes() == b"mine\n"
    assert (tmp_path / "victim.jsonl.new").read_bytes() == b"not mine\n"


def changed_line(tmp_path: Path, kind: bytes, **changes: object) -> str:
    """A JSONL store in which a line of a kind was changed, with a checksum that fits; its address."""
    folder = crafted_folder(tmp_path)
    [file] = (folder / "trees").iterdir()
    lines = file.read_bytes().splitlines()
    number = next(number for number, line in enumerate(lines) if line.startswith(b'{"kind":"%b"' % kind))
    fields = msgspec.json.decode(lines[number], type=dict[str, msgspec.Raw])
    del fields["crc"]
    for name, value in changes.items():
        fields[name] = value if isinstance(value, msgspec.Raw) else msgspec.Raw(msgspec.json.encode(value))
    text = msgspec.json.encode(fields)[:-1]
    lines[number] = b'%b,"crc":"%08x"}' % (text, crc32(text))
    file.write_bytes(b"\n".join(lines) + b"\n")
    return f"jsonl:///{folder}"


HUGE = msgspec.Raw(b"1" + b"0" * 30)
DEEP = msgspec.Raw(b"[" * 5000 + b"]" * 5000)
THREAD = b'{"id":"t","tree":"t","created_ns":%b,"updated_ns":1,"custom":%b}'


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        (b"entry", {"payload": {"type": "user_message", "message": 7}}),
        (b"entry", {"payload": msgspec.Raw(b'{"type":"user_message","message":"\xff"}')}),
        (b"entry", {"payload": msgspec.Raw(b'{"type":"custom","name":"n","data":%b}' % bytes(DEEP))}),
        (b"entry", {"payload": {"type": "checkpoint", "manifest": 7}}),
        (b"entry", {"at": HUGE}),
        (b"entry", {"n": HUGE}),
        (b"thread", {"thread": msgspec.Raw(THREAD % (bytes(HUGE), b"{}"))}),
        (b"thread", {"thread": msgspec.Raw(THREAD % (b"1", b'{"a":%b}' % bytes(DEEP)))}),
        (b"thread", {"thread": msgspec.Raw(THREAD % (b"1", b'{"a":"\xff"}'))}),
        (b"tree", {"last": HUGE}),
    ],
)
def test_a_crafted_line_with_a_checksum_that_fits_raised_errors_of_python(
    tmp_path: Path, kind: bytes, changes: dict[str, object]
) -> None:
    with st.open(changed_line(tmp_path, kind, **changes)) as journal:
        for read in (
            journal.list_threads,
            journal.stats,
            lambda: journal.entries("t"),
            lambda: journal.context("t"),
            lambda: journal.search("hello"),
            lambda: journal.append("t", st.user("more")),
            journal.repair,
            journal.check,
        ):
            with suppress(st.SessionTreeError):
                read()


def test_an_entry_that_cannot_be_decoded_hid_its_whole_thread(tmp_path: Path) -> None:
    with st.open(changed_line(tmp_path, b"entry", payload={"type": "user_message", "message": 7})) as journal:
        more = journal.append("t", st.user("more"))
        assert [entry.type for entry in journal.entries("t")] == ["damaged", "user_message"]
        assert [entry.id for entry in journal.path("t")][-1] == more.id
        assert [(found.kind, found.problem) for found in journal.check()] == [("content", "the content cannot be read")]


@pytest.mark.parametrize("length", [-120, 1 << 70])
def test_a_log_with_a_crafted_length_was_read_without_an_end(tmp_path: Path, length: int) -> None:
    folder = crafted_folder(tmp_path)
    (folder / "commits.log").write_bytes(crafted_log(b"", length=length))
    with st.open(f"jsonl:///{folder}") as journal:
        journal.append("t", st.user("more"))
        assert journal.check() == []


@pytest.mark.parametrize("note", [bytes(50), b"\xff\n", b"../../victim\n", b"t\0\n", b"x" * 5000, b"\n\n"])
def test_a_note_of_a_failed_sync_that_a_power_cut_garbled_closed_the_store(tmp_path: Path, note: bytes) -> None:
    folder = crafted_folder(tmp_path)
    (folder / "unsynced").write_bytes(note)
    with st.open(f"jsonl:///{folder}") as journal:
        journal.append("t", st.user("more"))
        assert journal.check() == []


def test_a_number_of_deletions_that_is_none_raised_an_error_of_python(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with st.open(path) as journal:
        journal.create_thread("t")
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("UPDATE store_meta SET deletions = 'many'")
    with suppress(st.DamagedDataError), st.open(path) as journal:
        journal.append("t", st.user("more"))
