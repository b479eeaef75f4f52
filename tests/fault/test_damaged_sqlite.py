"""Whatever happened to a file of an SQLite store: only our own errors come out, and an open that fails changes nothing."""

from __future__ import annotations

import os
import random
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

import sessiontree as st
from property_settings import IS_DEEP

PAGE = 8192
TIMES = 60 if IS_DEEP else 12
SIDES = ("store.db-wal", "store.db-shm", "store.db-gate", "store.db-journal")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A store with something in every table that an open, a read or an append looks at."""
    path = tmp_path_factory.mktemp("whole") / "store.db"
    root = tmp_path_factory.mktemp("root")
    (root / "file").write_text("kept")
    with st.open(path) as journal:
        journal.create_thread("t", tags=("a",))
        for number in range(30):
            journal.append("t", st.user(f"hello {number} " * 40), id=f"e{number}")
        journal.workspace.snapshot("t", "e3", root)
        journal.fork("t", at="e5", new_id="f")
        journal.rewind("t", "e20")
        journal.acquire_lease("f", owner="o")
    return path.read_bytes()


@pytest.fixture(scope="module")
def with_log(tmp_path_factory: pytest.TempPathFactory, whole: bytes) -> dict[str, bytes]:
    """The same after a crash: the newest entries are in the log alone."""
    path = tmp_path_factory.mktemp("log") / "store.db"
    path.write_bytes(whole)
    in_child(lambda: _append_ten(path))
    return files_in(path.parent)


def _append_ten(path: Path) -> None:
    journal = st.open(path)
    for number in range(10):
        journal.append("t", st.user("more " * 40), id=f"new{number}")


def in_child(work: Callable[[], object]) -> None:
    """Done by a process that ends without closing anything."""
    child = os.fork()
    if child == 0:
        work()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0


def files_in(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def use(path: Path) -> None:
    """Open, read, append: whatever goes wrong must be an error of ours; anything else leaves this function."""
    before = path.read_bytes()
    try:
        journal = st.open(path)
    except st.SessionTreeError:
        assert path.read_bytes() == before
        return
    steps: tuple[Callable[[], object], ...] = (
        journal.list_threads,
        lambda: journal.path("t"),
        lambda: journal.entries("f"),
        lambda: journal.context("t"),
        journal.stats,
        lambda: journal.append("t", st.user("new")),
        lambda: journal.create_thread("fresh"),
        lambda: journal.acquire_lease("t", owner="o"),
        journal.check,
        lambda: journal.search("hello"),
        lambda: journal.delete_thread("t"),
        journal.close,
    )
    for step in steps:
        with suppress(st.SessionTreeError):
            step()


def spoiled(whole: bytes, dice: random.Random, first: int, last: int) -> bytes:
    content = bytearray(whole)
    for _ in range(dice.choice([1, 3, 20])):
        content[dice.randrange(first, last)] = dice.randrange(256)
    return bytes(content)


def damaged_files(whole: bytes) -> Iterator[tuple[str, bytes]]:
    dice = random.Random(7)
    pages = len(whole) // PAGE
    for size in (1, 99, 100, 512, PAGE - 1, PAGE, PAGE + 1, *(dice.randrange(len(whole)) for _ in range(12))):
        yield f"cut at {size}", whole[:size]
    for number in range(TIMES):
        yield f"head {number}", spoiled(whole, dice, 0, 100)
        yield f"first page {number}", spoiled(whole, dice, 100, PAGE)
        yield f"anywhere {number}", spoiled(whole, dice, 100, len(whole))
    for page in range(0, pages, 60 // TIMES):
        start, end = max(100, page * PAGE), (page + 1) * PAGE
        for name, filling in (("zeros", bytes(end - start)), ("noise", dice.randbytes(end - start))):
            yield f"{name} in page {page}", whole[:start] + filling + whole[end:]
    for _ in range(TIMES):
        one, other = dice.sample(range(1, pages), 2)
        copied = whole[other * PAGE : (other + 1) * PAGE]
        yield f"page {other} over {one}", whole[: one * PAGE] + copied + whole[(one + 1) * PAGE :]


def test_a_spoiled_file_gives_typed_errors_only(whole: bytes, tmp_path: Path) -> None:
    for number, (what, content) in enumerate(damaged_files(whole)):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "store.db").write_bytes(content)
        try:
            use(folder / "store.db")
        except Exception as error:
            error.add_note(what)
            raise


def test_a_spoiled_log_gives_typed_errors_only(with_log: dict[str, bytes], tmp_path: Path) -> None:
    dice = random.Random(7)
    store, log = with_log["store.db"], with_log["store.db-wal"]
    cases = [
        {"store.db": store, "store.db-wal": dice.randbytes(20_000), "store.db-shm": dice.randbytes(32_768)},
        {"store.db": store, "store.db-wal": log, "store.db-shm": dice.randbytes(32_768)},
        {"store.db": store, "store.db-shm": dice.randbytes(100)},
    ]
    for _ in range(15):
        cases += [
            {**with_log, "store.db-wal": spoiled(log, dice, 0, len(log))},
            {**with_log, "store.db-wal": log[: dice.randrange(len(log))]},
            {**with_log, "store.db": store[: dice.randrange(len(store))]},
        ]
    for number, files in enumerate(cases):
        folder = tmp_path / str(number)
        folder.mkdir()
        for name, content in files.items():
            (folder / name).write_bytes(content)
        use(folder / "store.db")


@pytest.mark.parametrize(
    ("spoil", "error"),
    [
        ("PRAGMA user_version = 99", st.NewerFormatError),
        ("UPDATE sqlite_schema SET sql = 'nonsense'", st.DamagedDataError),
    ],
)
def test_an_open_that_fails_leaves_the_log_where_it_is(
    whole: bytes, tmp_path: Path, spoil: str, error: type[st.SessionTreeError]
) -> None:
    """Whoever closes a file of SQLite last moves its log into it."""
    path = tmp_path / "store.db"
    path.write_bytes(whole)

    def crash() -> None:
        connection = sqlite3.connect(path, isolation_level=None)
        connection.execute("PRAGMA writable_schema = 1")
        connection.execute(spoil)

    in_child(crash)
    log = (tmp_path / "store.db-wal").read_bytes()
    assert log
    with pytest.raises(error):
        st.open(path)
    assert path.read_bytes() == whole
    assert (tmp_path / "store.db-wal").read_bytes() == log


def test_an_open_that_fails_gives_its_files_back(whole: bytes, tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    path.write_bytes(whole[: 2 * PAGE])
    held = len(list(Path("/proc/self/fd").iterdir()))
    with pytest.raises(st.DamagedDataError) as caught:
        st.open(path)
    assert len(list(Path("/proc/self/fd").iterdir())) == held
    assert caught.value.__cause__ is not None


ODD: dict[str, Callable[[Path], object]] = {
    "folder": Path.mkdir,
    "pipe": os.mkfifo,
    "link to nothing": lambda path: path.symlink_to("nowhere/file"),
    "link to itself": lambda path: path.symlink_to(path),
}


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("name", SIDES)
def test_a_special_file_in_the_place_of_a_plain_one_is_refused(
    whole: bytes, tmp_path: Path, name: str, odd: str
) -> None:
    """In a child with a time limit, as a pipe would be waited for."""
    path = tmp_path / "store.db"
    path.write_bytes(whole)
    ODD[odd](tmp_path / name)
    assert error_of(path) == "StoreError"
    assert path.read_bytes() == whole
    assert {file.name for file in tmp_path.iterdir()} == {"store.db", name}


def test_a_pipe_is_refused_as_a_store(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "store.db")
    assert error_of(tmp_path / "store.db") == "ForeignStoreError"


def error_of(path: Path) -> str:
    """The name of the error of opening and using a store."""
    code = """
import sys
import sessiontree as st
try:
    with st.open(sys.argv[1]) as journal:
        journal.append("t", st.user("x"))
except st.SessionTreeError as error:
    print(type(error).__name__)
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True, timeout=60
    )
    return done.stdout.strip()
