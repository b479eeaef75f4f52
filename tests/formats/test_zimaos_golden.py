"""ZimaOS-Blue's database: every row as the rules say, times to the nanosecond, lists in true order."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import sessiontree as st
from golden_sets import GoldenSet, Json, sets
from known import of_kind, present
from sessiontree.context import window_of
from sessiontree.context.dialects.stored_chat import chat_of
from sessiontree.model import Compaction, SystemMessage
from sessiontree.sessions.keys import format_key, parse_key
from sessiontree.transfer.formats import ImportReport, _go, import_sessions
from sessiontree.transfer.formats.zimaos import STATES

Golden = list[tuple[GoldenSet, st.Journal]]


@pytest.fixture(scope="module")
def golden(seed_fixtures: Path) -> Iterator[Golden]:
    """Each set with a journal of its sound database: the one that holds the sessions of the expectations."""
    found = []
    for one in sets(seed_fixtures, "zimaos"):
        wanted = {row["id"] for row in one.expected("sessions.json")} if one.has("expected/sessions.json") else None
        for store in one.stores():
            journal = st.open("memory:")
            if wanted is not None and set(import_sessions(journal, store).threads) == wanted:
                found.append((one, journal))
            else:
                journal.close()
    yield found
    for _, journal in found:
        journal.close()


@pytest.mark.replays("zimaos", "expected/sessions.json")
def test_golden_rows_of_every_session(golden: Golden) -> None:
    for one, journal in golden:
        for row in one.expected("sessions.json"):
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


@pytest.mark.replays("zimaos", "expected/sessions.json")
def test_golden_messages_and_prompts_of_every_session(golden: Golden) -> None:
    for one, journal in golden:
        for row in one.expected("sessions.json"):
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


@pytest.mark.replays("zimaos", "expected/sessions.json")
def test_golden_summaries_stand_apart_from_the_prompt(golden: Golden) -> None:
    """DEFECT of the original: a compaction puts its summary in the place of the system prompt."""
    for one, journal in golden:
        for row in one.expected("sessions.json"):
            boundary = window_of(journal.path(row["id"])).boundary
            found = of_kind(Compaction, boundary.payload).summary if boundary else ""
            assert found == row["metadata"]["summary"]
            if found:
                assert found.strip() in journal.context(row["id"]).messages[0].text


@pytest.mark.replays("zimaos", "expected/time_texts.json")
def test_golden_every_time_text_is_read(seed_fixtures: Path) -> None:
    for one in sets(seed_fixtures, "zimaos"):
        for row in one.expected("time_texts.json", []):
            assert _go.nanoseconds_of_any(row["stored"]) == row["unix_nano"], row["stored"]


@pytest.mark.replays("zimaos", "expected/parse_session_id.json")
def test_golden_session_ids_are_parsed_or_refused_but_never_cut(seed_fixtures: Path) -> None:
    """DEFECT of the original: the fifth and later parts are dropped, so two ids become one; empty parts pass."""
    for one in sets(seed_fixtures, "zimaos"):
        for row in one.expected("parse_session_id.json", []):
            text = row["input"]
            parts = [row.get(name, "") for name in ("agent_id", "channel_id", "peer_id", "thread_id")]
            if "error" in row or row["string"] != text or not all(parts[:3]):
                with pytest.raises(st.InvalidInputError):
                    parse_key(text)
                continue
            key = parse_key(text)
            assert [key.agent, key.channel, key.peer, key.thread] == parts
            assert format_key(key) == text


@pytest.mark.replays("zimaos", "expected/list.json")
def test_golden_lists_in_true_order_with_the_same_filters(golden: Golden) -> None:
    for one, journal in golden:
        if not one.has("expected/list.json"):
            continue
        answers = one.expected("list.json")
        everything = [thread.id for thread in journal.list_threads(is_archived=None, limit=10_000)]
        assert everything == answers["true_chronological_order"]
        for row in answers["filters"]:
            _compare_filter(journal, row)
        wanted = next((ids for name, ids in answers.items() if name.startswith("recover")), None)
        if wanted is not None:
            active = [thread.id for thread in journal.list_threads(state="active", limit=10_000)]
            assert active == wanted


def _compare_filter(journal: st.Journal, row: Json) -> None:
    names = {"agent_id": "agent", "channel_id": "channel", "peer_id": "peer"}
    filters: dict[str, Any] = {names[name]: value for name, value in row.items() if name in names}
    if "state" in row:
        filters["state"] = STATES[row["state"]] if row["state"] < len(STATES) else "unknown"
    if "created_after" in row:
        filters["created_after_ns"] = present(_go.nanoseconds(row["created_after"])) + 1
    if "created_before" in row:
        filters["created_before_ns"] = _go.nanoseconds(row["created_before"])
    found = [thread.id for thread in journal.list_threads(is_archived=None, limit=10_000, **filters)]
    start = row.get("offset", 0)
    found = found[start : start + row["limit"]] if "limit" in row else found[start:]
    wanted = next(value for name, value in row.items() if name in ("ids", "ids_by_instant") or name.startswith("ids ("))
    assert found == wanted, row


@pytest.mark.replays("zimaos", "expected/load_with_budget.json")
def test_golden_no_budget_cuts_a_history(golden: Golden) -> None:
    """DEFECT of the original: loading with a small budget drops messages, and saving makes that permanent."""
    for one, journal in golden:
        for answers in one.expected("load_with_budget.json", {}).values():
            for thread_id, answer in answers.items():
                said = [
                    entry
                    for entry in journal.path(thread_id)
                    if not isinstance(entry.payload, SystemMessage | Compaction)
                ]
                assert len(said) == answer["of"]


@pytest.mark.replays("zimaos", "expected/bad*.json")
def test_golden_one_bad_row_hides_no_other(seed_fixtures: Path) -> None:
    """DEFECT of the original: a row that cannot be read fails the whole list."""
    for one in sets(seed_fixtures, "zimaos"):
        for name in one.matching("expected/bad*.json"):
            answers = one.expected(Path(name).name)
            wanted = {answers["good"], *answers["bad"]}
            found = [report for store in one.stores() if set((report := _imported(store)[0]).threads) == wanted]
            assert found, f"no database holds the rows of {name}"
            for report in found:
                assert answers["good"] not in {note.thread_id for note in report.damage}


@pytest.mark.replays("zimaos", "expected/bad*.json")
def test_golden_bad_rows_come_in_with_what_can_be_read(seed_fixtures: Path) -> None:
    """A row without damage has its times, and those that Go cannot read again are the ones that the answers name."""
    for one in sets(seed_fixtures, "zimaos"):
        for name in one.matching("expected/bad*.json"):
            answers = one.expected(Path(name).name)
            for report, threads in (_imported(store) for store in one.stores()):
                noted = {note.thread_id for note in report.damage}
                for thread_id, problem in answers["bad"].items():
                    if thread_id in threads and thread_id not in noted:
                        promised = re.search(r"should yield (\S+)", problem)
                        assert promised, problem
                        assert threads[thread_id].created_ns == _go.nanoseconds(promised[1])


def _imported(store: Path) -> tuple[ImportReport, dict[str, st.Thread]]:
    with st.open("memory:") as journal:
        report = import_sessions(journal, store)
        return report, {thread_id: journal.thread(thread_id) for thread_id in report.threads}
