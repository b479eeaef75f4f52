"""picoclaw's sessions: the histories that the original gave, and better answers where it lost something."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from golden_sets import GoldenSet, Json, sets, shortened

import sessiontree as st
from sessiontree.context import window_of
from sessiontree.formats import import_sessions
from sessiontree.formats.picoclaw.messages import wire_of
from sessiontree.model import Compaction, Entry


@pytest.fixture(scope="module")
def golden(seed_fixtures: Path) -> Iterator[list[tuple[Path, st.Journal]]]:
    found = [(folder, st.open("memory:")) for folder in sets(seed_fixtures, "picoclaw")]
    assert found
    for folder, journal in found:
        import_sessions(journal, folder / "store", format="picoclaw")
    yield found
    for _, journal in found:
        journal.close()


def history(path: list[Entry]) -> list[object]:
    window = window_of(path)
    found = (wire_of(entry.payload) for entry in (*window.tail, *window.after))
    return [msgspec.to_builtins(message) for message in found if message is not None]


def summary(path: list[Entry]) -> str:
    boundary = window_of(path).boundary
    return boundary.payload.summary if boundary and isinstance(boundary.payload, Compaction) else ""


def test_golden_histories_and_summaries_of_every_key(golden) -> None:
    for folder, journal in golden:
        for row in expected(folder, "keys.json"):
            path = journal.path(row["key"])
            assert history(path) == expected(folder, row["history_file"]), row["key"]
            assert summary(path) == row["summary"]


def test_golden_skipped_messages_stay_readable(golden) -> None:
    """DEFECT of the original: what is truncated is lost with the next save."""
    for folder, journal in golden:
        for row in expected(folder, "keys.json"):
            said = [entry for entry in journal.entries(row["key"]) if wire_of(entry.payload)]
            assert len(said) >= row["messages"]
            if row["meta_skip"] and row["messages"]:
                assert len(said) > row["messages"] or row["meta_skip"] > len(said)


def test_golden_a_broken_meta_file_hides_no_history(golden) -> None:
    """DEFECT of the original: the history of a session with a broken meta file reads as empty."""
    for folder, journal in golden:
        known = {row["file"] for row in expected(folder, "keys.json")}
        hidden = [path for path in (folder / "store").glob("*.jsonl") if path.name.removesuffix(".jsonl") not in known]
        for path in hidden:
            lines = [line for line in path.read_bytes().split(b"\n") if line.strip()]
            found = history(journal.path(path.name.removesuffix(".jsonl")))
            assert len(found) == len(lines)


def test_golden_an_append_after_a_torn_line_is_kept(golden, tmp_path: Path) -> None:
    """DEFECT of the original: the next message is glued to a torn line and lost."""
    for _, journal in golden:
        for thread in journal.list_threads(limit=10_000):
            before = history(journal.path(thread.id))
            journal.append(thread.id, st.user("after the tear"))
            assert history(journal.path(thread.id))[: len(before)] == before
            assert history(journal.path(thread.id))[-1]["content"] == "after the tear"
            journal.rewind(thread.id, thread.leaf) if thread.leaf else journal.reset(thread.id)


def test_golden_legacy_sessions_come_in_as_the_migration_brings_them(seed_fixtures: Path) -> None:
    compared = 0
    for folder in sets(seed_fixtures, "picoclaw"):
        for store in stores(folder, "picoclaw"):
            answers = folder / "expected" / f"{store.name}_migration.json"
            if not answers.exists():
                continue
            with st.open("memory:") as journal:
                report = import_sessions(journal, store)
                for key, answer in expected(folder, answers.name)["sessions"].items():
                    if key not in report.threads:
                        assert not answer["history"]
                        continue
                    path = journal.path(key)
                    assert history(path) == answer["history"]
                    assert summary(path) == answer["summary"]
                    compared += 1
                again = import_sessions(journal, store)
                assert (again.created, again.entries_added) == (0, 0)
    assert compared
