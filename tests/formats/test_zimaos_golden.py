"""ZimaOS-Blue's database: every row as the rules say, times to the nanosecond, lists in true order."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from golden_sets import GoldenSet, Json, sets, shortened

import sessiontree as st
from sessiontree.chat import chat_of
from sessiontree.context import window_of
from sessiontree.formats import gotime, import_sessions
from sessiontree.formats.zimaos.rows import STATES
from sessiontree.model import Compaction, SystemMessage

Golden = list[tuple[Path, st.Journal]]


@pytest.fixture(scope="module")
def golden(seed_fixtures: Path) -> Iterator[Golden]:
    """Each set with a journal of its sound database: the one that holds the sessions of the expectations."""
    found = []
    for folder in sets(seed_fixtures, "zimaos"):
        wanted = {row["id"] for row in expected(folder, "sessions.json")}
        for store in stores(folder, "zimaos"):
            journal = st.open("memory:")
            if set(import_sessions(journal, store).threads) == wanted:
                found.append((folder, journal))
            else:
                journal.close()
    assert found
    yield found
    for _, journal in found:
        journal.close()


def test_golden_rows_of_every_session(golden: Golden) -> None:
    for folder, journal in golden:
        for row in expected(folder, "sessions.json"):
            thread = journal.thread(row["id"])
            key = thread.key
            parts = [row["agent_id"], row["channel_id"], row["peer_id"], row["thread_id"]]
            assert [key.agent, key.channel, key.peer, key.thread] == parts
            assert thread.state == row["state_name"]
            assert thread.origin["state"] == row["state"]
            metadata = row["metadata"]
            assert (thread.title, list(thread.tags), thread.custom) == (
                metadata["title"], metadata["tags"], metadata["custom_data"],
            )  # fmt: skip
            assert thread.created_ns == row["created_at_unix_nano"]
            assert thread.updated_ns == row["last_active_at_unix_nano"]


def test_golden_messages_and_prompts_of_every_session(golden: Golden) -> None:
    for folder, journal in golden:
        for row in expected(folder, "sessions.json"):
            path = journal.path(row["id"])
            prompts = [entry.payload.message.text for entry in path if isinstance(entry.payload, SystemMessage)]
            assert (prompts[-1] if prompts else "") == (row["system_prompt"] or "")
            said = [entry for entry in path if not isinstance(entry.payload, SystemMessage | Compaction)]
            assert [_plain(chat_of(entry.payload)) for entry in said] == [_plain(one) for one in row["messages"]]


def _plain(message: Json | None) -> Json:
    """The fields that the original knows; ours keeps the others, too."""
    assert message is not None
    known = ("role", "content", "tool_calls", "tool_call_id")
    return {name: message[name] for name in known if message.get(name) not in (None, [], "")}


def test_golden_summaries_stand_apart_from_the_prompt(golden: Golden) -> None:
    """DEFECT of the original: a compaction puts its summary in the place of the system prompt."""
    for folder, journal in golden:
        for row in expected(folder, "sessions.json"):
            boundary = window_of(journal.path(row["id"])).boundary
            found = boundary.payload.summary if boundary else ""  # type: ignore[union-attr]
            assert found == row["metadata"]["summary"]
            if found:
                assert found.strip() in journal.context(row["id"]).messages[0].text


def test_golden_every_time_text_is_read(golden: Golden) -> None:
    for folder, _ in golden:
        for row in expected(folder, "time_texts.json"):
            assert gotime.nanoseconds_of_any(row["stored"]) == row["unix_nano"], row["stored"]


def test_golden_lists_in_true_order_with_the_same_filters(golden: Golden) -> None:
    for folder, journal in golden:
        answers = expected(folder, "list.json")
        everything = [thread.id for thread in journal.list_threads(is_archived=None, limit=10_000)]
        assert everything == answers["true_chronological_order"]
        for row in answers["filters"]:
            _compare_filter(journal, row)


def _compare_filter(journal: st.Journal, row: Json) -> None:
    names = {"agent_id": "agent", "channel_id": "channel", "peer_id": "peer"}
    filters: dict[str, Any] = {names[name]: value for name, value in row.items() if name in names}
    if "state" in row:
        filters["state"] = STATES[row["state"]] if row["state"] < len(STATES) else "unknown"
    if "created_after" in row:
        filters["created_after_ns"] = gotime.nanoseconds(row["created_after"]) + 1  # type: ignore[operator]
    if "created_before" in row:
        filters["created_before_ns"] = gotime.nanoseconds(row["created_before"])
    found = [thread.id for thread in journal.list_threads(is_archived=None, limit=10_000, **filters)]
    start = row.get("offset", 0)
    found = found[start : start + row["limit"]] if "limit" in row else found[start:]
    wanted = next(value for name, value in row.items() if name in ("ids", "ids_by_instant") or name.startswith("ids ("))
    assert found == wanted, row


def test_golden_no_budget_cuts_a_history(golden: Golden) -> None:
    """DEFECT of the original: loading with a small budget drops messages, and saving makes that permanent."""
    for folder, journal in golden:
        for answers in expected(folder, "load_with_budget.json").values():
            for thread_id, answer in answers.items():
                said = [
                    entry
                    for entry in journal.path(thread_id)
                    if not isinstance(entry.payload, SystemMessage | Compaction)
                ]
                assert len(said) == answer["of"]


def test_golden_one_bad_row_hides_no_other(seed_fixtures: Path) -> None:
    """DEFECT of the original: a row that cannot be read fails the whole list."""
    compared = 0
    for folder in sets(seed_fixtures, "zimaos"):
        for path in sorted((folder / "expected").glob("bad*.json")):
            compared += 1
            answers = expected(folder, path.name)
            store = next((folder / "store").glob(f"*{path.stem}*"))
            with st.open("memory:") as journal:
                report = import_sessions(journal, store)
                assert set(report.threads) == {answers["good"], *answers["bad"]}
                noted = {note.thread_id for note in report.damage}
                assert answers["good"] not in noted
                for thread_id in set(answers["bad"]) - noted:
                    assert journal.thread(thread_id).created_ns > 0
    assert compared
