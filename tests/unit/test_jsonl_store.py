"""The JSONL store on a sound folder: names, files, forks, deletes, many processes' views."""

from __future__ import annotations

import errno
import json
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from zlib import crc32

import pytest
from msgspec import UNSET

from jsonl_commands import EVERYTHING, all_bytes, append, create, delete, do, draft, fork, ids, portrait, tree_file
from known import present
from sessiontree.errors import (
    ForeignStoreError,
    InvalidInputError,
    NewerFormatError,
    StoreClosedError,
    StoreReadOnlyError,
    ThreadExistsError,
    ThreadNotFoundError,
)
from sessiontree.model import Custom, UnknownPayload
from sessiontree.stores._io import Files
from sessiontree.stores.commands import Deleted, MoveLeaf
from sessiontree.stores.embedded import EmbeddedStore
from sessiontree.stores.jsonl import JsonlBackend
from sessiontree.stores.queries import ReadEntries, ReadPath

WEIRD_IDS = (
    "", ".", "..", "../../escape", "/absolute", "a/b", "a\\b", "nul\0inside", "new\nline", "CON", "Case", "case",
    "x" * 10_000, "snowman \N{SNOWMAN}", "'; DROP TABLE thread; --", "trailing.jsonl", "-rf", " ",
)  # fmt: skip


@pytest.fixture
def store(tmp_path: Path) -> Iterator[JsonlBackend]:
    backend = JsonlBackend(tmp_path / "store")
    yield backend
    backend.close()


def test_what_was_written_is_there_when_the_folder_is_opened_again(tmp_path: Path) -> None:
    first = JsonlBackend(tmp_path / "store")
    do(first, create("t", title="demo"), append("t", "e1", "e2"), append("t", "e3", parent="e1"), fork("t", "f", "e2"))
    before = portrait(first)
    first.close()
    second = JsonlBackend(tmp_path / "store")
    assert portrait(second) == before
    assert second.inspect() == []
    second.close()


def test_every_line_is_json_and_ends_with_the_checksum_of_what_stands_before_it(
    store: JsonlBackend, tmp_path: Path
) -> None:
    do(store, create("t"), append("t", "e1", "e2"), append("t", "e3", parent="e1"), fork("t", "f"))
    lines = tree_file(tmp_path / "store").read_bytes().splitlines()
    assert [json.loads(line)["kind"] for line in lines] == [
        "tree",
        "thread",
        "entry",
        "entry",
        "thread",  # its title, from the first text
        "move",
        "entry",
        "thread",
    ]
    for line in lines:
        content, crc = line.split(b',"crc":"')
        assert crc == b'%08x"}' % crc32(content)


def test_an_entry_line_holds_the_sealed_body_byte_for_byte(store: JsonlBackend, tmp_path: Path) -> None:
    sealed = draft("e1", "needle in the file")
    do(store, create("t"), append("t", sealed))
    assert b'"payload":' + sealed.body + b',"crc"' in tree_file(tmp_path / "store").read_bytes()


def test_a_body_of_a_newer_version_comes_back_byte_for_byte(store: JsonlBackend) -> None:
    payload = UnknownPayload(type="hologram", body=b'{"type":"hologram", "depth": 3.0}')
    do(store, create("t"), append("t", draft("e1", payload), "e2"))
    assert store.entry("t", "e1").payload == payload
    assert store.inspect() == []


def test_an_entry_that_cannot_be_written_is_refused_and_its_neighbours_are_written(store: JsonlBackend) -> None:
    bad = append("t", "e1", draft("\ud800", "half a character"))
    outcomes = store.write([create("t"), bad, append("t", "e2")])
    assert isinstance(outcomes[1], InvalidInputError)
    assert ids(store, "t") == ["e2"]


def test_any_string_is_a_thread_id_and_an_entry_id(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    store = JsonlBackend(folder)
    for name in WEIRD_IDS:
        do(
            store,
            create(name),
            append(name, draft(name, f"in {name[:50]}"), draft("second", "x")),
            fork(name, "fork of " + name),
        )
    store.close()
    again = JsonlBackend(folder)
    for name in WEIRD_IDS:
        assert ids(again, name) == [name, "second"]
        assert again.thread("fork of " + name).forked_from_thread == name
    assert len(again.threads(EVERYTHING).threads) == 2 * len(WEIRD_IDS)
    assert [path for path in tmp_path.iterdir() if path != folder] == []
    for name in WEIRD_IDS:
        do(again, delete(name), delete("fork of " + name))
    assert list((folder / "trees").iterdir()) + list((folder / "forks").iterdir()) == []
    again.close()


def test_a_lone_surrogate_matches_no_thread_and_does_not_crash(store: JsonlBackend) -> None:
    assert isinstance(store.write([create("\ud800")])[0], InvalidInputError)
    with pytest.raises(ThreadNotFoundError):
        store.thread("\ud800")


def test_only_the_owner_can_read_the_files(store: JsonlBackend, tmp_path: Path) -> None:
    do(store, create("t"), append("t", "e1"), fork("t", "f"))
    store.threads(EVERYTHING)
    for path in (tmp_path / "store", *(tmp_path / "store").rglob("*")):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path


def test_a_folder_that_is_not_ours_is_refused_and_left_untouched(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(ForeignStoreError):
        JsonlBackend(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]
    with pytest.raises(ForeignStoreError):
        JsonlBackend(tmp_path / "notes.txt")


@pytest.mark.parametrize(
    ("marker", "error"),
    [
        (b'{"format":"sessiontree-jsonl","version":2}', NewerFormatError),
        (b'{"format":"other","version":1}', ForeignStoreError),
        (b"\xff", ForeignStoreError),
    ],
)
def test_a_marker_of_another_kind_or_time_is_refused(tmp_path: Path, marker: bytes, error: type[Exception]) -> None:
    (tmp_path / "sessiontree.json").write_bytes(marker)
    with pytest.raises(error):
        JsonlBackend(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["sessiontree.json"]


def test_a_line_of_sixty_four_megabytes_works(store: JsonlBackend, tmp_path: Path) -> None:
    big = "b" * (64 << 20)
    do(store, create("t"), append("t", "e1"), append("t", draft("big", big)), append("t", "e3"))
    again = JsonlBackend(tmp_path / "store")
    assert present(again.entry("t", "big").message).text == big
    assert ids(again, "t") == ["e1", "big", "e3"]
    again.close()


def test_a_deleted_thread_leaves_no_byte_in_the_folder(store: JsonlBackend, tmp_path: Path) -> None:
    folder = tmp_path / "store"
    do(store, create("secretroot", title="secrettitle"), append("secretroot", draft("shared", "common ground")))
    do(store, fork("secretroot", "keeper", "shared"), fork("secretroot", "secretfork"))
    do(store, append("secretroot", draft("own", "secrettext")), append("secretfork", draft("forked", "secretforktext")))
    do(store, append("keeper", "kept"))
    store.threads(EVERYTHING)
    (folder / "torn" / (tree_file(folder).name + ".7.torn")).write_bytes(b"secretleftover")
    assert do(store, delete("secretfork")) == Deleted(thread_id="secretfork", entries_removed=1, entries_kept=0)
    assert do(store, delete("secretroot")) == Deleted(thread_id="secretroot", entries_removed=1, entries_kept=1)
    left = all_bytes(folder)
    for gone in (b"secrettitle", b"secrettext", b"secretforktext", b"secretfork", b"secretleftover"):
        assert gone not in left
    assert ids(store, "keeper") == ["shared", "kept"]
    assert store.entry("keeper", "shared").thread_id == "secretroot"
    do(store, delete("keeper"))
    left = all_bytes(folder)
    assert b"common ground" not in left
    assert b"secretroot" not in left
    assert list((folder / "trees").iterdir()) == []


def test_a_root_that_was_deleted_can_be_made_again_beside_its_forks(store: JsonlBackend, tmp_path: Path) -> None:
    do(store, create("r"), append("r", "e1", "e2"), fork("r", "f", "e1"), delete("r"), create("r"), append("r", "e9"))
    again = JsonlBackend(tmp_path / "store")
    for backend in (store, again):
        assert ids(backend, "r") == ["e9"]
        assert ids(backend, "f") == ["e1"]
        assert [entry.id for entry in backend.entries(ReadEntries(thread_id="r"))] == ["e9"]
    again.close()


def test_cursors_of_new_entries_survive_a_rewrite_of_the_file(store: JsonlBackend) -> None:
    do(store, create("t"), append("t", "e1", "e2"), fork("t", "f"), append("f", "f1"), append("t", "e3"))
    cursor = store.new_entries("f", None).cursor
    do(store, append("t", "e4"), delete("t"), append("f", "f2"))
    found = store.new_entries("f", cursor)
    assert [entry.id for entry in found.entries] == ["f2"]
    assert store.new_entries("f", found.cursor).entries == ()


def test_numbers_of_deleted_entries_are_not_given_again(store: JsonlBackend, tmp_path: Path) -> None:
    do(store, create("t"), append("t", "e1"), fork("t", "f"), append("t", "e2", "e3"))
    cursor = store.new_entries("t", None).cursor
    do(store, delete("t"), append("f", "f1"))
    again = JsonlBackend(tmp_path / "store")
    do(again, append("f", "f2"))
    assert again.new_entries("f", None).cursor > cursor + 1
    again.close()


def test_two_stores_on_one_folder_see_each_others_writes(tmp_path: Path) -> None:
    one, two = JsonlBackend(tmp_path / "store"), JsonlBackend(tmp_path / "store")
    do(one, create("t"))
    for number in range(30):
        do((one, two)[number % 2], append("t", f"e{number}"))
    assert ids(one, "t") == ids(two, "t") == [f"e{number}" for number in range(30)]
    do(two, fork("t", "f", "e3"))
    assert ids(one, "f") == ["e0", "e1", "e2", "e3"]
    mark = one.mark("f")
    do(two, append("f", "f1"))
    assert one.mark("f") != mark
    do(one, delete("t"))
    assert ids(two, "f") == ["e0", "e1", "e2", "e3", "f1"]
    with pytest.raises(ThreadNotFoundError):
        two.thread("t")
    do(two, append("f", "f2"))
    assert portrait(one) == portrait(two)
    one.close()
    two.close()


def test_a_reader_notices_a_rewritten_file_that_grew_again_before_it_looked(tmp_path: Path) -> None:
    writer, reader = JsonlBackend(tmp_path / "store"), JsonlBackend(tmp_path / "store")
    do(writer, create("t"), append("t", "e1"), fork("t", "f"), append("t", "e2"))
    assert ids(reader, "t") == ["e1", "e2"]
    do(writer, delete("t"), append("f", draft("f1", "long " * 500)))
    assert ids(reader, "f") == ["e1", "f1"]
    with pytest.raises(ThreadNotFoundError):
        reader.thread("t")
    writer.close()
    reader.close()


def test_a_mark_changes_with_the_thread_and_only_then(store: JsonlBackend) -> None:
    before = store.mark("t")
    do(store, create("t"))
    made = store.mark("t")
    assert made != before
    assert store.mark("t") == made
    do(store, MoveLeaf(thread_id="t", to_entry=None, reason="reset", at_ns=1))
    assert store.mark("t") == made


WORKER = """
import sys
sys.path.insert(0, sys.argv[3])
from pathlib import Path
from jsonl_commands import append, do
from sessiontree.stores.jsonl import JsonlBackend
store = JsonlBackend(Path(sys.argv[1]))
for number in range(60):
    do(store, append("shared", f"{sys.argv[2]}-{number}"))
store.close()
"""


def test_processes_that_write_the_same_thread_lose_nothing(store: JsonlBackend, tmp_path: Path) -> None:
    do(store, create("shared"))
    tests = str(Path(__file__).parents[1])
    workers = [
        subprocess.Popen([sys.executable, "-c", WORKER, str(tmp_path / "store"), str(number), tests])
        for number in range(4)
    ]
    assert [worker.wait() for worker in workers] == [0] * 4
    found = ids(store, "shared")
    assert len(found) == 240
    for worker in range(4):
        own = [name for name in found if name.startswith(f"{worker}-")]
        assert own == [f"{worker}-{number}" for number in range(60)]
    assert store.inspect() == []


def test_a_group_with_deletes_in_it_keeps_the_order_of_its_commands(store: JsonlBackend) -> None:
    outcomes = store.write([create("t"), append("t", "e1"), delete("t"), append("t", "e2"), create("t"), create("t")])
    assert [type(outcome).__name__ for outcome in outcomes] == [
        "Thread", "tuple", "Deleted", "ThreadNotFoundError", "Thread", "ThreadExistsError",
    ]  # fmt: skip
    assert ids(store, "t") == []


def test_a_fork_id_that_is_taken_in_another_tree_is_refused(store: JsonlBackend) -> None:
    do(store, create("a"), create("b"))
    assert isinstance(store.write([fork("a", "b")])[0], ThreadExistsError)
    do(store, fork("a", "f"))
    assert isinstance(store.write([create("f")])[0], ThreadExistsError)


def test_an_orphan_pointer_of_a_crashed_fork_is_harmless(store: JsonlBackend, tmp_path: Path) -> None:
    do(store, create("a"), create("b"), fork("a", "f"))
    (pointer,) = (tmp_path / "store" / "forks").iterdir()
    content = pointer.read_bytes()
    do(store, delete("f"))
    pointer.write_bytes(content)
    assert store.inspect() == []
    with pytest.raises(ThreadNotFoundError):
        store.thread("f")
    do(store, fork("b", "f"))
    assert store.thread("f").tree == "b"


def test_a_closed_store_says_so(tmp_path: Path) -> None:
    store = JsonlBackend(tmp_path / "store")
    store.close()
    store.close()
    with pytest.raises(StoreClosedError):
        store.write([create("t")])
    with pytest.raises(StoreClosedError):
        store.thread("t")


def test_more_trees_than_the_cache_holds_stay_readable(store: JsonlBackend) -> None:
    for number in range(300):
        do(store, create(f"t{number}"))
    group = [append(f"t{number}", "e") for number in range(300)]
    assert all(isinstance(outcome, tuple) for outcome in store.write(group))
    assert all(ids(store, f"t{number}") == ["e"] for number in range(300))
    assert len(list(Path("/proc/self/fd").iterdir())) < 400


def test_it_works_behind_the_committer(tmp_path: Path) -> None:
    store = EmbeddedStore(JsonlBackend(tmp_path / "store"))
    store.commit(create("t"))
    store.commit(append("t", draft("e1", Custom(name="n", data={"k": [1]}))))
    assert [entry.id for entry in store.read(ReadPath(thread_id="t", leaf=UNSET))] == ["e1"]
    store.close()


def test_readers_in_other_threads_always_see_whole_commands(store: JsonlBackend) -> None:
    do(store, create("t"))
    stop = threading.Event()
    seen: list[int] = []

    def read() -> None:
        while not stop.is_set():
            seen.append(len(ids(store, "t")) % 3 + len(store.threads(EVERYTHING).threads) - 1)

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    for number in range(60):
        do(store, append("t", *(f"{number}-{part}" for part in range(3))))
    stop.set()
    for reader in readers:
        reader.join()
    assert set(seen) == {0}


def test_a_folder_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    class Locked(Files):
        def make_folder(self, path: Path) -> None:
            raise PermissionError(errno.EACCES, "denied")

    with pytest.raises(StoreReadOnlyError):
        JsonlBackend(tmp_path / "store", files=Locked())
