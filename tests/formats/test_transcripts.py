"""Transcripts of other tools: recognised by content, whole, in the shape of a tree, and the same when read again."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from transcript_samples import Sample, samples, texts_in

import sessiontree as st
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
