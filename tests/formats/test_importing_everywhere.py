"""Every format into every store: the same threads everywhere, nothing twice, and what grew since."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import sessiontree as st
from golden_sets import STORE_FORMATS, sets
from opened import open_store
from sessiontree.transfer.formats import detect, export_sessions, import_sessions

STORES = ("jsonl", "sqlite", "postgres")


def threads_of(journal: st.Journal) -> dict[str, object]:
    """Everything that an import brought, whatever the store."""
    found = journal.list_threads(is_archived=None, limit=10_000)
    return {
        thread.id: (
            [(entry.id, entry.parent, entry.created_ns, entry.payload) for entry in journal.entries(thread.id)],
            [entry.id for entry in journal.path(thread.id)],
            (thread.title, thread.created_ns, thread.updated_ns, thread.origin, thread.is_archived, thread.key),
        )
        for thread in found
    }


@pytest.mark.parametrize("name", STORE_FORMATS)
@pytest.mark.parametrize("kind", STORES)
def test_golden_every_store_gets_the_same_threads(kind: str, name: str, seed_fixtures: Path, tmp_path: Path) -> None:
    sources = [store for one in sets(seed_fixtures, name) for store in one.stores()] or [_written(name, tmp_path)]
    for number, source in enumerate(sources):
        place = tmp_path / str(number)
        place.mkdir()
        with st.open("memory:") as reference, open_store(kind, place) as journal:
            wanted = import_sessions(reference, source)
            report = import_sessions(journal, source)
            assert report == wanted
            assert threads_of(journal) == threads_of(reference)
            again = import_sessions(journal, source)
            assert (again.created, again.entries_added, again.entries_known) == (0, 0, report.entries_added)
            assert threads_of(journal) == threads_of(reference)
            assert not journal.check()


def _written(name: str, place: Path) -> Path:
    """A source for a format of which there is no set."""
    with st.open("memory:") as journal:
        _talk(journal, "one", 5)
        export_sessions(journal, place / "written", format=name)
    return _place(place / "written", name)


def _talk(journal: st.Journal, thread_id: str, turns: int) -> None:
    if turns == 5:
        journal.create_thread(thread_id, title="<T> & \u2028", created_ns=1_700_000_000_000_000_001)
    for turn in range(turns):
        journal.append(thread_id, st.user(f"question {turn} \x00 😀"))
        journal.append(thread_id, st.assistant(f"answer {turn}"))


@pytest.mark.parametrize("name", STORE_FORMATS)
@pytest.mark.parametrize("kind", ["memory", *STORES])
def test_what_grew_is_added_and_what_was_rewritten_is_a_branch(kind: str, name: str, tmp_path: Path) -> None:
    """Three states of one source: five turns, seven, and then another answer in the place of the last six messages."""
    states = [tmp_path / f"state{number}" for number in range(3)]
    with st.open("memory:") as origin:
        _talk(origin, "one", 5)
        export_sessions(origin, states[0], format=name)
        _talk(origin, "one", 2)
        export_sessions(origin, states[1], format=name)
        with st.open("memory:") as other:
            _talk(other, "one", 5)
            other.rewind("one", other.path("one")[7].id)
            other.append("one", st.user("something else"))
            export_sessions(other, states[2], format=name)
    source = tmp_path / "source"
    with open_store(kind, tmp_path) as journal:
        reports = []
        for state in states:
            shutil.rmtree(source, ignore_errors=True)
            shutil.copytree(state, source)
            reports.append(import_sessions(journal, _place(source, name), format=name))
        assert [report.created for report in reports] == [1, 0, 0]
        assert reports[1].entries_added >= 4
        texts = {entry.message.text for entry in journal.entries("one") if entry.message}
        assert {"answer 4", "answer 1", "something else"} <= texts
        said = [entry.message.text for entry in journal.path("one") if entry.message]
        assert said[-1] == "something else"
        assert len(said) == 9
        assert not any(report.damage for report in reports)
        assert not journal.check()


def _place(source: Path, name: str) -> Path:
    return source if detect(source) == name else next(path for path in sorted(source.iterdir()) if detect(path) == name)
