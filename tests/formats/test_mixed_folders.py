"""Folders with files of several tools: each file is read in the format that it shows, and nothing else is made of it."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from pathlib import Path

import pytest
from transcript_samples import DATA

import sessiontree as st
from sessiontree.transfer.follow import Follower, Source
from sessiontree.transfer.formats import detect, export_sessions, formats_in, import_everything, import_sessions

CHAT = {"messages": [{"role": "user", "content": "which way"}, {"role": "assistant", "content": "that way"}]}
CLAUDE = DATA / "transcripts" / "claude-code" / "av_valid_session.jsonl"
CODEX = DATA / "transcripts" / "codex" / "standard_session.jsonl"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "downloads"
    place.mkdir()
    (place / "chat.jsonl").write_text(json.dumps(CHAT) + "\n")
    return place


def said(journal: st.Journal) -> set[str]:
    """The first words of every thread."""
    threads = journal.iter_threads(is_archived=None)
    return {next(entry.message.text for entry in journal.path(one.id) if entry.message) for one in threads}


def test_rows_of_chats_in_a_folder_are_a_data_set(folder: Path) -> None:
    assert detect(folder) == "dataset"
    with st.open("memory:") as journal:
        (report,) = import_everything(journal, folder)
        assert (report.format, report.entries_added, report.damage) == ("dataset", 2, ())
        assert said(journal) == {"which way"}


def test_every_file_of_a_mixed_folder_is_read_in_its_own_format(folder: Path) -> None:
    shutil.copy(CLAUDE, folder)
    shutil.copy(CODEX, folder)
    with st.open("memory:") as journal:
        for name in ("picoclaw", "native"):
            journal.create_thread(name)
            journal.append(name, st.user(f"from {name}"))
            export_sessions(journal, folder / name, format=name, threads=[name])
            for path in (folder / name).iterdir():
                path.rename(folder / path.name)
    with st.open("memory:") as journal:
        reports = import_everything(journal, folder)
        wanted = ["native", "claude-code", "codex", "dataset", "picoclaw"]
        assert [(one.format, len(one.threads), one.damage) for one in reports] == [(name, 1, ()) for name in wanted]
        assert {"which way", "Fix the login bug", "from picoclaw", "from native"} <= said(journal)


def test_the_library_names_the_formats_that_it_did_not_read(folder: Path) -> None:
    shutil.copy(CLAUDE, folder)
    with st.open("memory:") as journal:
        report = import_sessions(journal, folder)
        assert report.format == "claude-code"
        assert [note.problem for note in report.notes] == [
            "1 file of the format dataset was not read; import it as well"
        ]


def test_lines_of_messages_alone_are_not_picoclaw(tmp_path: Path) -> None:
    (tmp_path / "talk.jsonl").write_text('{"role":"user","content":"hello"}\n')
    assert list(formats_in(tmp_path)) == ["chat-log"]


def test_all_formats_of_a_folder_are_followed(folder: Path) -> None:
    shutil.copy(CLAUDE, folder)
    with st.open("memory:") as journal:
        follower = Follower(journal, [Source(name, folder) for name in formats_in(folder)])
        assert sum(report.created for report in follower.poll()) == 2
        with (folder / "chat.jsonl").open("a") as file:
            file.write(json.dumps({"prompt": "one more", "completion": "done"}) + "\n")
        assert [report.created for _ in range(3) for report in follower.poll()] == [1]
        assert {"which way", "Fix the login bug", "one more"} <= said(journal)


def test_what_may_not_be_read_is_named_and_the_rest_is_imported() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        closed = folder / "closed"
        closed.mkdir()
        for place in (folder / "open.jsonl", folder / "mine.jsonl", closed / "inner.jsonl"):
            shutil.copy(CLAUDE, place)
        with st.open("memory:") as journal:
            # Loads the readers: the other user may not read their files either.
            assert import_everything(journal, folder)[0].damage == ()
        (folder / "mine.jsonl").chmod(0)
        closed.chmod(0)
        assert as_another_user(folder) == ["closed", "mine.jsonl", "open"]
        closed.chmod(0o700)


def as_another_user(folder: Path) -> list[str]:
    """The names of what could not be read, and of the threads that came in, for a user without special rights."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        if os.getuid() == 0:
            os.setuid(65534)
        with st.open("memory:") as journal:
            (report,) = import_everything(journal, folder)
            names = [*(Path(note.place).name for note in report.damage), *report.threads]
            os.write(writing, json.dumps(sorted(set(names))).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as file:
        found: list[str] = json.loads(file.read() or "[]")
    os.waitpid(child, 0)
    return found
