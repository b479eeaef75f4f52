"""Transcripts of other tools: recognised by content, whole, in the shape of a tree, and the same when read again."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from transcript_samples import Sample, samples, texts_in

import sessiontree as st
from sessiontree.cli import app
from sessiontree.model.sanitize import for_terminal
from sessiontree.search.matching import searchable
from sessiontree.transfer.formats import detect, import_sessions

SAMPLES = samples()
each_sample = pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: f"{sample.format}:{sample.name}")


def found_by_search(journal: st.Journal) -> str:
    """The words of everything that search knows."""
    said = []
    for thread in journal.iter_threads(is_archived=None):
        said += [found.text for entry in journal.entries(thread.id) if (found := searchable(entry.payload))]
    return "\n".join(said)


@each_sample
def test_a_sample_is_recognised_by_its_content(sample: Sample, tmp_path: Path) -> None:
    assert detect(sample.path) == sample.format


@each_sample
def test_every_text_call_and_result_is_found_by_search(sample: Sample) -> None:
    with st.open("memory:") as journal:
        report = import_sessions(journal, sample.path)
        known = " ".join(found_by_search(journal).split())
        missing = [words for words in texts_in(sample.path) if " ".join(words.split()) not in known]
    assert not missing
    assert report.threads
    assert report.not_understood == 0


@each_sample
def test_every_text_call_and_result_is_in_show(
    sample: Sample, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SESSIONTREE_STORE", str(tmp_path / "j.db"))
    with st.open(tmp_path / "j.db") as journal:
        threads = import_sessions(journal, sample.path).threads
        ends = [f"{thread}:{name}" for thread in threads for name in ends_of(journal, thread)]
    for address in ends:
        with pytest.raises(SystemExit) as end:
            app.run(["show", address, "--last", "100000", "--full", "--all"])
        assert not end.value.code
    shown = in_one_line(capsys.readouterr().out)
    assert not [words for words in texts_in(sample.path) if not any(form in shown for form in forms_of(words))]


def ends_of(journal: st.Journal, thread: str) -> list[str]:
    """The last entry of every branch."""
    entries = journal.entries(thread)
    parents = {entry.parent for entry in entries}
    return [entry.id for entry in entries if entry.id not in parents]


def forms_of(words: str) -> set[str]:
    """A text as it is shown, and as it stands in the JSON of a call's arguments."""
    quoted = (json.dumps(words, ensure_ascii=is_ascii)[1:-1] for is_ascii in (False, True))
    return {in_one_line(for_terminal(words)), *map(in_one_line, quoted)}


def in_one_line(text: str) -> str:
    return " ".join(text.replace("\n> ", "\n").split())


@each_sample
def test_importing_again_adds_nothing(sample: Sample) -> None:
    with st.open("memory:") as journal:
        import_sessions(journal, sample.path)
        before = [(thread.id, thread.leaf, journal.entries(thread.id)) for thread in journal.iter_threads()]
        report = import_sessions(journal, sample.path)
        assert (report.created, report.entries_added, report.conflicts) == (0, 0, ())
        assert [(thread.id, thread.leaf, journal.entries(thread.id)) for thread in journal.iter_threads()] == before


@each_sample
def test_a_source_that_vanished_takes_nothing_away(sample: Sample, tmp_path: Path) -> None:
    source = tmp_path / sample.path.name
    shutil.copytree(sample.path, source) if sample.path.is_dir() else shutil.copy(sample.path, source)
    with st.open("memory:") as journal:
        threads = import_sessions(journal, source, format=sample.format).threads
        counts = [len(journal.entries(thread)) for thread in threads]
        shutil.rmtree(source) if source.is_dir() else source.unlink()
        import_sessions(journal, source, format=sample.format)
        assert [len(journal.entries(thread)) for thread in threads] == counts
