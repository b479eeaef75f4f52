"""A log that has grown is read from where the last import was, and the result is that of reading all of it."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from transcript_samples import Sample, samples

import sessiontree as st
from sessiontree.transfer.follow import Follower, Source
from sessiontree.transfer.formats import _resume, _transcript, import_sessions
from sessiontree.transfer.formats._wire import parse_noting

LOGS = [one for one in samples() if one.format in {"claude-code", "codex"} and one.path.suffix != ".json"]
SESSION = "0c0ffee0-0000-4000-8000-000000000000"


def store(journal: st.Journal) -> dict[str, Any]:
    """All that a store says about its threads, but the marks of files and how often a thread was changed."""
    return {
        thread.id: (
            replace(thread, version=0, origin={**thread.origin, "file": None}),
            journal.entries(thread.id),
        )
        for thread in journal.iter_threads(is_archived=None, order="created")
    }


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of the lines that were parsed."""
    sizes: list[int] = []
    parse = parse_noting

    def counted(body: bytes, note: Callable[[str], None]) -> Any:
        sizes.append(len(body))
        return parse(body, note)

    monkeypatch.setattr(_transcript, "parse_noting", counted)
    return sizes


@pytest.fixture
def points_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remember a place to go on from at every line where nothing is half read."""
    monkeypatch.setattr(_transcript, "_POINT_EVERY", 0)


def grow(sample: Sample, target: Path, journal: st.Journal, *, before: Callable[[], None]) -> None:
    """Write every log of a folder again, line by line, and import it after each line."""
    source = sample.path
    for file in sorted(source.rglob("*.jsonl") if source.is_dir() else [source]):
        place = target / (file.relative_to(source) if source.is_dir() else file.name)
        place.parent.mkdir(parents=True, exist_ok=True)
        for number, line in enumerate(file.read_bytes().splitlines(keepends=True)):
            with place.open("ab") as log:
                log.write(line)
            # One time for both stores that are compared.
            os.utime(place, ns=(number, number))
            before()
            import_sessions(journal, target, format=sample.format)


@pytest.mark.usefixtures("points_everywhere")
@pytest.mark.parametrize("sample", LOGS, ids=lambda sample: sample.name)
def test_a_log_that_grows_line_by_line_is_imported_as_one_that_is_read_whole_each_time(
    sample: Sample, tmp_path: Path
) -> None:
    found = []
    for has_points in (True, False):
        shutil.rmtree(tmp_path / "log", ignore_errors=True)
        with st.open("memory:") as journal:

            def forget(journal: st.Journal = journal, *, keeps: bool = has_points) -> None:
                for one in () if keeps else journal.documents.list(_resume.SCOPE):
                    journal.documents.delete(_resume.SCOPE, one.key)

            grow(sample, tmp_path / "log", journal, before=forget)
            found.append(store(journal))
    assert found[0] == found[1]


def prompt(number: int, parent: str | None) -> dict[str, Any]:
    return line(f"p{number}", parent, "user", f"question {number} " + "long " * 100)


def line(name: str, parent: str | None, role: str, said: str) -> dict[str, Any]:
    return {
        "type": role,
        "uuid": name,
        "parentUuid": parent,
        "sessionId": SESSION,
        "cwd": "/home/ann/shop",
        "timestamp": "2026-01-01T10:00:00.000Z",
        "message": {"role": role, "content": [{"type": "text", "text": said}]},
    }


def talk(first: int, last: int) -> bytes:
    """Turns of a prompt and an answer."""
    lines = []
    for number in range(first, last):
        lines.append(prompt(number, f"a{number - 1}" if number else None))
        lines.append(line(f"a{number}", f"p{number}", "assistant", f"answer {number}"))
    return b"".join(json.dumps(one).encode() + b"\n" for one in lines)


def said(journal: st.Journal) -> list[str]:
    return [entry.message.text.split(" long")[0] for entry in journal.path(SESSION) if entry.message]


def wanted(turns: int) -> list[str]:
    return [words for number in range(turns) for words in (f"question {number}", f"answer {number}")]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "project" / f"{SESSION}.jsonl"
    path.parent.mkdir()
    path.write_bytes(talk(0, 600))
    return path


def add(log: Path, data: bytes) -> None:
    with log.open("ab") as file:
        file.write(data)


def test_of_a_log_that_grew_only_its_end_is_parsed(log: Path, parsed: list[int]) -> None:
    with st.open("memory:") as journal:
        import_sessions(journal, log)
        size = sum(parsed)
        for last in (601, 602, 603):
            add(log, talk(last - 1, last))
            parsed.clear()
            report = import_sessions(journal, log)
            assert sum(parsed) < size / 4
            assert (report.entries_added, report.damage, report.conflicts) == (2, (), ())
        assert said(journal) == wanted(603)


@pytest.mark.parametrize("change", ["cut", "edited", "replaced"])
def test_a_log_that_did_more_than_grow_is_read_whole(log: Path, parsed: list[int], change: str) -> None:
    with st.open("memory:") as journal:
        import_sessions(journal, log)
        parsed.clear()
        data = log.read_bytes()
        match change:
            case "cut":
                log.write_bytes(data[: len(data) // 4])
            case "edited":
                log.write_bytes(data.replace(b"question 7 long", b"question 7 wrong") + talk(600, 601))
            case "replaced":
                log.unlink()
                log.write_bytes(talk(0, 50).replace(b'"p', b'"q').replace(b'"a', b'"b') + data)
        report = import_sessions(journal, log)
        assert sum(parsed) >= log.stat().st_size - log.read_bytes().count(b"\n")
        assert len(wanted(600)) <= len(journal.entries(SESSION))
        assert bool(report.conflicts) == (change == "edited")


def test_a_branch_from_long_ago_is_found_by_reading_the_log_whole(log: Path) -> None:
    with st.open("memory:") as journal:
        import_sessions(journal, log)
        add(log, json.dumps(line("other", "a3", "user", "another way")).encode() + b"\n")
        report = import_sessions(journal, log)
        assert (report.entries_added, report.repairs) == (1, ())
        assert said(journal) == [*wanted(4), "another way"]


def test_a_deleted_thread_comes_back_whole(log: Path) -> None:
    with st.open("memory:") as journal:
        import_sessions(journal, log)
        journal.delete_thread(SESSION)
        add(log, talk(600, 601))
        import_sessions(journal, log)
        assert said(journal) == wanted(601)


@pytest.mark.parametrize("after", [1, 100_000, 500_000])
def test_an_interrupted_import_loses_no_line(log: Path, tmp_path: Path, after: int) -> None:
    def interrupt(done: int, _total: int) -> None:
        if done >= after:
            raise KeyboardInterrupt

    with st.open(tmp_path / "j.db", durability="process_crash") as journal:
        with pytest.raises(KeyboardInterrupt):
            import_sessions(journal, log, progress=interrupt)
        import_sessions(journal, log)
        add(log, talk(600, 1200))
        with pytest.raises(KeyboardInterrupt):
            import_sessions(journal, log, progress=interrupt)
        add(log, talk(1200, 1201))
        import_sessions(journal, log)
        assert said(journal) == wanted(1201)
        assert not journal.check()


def test_points_hold_no_words_of_the_conversation(log: Path) -> None:
    with st.open("memory:") as journal:
        import_sessions(journal, log)
        (point,) = journal.documents.list(_resume.SCOPE)
        assert "question" not in json.dumps(point.value)
        assert "answer" not in json.dumps(point.value)


def test_damage_is_reported_at_every_import(log: Path) -> None:
    add(log, b"{broken\n" + talk(600, 601))
    with st.open("memory:") as journal:
        first = import_sessions(journal, log)
        again = import_sessions(journal, log)
        assert (again.unchanged, again.damage) == (1, (replace(first.damage[0], thread_id=""),))
        add(log, b"{broken, too\n")
        assert len(import_sessions(journal, log).damage) == 2
        assert len(import_sessions(journal, log).damage) == 2


def test_a_follower_goes_on_where_it_was(log: Path, parsed: list[int]) -> None:
    with st.open("memory:") as journal:
        follower = Follower(journal, [Source("claude-code", log.parent)])
        assert [report.created for report in follower.poll()] == [1]
        size = sum(parsed)
        parsed.clear()
        add(log, talk(600, 601))
        reports = [report for _ in range(3) for report in follower.poll()]
        assert [report.entries_added for report in reports] == [2]
        assert sum(parsed) < size / 4
