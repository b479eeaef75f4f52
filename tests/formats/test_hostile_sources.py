"""Sources that somebody else owns, breaks, locks, or is still writing to."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import sessiontree as st
from golden_sets import STORE_FORMATS
from sessiontree.transfer.formats import detect, export_sessions, import_sessions
from sessiontree.transfer.formats.zimaos import SCHEMA

FOLDERS = ("native", "floret", "ggcode", "pi", "picoclaw")


@pytest.fixture
def sound(tmp_path: Path) -> Path:
    """A source of every format, a folder each."""
    with st.open("memory:") as journal:
        for number in range(3):
            journal.create_thread(f"t{number}", title="title", created_ns=1_700_000_000_000_000_000)
            for turn in range(4):
                journal.append(f"t{number}", st.user(f"question {turn}"))
                journal.append(f"t{number}", st.assistant(f"answer {turn}"))
        for name in STORE_FORMATS:
            export_sessions(journal, tmp_path / "sound" / name, format=name)
    return tmp_path / "sound"


def source_of(folder: Path, name: str) -> Path:
    return folder / name if detect(folder / name) == name else next((folder / name).iterdir())


def said(journal: st.Journal) -> list[list[str]]:
    threads = sorted(journal.list_threads(is_archived=None, limit=100), key=lambda thread: thread.id)
    return [[entry.message.text for entry in journal.path(thread.id) if entry.message] for thread in threads]


@pytest.fixture(autouse=True)
def _no_hang() -> Iterator[None]:
    """A pipe that is opened waits for ever."""

    def stop(*_: object) -> None:
        raise TimeoutError("the import hangs")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(30)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


OBSTACLES: dict[str, Callable[[Path], None]] = {
    "pipe": os.mkfifo,
    "folder": os.mkdir,
    "dead link": lambda path: path.symlink_to("nowhere"),
    "link to itself": lambda path: path.symlink_to(path),
    "link to the folder": lambda path: path.symlink_to(path.parent),
    "link to what cannot be read": lambda path: path.symlink_to("/proc/self/mem"),
    "device": lambda path: path.symlink_to("/dev/zero"),
}


@pytest.mark.parametrize("obstacle", OBSTACLES)
@pytest.mark.parametrize("name", FOLDERS)
def test_what_is_not_a_file_does_not_stop_an_import(name: str, obstacle: str, sound: Path) -> None:
    """New names of every kind beside the sound ones: every sound session comes in, and nothing else does."""
    folder = sound / name
    with st.open("memory:") as journal:
        import_sessions(journal, folder)
        wanted = said(journal)
    nested = [path for path in folder.iterdir() if path.is_dir()]
    for place in (folder, *nested):
        for ending in ("odd.jsonl", "odd.json", "odd.meta.json", "active_turn.json", "index.json"):
            if not (place / ending).exists():
                OBSTACLES[obstacle](place / ending)
    with st.open("memory:") as journal:
        assert detect(folder) == name
        report = import_sessions(journal, folder)
        assert [texts for texts in said(journal) if texts] == wanted
        assert report.entries_added == sum(map(len, wanted)) or name in ("ggcode", "pi")
        assert not journal.check()


@pytest.mark.parametrize("obstacle", OBSTACLES)
@pytest.mark.parametrize("name", STORE_FORMATS)
def test_what_stands_in_the_place_of_a_file_is_named(name: str, obstacle: str, sound: Path) -> None:
    """The first file of a source is taken away, something else stands there: the rest comes in, the report tells."""
    folder = sound / name
    first = next(
        path for path in sorted(folder.rglob("*")) if path.is_file() and path.suffix in (".jsonl", ".json", ".db")
    )
    first.unlink()
    OBSTACLES[obstacle](first)
    source = folder if name in FOLDERS else first
    with st.open("memory:") as journal:
        try:
            report = import_sessions(journal, source, format=name)
        except st.InvalidInputError:
            assert not first.exists()
            return
        rest = [texts for texts in said(journal) if texts]
        assert len(rest) >= (2 if name in FOLDERS else 0)
        if name in ("floret", "ggcode", "picoclaw"):
            assert any(str(first) == note.place for note in report.damage), report.notes
        assert not journal.check()


def write_database(path: Path, *, journal_mode: str) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute(f"PRAGMA journal_mode={journal_mode}")
    connection.executescript(SCHEMA)
    for number in range(3):
        add_row(connection, number)
    return connection


def add_row(connection: sqlite3.Connection, number: int) -> None:
    messages = json.dumps({"messages": [{"role": "user", "content": f"hello {number}"}]})
    at = "2026-01-01 00:00:00+00:00"
    row = (f"a:b:{number}", "a", "b", str(number), None, 0, "{}", messages, None, at, at, at, None)
    connection.execute(f"INSERT INTO sessions VALUES ({','.join('?' * len(row))})", row)


def stand(folder: Path) -> dict[str, tuple[bytes, int]]:
    return {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in sorted(folder.iterdir())}


@pytest.mark.parametrize("journal_mode", ["wal", "delete"])
def test_a_database_in_use_is_read_and_left_as_it_is(journal_mode: str, tmp_path: Path) -> None:
    """With a writer that has the database open, and in the middle of a transaction that it may take back."""
    folder = tmp_path / "theirs"
    folder.mkdir()
    writer = write_database(folder / "sessions.db", journal_mode=journal_mode)
    writer.execute("PRAGMA cache_size = 1")
    writer.execute("BEGIN IMMEDIATE")
    for number in range(3, 60):
        add_row(writer, number)
    before = stand(folder)
    with st.open("memory:") as journal:
        report = import_sessions(journal, folder / "sessions.db")
        assert stand(folder) == before
        assert not report.damage
        assert len(report.threads) == 3
        writer.execute("COMMIT")
        assert import_sessions(journal, folder / "sessions.db").created == 57
    writer.close()


def test_a_database_whose_writer_died_is_read_as_of_its_last_commit(tmp_path: Path) -> None:
    """A rollback journal lies beside it: whoever reads the file alone sees half a transaction."""
    script = (
        "import sys, os; sys.path.insert(0, sys.argv[2]); import test_hostile_sources as t; from pathlib import Path\n"
        "w = t.write_database(Path(sys.argv[1]), journal_mode='delete'); w.execute('PRAGMA cache_size = 1')\n"
        "w.execute('BEGIN IMMEDIATE'); w.execute(\"UPDATE sessions SET messages = '{' || hex(zeroblob(100000))\")\n"
        "[t.add_row(w, n) for n in range(3, 300)]; os._exit(1)\n"
    )
    path = tmp_path / "theirs" / "sessions.db"
    path.parent.mkdir()
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", script, path, Path(__file__).parent], check=False, env=environment)
    assert (path.parent / "sessions.db-journal").stat().st_size
    before = stand(path.parent)
    with st.open("memory:") as journal:
        report = import_sessions(journal, path)
        assert (len(report.threads), report.damage) == (3, ())
        assert said(journal) == [["hello 0"], ["hello 1"], ["hello 2"]]
    assert stand(path.parent) == before


@pytest.mark.parametrize("journal_mode", ["wal", "delete"])
def test_a_database_in_a_read_only_folder(journal_mode: str, tmp_path: Path) -> None:
    folder = tmp_path / "theirs"
    folder.mkdir()
    writer = write_database(folder / "sessions.db", journal_mode=journal_mode)
    shutil.copytree(folder, tmp_path / "copy")
    writer.close()
    shutil.copytree(folder, tmp_path / "closed")
    for place in (tmp_path / "copy", tmp_path / "closed"):
        for path in place.iterdir():
            path.chmod(0o444)
        place.chmod(0o555)
        before = stand(place)
        with st.open("memory:") as journal:
            assert len(import_sessions(journal, place / "sessions.db").threads) == 3
        assert stand(place) == before
        place.chmod(0o755)


class Stop(KeyboardInterrupt):
    pass


def stop_after(calls: int) -> Callable[[int, int], None]:
    left = [calls]

    def progress(done: int, total: int) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise Stop

    return progress


def grow(path: Path, first: int, count: int) -> None:
    with path.open("ab") as file:
        for number in range(first, first + count):
            line = {"role": "user", "content": f"message {number} " + "x" * 300}
            file.write(json.dumps(line, separators=(",", ":")).encode() + b"\n")


@pytest.mark.parametrize("kind", ["memory:", "sqlite"])
def test_an_import_that_is_interrupted_anywhere_goes_on_the_next_time(kind: str, tmp_path: Path) -> None:
    """Also the second import of a source that grew, whose tip must not stay where the interrupt came."""
    source = tmp_path / "source"
    source.mkdir()
    grow(source / "key.jsonl", 0, 300)
    interrupted = 0
    with st.open("memory:" if kind == "memory:" else tmp_path / "journal.db") as journal:
        for size in (300, 5300):
            if size > 300:
                grow(source / "key.jsonl", 300, 5000)
            for calls in (0, 1, 9, 14, 21):
                try:
                    import_sessions(journal, source, progress=stop_after(calls))
                except Stop:
                    interrupted += 1
            report = import_sessions(journal, source)
            assert not report.of_kind("hint")
            assert len(journal.path("key")) == size
            assert not journal.check()
        assert len(journal.entries("key")) == 5300
    assert interrupted > 3


@pytest.mark.parametrize("name", STORE_FORMATS)
def test_two_imports_at_once_end_as_one(name: str, sound: Path, tmp_path: Path) -> None:
    source = source_of(sound, name)
    with st.open("memory:") as journal:
        import_sessions(journal, source)
        wanted = said(journal)
    st.open(tmp_path / "journal.db").close()
    start, failures = threading.Barrier(4), []

    def run() -> None:
        with st.open(tmp_path / "journal.db") as mine:
            start.wait()
            try:
                import_sessions(mine, source)
            except BaseException as error:  # noqa: BLE001  it is shown below
                failures.append(error)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    with st.open(tmp_path / "journal.db") as journal:
        assert said(journal) == wanted
        again = import_sessions(journal, source)
        assert (again.created, again.entries_added, again.conflicts) == (0, 0, ())
        assert not journal.check()


def test_a_title_that_changed_in_the_source_comes_in_unless_it_was_changed_here(sound: Path) -> None:
    folder = sound / "floret"
    files = sorted(folder.glob("*/thread.json"))
    with st.open("memory:") as journal:
        import_sessions(journal, folder)
        journal.update_thread("t0", title="mine")
        for path in files:
            path.write_bytes(path.read_bytes().replace(b'"title": "title"', b'"title": "theirs"'))
        import_sessions(journal, folder)
        titles = {thread.id: thread.title for thread in journal.list_threads()}
    assert titles == {"t0": "mine", "t1": "theirs", "t2": "theirs"}


def test_a_file_that_shrinks_while_it_is_read_ends_no_process(sound: Path) -> None:
    folder = sound / "ggcode"
    logs = sorted(folder.glob("*.jsonl"))

    def shorten(done: int, total: int) -> None:
        for path in logs:
            with path.open("r+b") as file:
                file.truncate(10)

    with st.open("memory:") as journal:
        import_sessions(journal, folder, progress=shorten)
        assert not journal.check()


@pytest.mark.parametrize("name", STORE_FORMATS)
def test_an_export_goes_into_an_empty_folder_and_nowhere_else(name: str, sound: Path, tmp_path: Path) -> None:
    with st.open("memory:") as journal:
        import_sessions(journal, source_of(sound, name))
        (tmp_path / "file").write_text("mine")
        (tmp_path / "full").mkdir()
        (tmp_path / "full" / "mine").write_text("mine")
        (tmp_path / "dead").symlink_to(tmp_path / "elsewhere")
        for target in ("file", "full", "dead"):
            with pytest.raises(st.InvalidInputError):
                export_sessions(journal, tmp_path / target, format=name)
        assert (tmp_path / "file").read_text() == "mine"
        assert [path.name for path in (tmp_path / "full").iterdir()] == ["mine"]
        assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize("value", [True, False, "2", 1.5, None])
def test_a_fork_counter_that_is_not_a_number_counts_as_none(tmp_path: Path, value: object) -> None:
    source = tmp_path / "sessions.json"
    source.write_text(json.dumps({"sessions": {"s": {"ID": "s"}}, "fork_counters": {"s": value}}))
    with st.open("memory:") as journal:
        import_sessions(journal, source, format="openrouter")
        assert journal.thread("s").origin["fork_counter"] == 0
        export_sessions(journal, tmp_path / "out", format="openrouter")
    assert json.loads((tmp_path / "out" / "sessions.json").read_bytes())["fork_counters"] == {}


@pytest.mark.parametrize(("value", "cost"), [(True, 0), ("2", 0), (10**400, 0), (2, 2.0), (0.25, 0.25)])
def test_a_cost_that_is_not_a_number_is_dropped_and_the_report_kept(tmp_path: Path, value: object, cost: float) -> None:
    times = {"created_at": "2026-01-01T00:00:00Z", "updated_at": "2026-01-01T00:00:00Z"}
    record = {"type": "cost", "session_id": "s", **times, "cost": {"usd": value}}
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "s.jsonl").write_text(json.dumps(record, separators=(",", ":")) + "\n")
    with st.open("memory:") as journal:
        report = import_sessions(journal, tmp_path / "in", format="ggcode")
        assert report.damage == ()
        [entry] = journal.entries("s")
        assert isinstance(entry.payload, st.UsageReport)
        assert entry.payload.usage.cost == cost
        export_sessions(journal, tmp_path / "out", format="ggcode")
    assert (tmp_path / "out" / "s.jsonl").read_bytes() == (tmp_path / "in" / "s.jsonl").read_bytes()
