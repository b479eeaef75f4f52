"""Whose tip a thread has after imports: the source's, until somebody moves it here; then theirs, for good."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import sessiontree as st
from known import present
from opened import open_store, url_of
from sessiontree.transfer.formats import _files, export_sessions, import_sessions


class BrokenOffError(Exception):
    pass


class Source:
    """A session of pi: each record is its name and, behind a <, its parent."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "s.jsonl"

    def write(self, records: str) -> None:
        head = {"type": "session", "version": 3, "id": "s", "timestamp": "2025-01-01T00:00:00Z", "cwd": "/"}
        rows = [head, *(_row(*record.partition("<")[::2]) for record in records.split())]
        self.path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def _row(name: str, parent: str) -> dict[str, object]:
    message = {"role": "user", "content": name}
    return {"type": "message", "id": name, "parentId": parent or None, "timestamp": "2025-01-01T00:00:01Z",
            "message": message}  # fmt: skip


@pytest.fixture
def source(tmp_path: Path) -> Source:
    return Source(tmp_path)


@pytest.fixture(params=["memory", "jsonl", "sqlite", "postgres"])
def journal(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[st.Journal]:
    with open_store(request.param, tmp_path) as journal:
        yield journal
        assert not journal.check()


@pytest.fixture
def break_off(monkeypatch: pytest.MonkeyPatch, journal: st.Journal, source: Source) -> Callable[[], None]:
    """An import that ends with an exception while the last record is read."""
    monkeypatch.setattr(_files, "_PROGRESS_BYTES", 1)

    def stop(done: int, total: int) -> None:
        if done == total:
            raise BrokenOffError

    def run() -> None:
        with pytest.raises(BrokenOffError):
            import_sessions(journal, source.path, progress=stop)

    return run


def said(journal: st.Journal) -> str:
    return " ".join(present(entry.message).text for entry in journal.path("s"))


def append(journal: st.Journal) -> None:
    journal.append("s", st.user("mine"))


def rewind(journal: st.Journal) -> None:
    journal.rewind("s", "a")


def reset(journal: st.Journal) -> None:
    journal.reset("s")


def go_to_the_other_branch(journal: st.Journal) -> None:
    journal.rewind("s", "d")


Move = Callable[[st.Journal], None]
MOVES: dict[Move, str] = {append: "a b c mine", rewind: "a", reset: "", go_to_the_other_branch: "a d"}
every_move = pytest.mark.parametrize("move", MOVES, ids=lambda move: move.__name__)


@every_move
def test_a_tip_that_was_moved_here_stays_also_when_the_source_grows(
    move: Move, journal: st.Journal, source: Source
) -> None:
    source.write("a d<a b<a c<b")
    import_sessions(journal, source.path)
    move(journal)
    for records in ("a d<a b<a c<b", "a d<a b<a c<b e<c", "a d<a b<a c<b e<c f<e"):
        source.write(records)
        report = import_sessions(journal, source.path)
        assert said(journal) == MOVES[move]
        assert bool(report.of_kind("hint")) == (report.entries_added > 0)


@every_move
def test_a_tip_that_was_moved_here_outlives_an_import_that_breaks_off(
    move: Move, journal: st.Journal, source: Source, break_off: Callable[[], None]
) -> None:
    source.write("a d<a b<a c<b")
    import_sessions(journal, source.path)
    move(journal)
    source.write("a d<a b<a c<b x<a e<c f<e")
    break_off()
    assert said(journal) == "a x"
    for _ in range(2):
        import_sessions(journal, source.path)
        assert said(journal) == MOVES[move]


KILLED = """
import os, sys
import sessiontree as st
from sessiontree.transfer.formats import _files, import_sessions

_files._PROGRESS_BYTES = 1
with st.open(sys.argv[1]) as journal:
    import_sessions(journal, sys.argv[2], progress=lambda done, total: done == total and os.kill(os.getpid(), 9))
"""


@every_move
@pytest.mark.parametrize("kind", ["jsonl", "sqlite"])
def test_a_tip_that_was_moved_here_outlives_an_import_that_is_killed(
    kind: str, move: Move, source: Source, tmp_path: Path
) -> None:
    source.write("a d<a b<a c<b")
    with open_store(kind, tmp_path) as journal:
        import_sessions(journal, source.path)
        move(journal)
    source.write("a d<a b<a c<b x<a e<c f<e")
    command = [sys.executable, "-c", KILLED, url_of(kind, tmp_path), str(source.path)]
    killed = subprocess.run(command, check=False)
    assert killed.returncode == -signal.SIGKILL
    with open_store(kind, tmp_path) as journal:
        assert said(journal) == "a x"
        import_sessions(journal, source.path)
        assert said(journal) == MOVES[move]
        assert not journal.check()


def test_an_import_that_broke_off_is_finished_with_the_sources_tip(
    journal: st.Journal, source: Source, break_off: Callable[[], None]
) -> None:
    source.write("a b<a c<a d<c")
    break_off()
    assert said(journal) == "a b"
    append(journal)
    report = import_sessions(journal, source.path)
    assert said(journal) == "a c d"
    assert "on a separate branch" in report.of_kind("hint")[0].problem


def test_a_source_that_was_rewritten_after_an_import_broke_off_is_followed(
    journal: st.Journal, source: Source, break_off: Callable[[], None]
) -> None:
    source.write("a")
    import_sessions(journal, source.path)
    source.write("a b<a c<a d<a")
    break_off()
    for records, path in (("a x<a", "a x"), ("a x<a y<x", "a x y")):
        source.write(records)
        import_sessions(journal, source.path)
        assert said(journal) == path


def test_a_thread_that_came_in_empty_keeps_what_was_said_here(journal: st.Journal, source: Source) -> None:
    source.write("")
    import_sessions(journal, source.path)
    append(journal)
    for records in ("", "a", "a b<a"):
        source.write(records)
        import_sessions(journal, source.path)
        assert said(journal) == "mine"


def test_an_origin_from_another_journal_says_nothing_about_this_one(
    journal: st.Journal, source: Source, tmp_path: Path
) -> None:
    source.write("a b<a c<b")
    with st.open("memory:") as there:
        import_sessions(there, source.path)
        there.rewind("s", "b")
        export_sessions(there, tmp_path / "one", format="native")
        import_sessions(journal, tmp_path / "one")
        append(there)
        export_sessions(there, tmp_path / "two", format="native")
    import_sessions(journal, tmp_path / "two")
    assert said(journal) == "a b mine"
