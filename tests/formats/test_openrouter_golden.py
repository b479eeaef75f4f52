"""The openrouter SDK's file: every session, exact numbers, checkpoints as labels, rewinds as leaf moves."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from golden_sets import GoldenSet, Json, sets, shortened

import sessiontree as st
from sessiontree.chat import chat_of
from sessiontree.formats import import_sessions

Golden = list[tuple[Path, Path, st.Journal]]


@pytest.fixture(scope="module")
def golden(seed_fixtures: Path) -> Iterator[Golden]:
    found = []
    for folder in sets(seed_fixtures, "openrouter"):
        for store in stores(folder, "openrouter"):
            journal = st.open("memory:")
            assert not import_sessions(journal, store).damage
            found.append((folder, store, journal))
    assert found
    yield found
    for *_, journal in found:
        journal.close()


def messages(journal: st.Journal, thread_id: str, leaf: Any = st.UNSET) -> list[Json]:
    found = (chat_of(entry.payload) for entry in journal.path(thread_id, leaf))
    return [message for message in found if message is not None]


def test_golden_messages_and_checkpoints_are_those_of_the_file(golden: Golden) -> None:
    """The file itself is the answer: the original's own list has lost the last digit of big numbers (DEFECT)."""
    for _, store, journal in golden:
        for key, session in json.loads(store.read_bytes())["sessions"].items():
            facts = {name.casefold(): value for name, value in session.items()}
            assert messages(journal, key) == (facts.get("messages") or [])
            labels = journal.labels(key)
            for name, checkpoint in (facts.get("checkpoints") or {}).items():
                assert messages(journal, key, labels[name] or None) == (checkpoint or [])


def test_golden_list_order_is_newest_first_ties_by_id(golden: Golden) -> None:
    for folder, store, journal in golden:
        wanted = expected(folder, "list.json")
        if set(json.loads(store.read_bytes())["sessions"]) == {row["ID"] for row in wanted}:
            assert [thread.id for thread in journal.list_threads(limit=10_000)] == [row["ID"] for row in wanted]


def test_golden_odd_sessions_come_in_with_what_they_have(golden: Golden) -> None:
    for folder, store, journal in golden:
        answers = folder / "expected" / store.name
        if answers.exists() and store.name != "list.json":
            for key, answer in expected(folder, store.name).items():
                thread = journal.thread(key)
                assert messages(journal, key) == (answer["messages"] or [])
                assert thread.origin["user_turns"] == answer["user_turns"]
                assert thread.origin["inner_id"] == answer["id_field"]
                assert set(journal.labels(key)) == set(answer["checkpoints"])


def test_golden_rewinds_go_to_their_checkpoint_and_can_be_undone(golden: Golden) -> None:
    for folder, store, journal in golden:
        for path in (folder / "expected").glob("sequence_rewind*.json"):
            answers = expected(folder, path.name)
            if not set(answers["changed_or_new_sessions"]) <= set(json.loads(store.read_bytes())["sessions"]):
                continue
            for step in answers["ops"]:
                if step["op"] == "rewind" and step["result"] and "id" in step:
                    target = journal.labels(step["id"])[step["message_id"]]
                    journal.rewind(step["id"], target) if target else journal.reset(step["id"])
            for key, session in answers["changed_or_new_sessions"].items():
                assert _rounded(messages(journal, key)) == _rounded(session["Messages"] or [])


def _rounded(value: Any) -> Any:
    """As the original gives numbers back: through a 64-bit float."""
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_rounded(item) for item in value]
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def test_golden_odd_files_end_in_a_report_and_never_in_a_crash(seed_fixtures: Path, tmp_path: Path) -> None:
    """DEFECT of the original: one of them makes it panic, and a broken file is overwritten by the next save."""
    for folder in sets(seed_fixtures, "openrouter"):
        for number, row in enumerate(expected(folder, "enable_on_odd_files.json")):
            path = tmp_path / f"{number}.json"
            path.write_text(row["content"], encoding="utf-8")
            with st.open("memory:") as journal:
                report = import_sessions(journal, path, format="openrouter")
                if row.get("error") and row["content"].strip():
                    assert report.damage
            assert path.read_text(encoding="utf-8") == row["content"]


def test_golden_file_snapshots_are_kept_with_their_checkpoint(golden: Golden) -> None:
    for _, store, journal in golden:
        for key, session in json.loads(store.read_bytes())["sessions"].items():
            facts = {name.casefold(): value for name, value in session.items()}
            kept = {
                entry.payload.label: entry.payload.origin["files"]
                for entry in journal.entries(key)
                if isinstance(entry.payload, st.Checkpoint)
            }
            assert kept == (facts.get("filecheckpoints") or {})
