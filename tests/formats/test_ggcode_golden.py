"""ggcode's sessions: what the original loads and lists, its Markdown, and better answers where it loses data."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace
from golden_sets import GoldenSet, Json, sets, shortened

import sessiontree as st
from sessiontree.context import window_of
from sessiontree.exports.markdown import history, markdown
from sessiontree.formats import gojson, gotime, import_sessions
from sessiontree.formats.ggcode.messages import wire_message
from sessiontree.formats.ggcode.records import wire_record
from sessiontree.formats.verbatim import from_kept
from sessiontree.model import Event, Thread, ThreadInfo, UsageReport


@pytest.fixture(scope="module")
def golden(seed_fixtures: Path) -> Iterator[list[tuple[Path, st.Journal]]]:
    found = [(folder, st.open("memory:")) for folder in sets(seed_fixtures, "ggcode")]
    assert found
    for folder, journal in found:
        assert import_sessions(journal, folder / "store").format == "ggcode"
    yield found
    for _, journal in found:
        journal.close()


def sessions(golden) -> Iterator[tuple[Path, st.Journal, Json]]:
    for folder, journal in golden:
        for row in expected(folder, "sessions.json"):
            yield folder, journal, row


def as_loaded(journal: st.Journal, thread_id: str) -> tuple[Thread, dict[str, str]]:
    """The thread as its own file describes it: the index may know better."""
    thread = journal.thread(thread_id)
    infos = [entry.payload for entry in journal.path(thread_id) if isinstance(entry.payload, ThreadInfo)]
    last = infos[-1] if infos else ThreadInfo()
    names = ("workspace", "vendor", "endpoint", "model")
    fields = {name: last.metadata.get(name, "") for name in names}
    times = {name: last.metadata.get(name, gotime.ZERO) for name in ("created_at", "updated_at")}
    if times["updated_at"] == gotime.ZERO:
        times["updated_at"] = times["created_at"]
    told = {name: {"ns": gotime.nanoseconds(text), "text": gotime.whole_seconds(text)} for name, text in times.items()}
    changed = replace(
        thread,
        title=last.text,
        created_ns=told["created_at"]["ns"] or 0,
        updated_ns=told["updated_at"]["ns"] or 0,
        origin={**thread.origin, "times": {name: {**one, "ns": one["ns"] or 0} for name, one in told.items()}},
        **fields,
    )
    return changed, times


def test_golden_loaded_messages_of_every_session(golden) -> None:
    for folder, journal, row in sessions(golden):
        loaded = msgspec.json.decode((folder / "expected" / f"{row['ID']}.load.json").read_bytes())
        found = [msgspec.json.decode(gojson.encode(wire_message(one))) for one in history(journal.path(row["ID"]))]
        assert found == (loaded.get("messages") or []), row["ID"]
        assert len(found) == row["Messages"]


def test_golden_tool_inputs_keep_the_text_of_their_numbers(golden) -> None:
    for folder, journal, row in sessions(golden):
        text = (folder / "expected" / f"{row['ID']}.load.json").read_text(encoding="utf-8")
        calls = [call for message in history(journal.path(row["ID"])) for call in message.tool_calls]
        numbers = {number for call in calls for number in re.findall(r":(-?\d[\d.eE+]*)", call.arguments)}
        assert all(number in text for number in numbers)


def test_golden_metadata_of_every_session_file(golden) -> None:
    for folder, journal, row in sessions(golden):
        loaded = expected(folder, f"{row['ID']}.load.json")
        thread, times = as_loaded(journal, row["ID"])
        assert (thread.title, thread.workspace) == (loaded["title"], loaded.get("workspace", ""))
        assert (thread.vendor, thread.endpoint, thread.model) == (loaded["vendor"], loaded["endpoint"], loaded["model"])
        if not row["CreatedIsNow"]:
            assert times["created_at"] == loaded["created_at"]


def test_golden_events_and_costs_of_every_session(golden) -> None:
    """DEFECT of the original: those before a checkpoint vanish. Here the expected ones are the last of all."""
    for folder, journal, row in sessions(golden):
        loaded = msgspec.json.decode((folder / "expected" / f"{row['ID']}.load.json").read_bytes())
        events = [raw_event(entry.payload) for entry in journal.events(row["ID"])]
        wanted = loaded.get("tunnel_events") or []
        assert events[len(events) - len(wanted) :] == wanted
        assert len(wanted) == row["TunnelEvents"]
        costs = [raw_cost(entry.payload) for entry in journal.path(row["ID"]) if isinstance(entry.payload, UsageReport)]
        if loaded.get("cost"):
            assert costs[-1] == base64.b64decode(loaded["cost"])


def raw_event(event: Event) -> Any:
    if "line" in event.origin:
        return msgspec.json.decode(from_kept(event.origin["line"]))["tunnel_event"]
    return msgspec.json.decode(gojson.encode_plain(wire_record(event, "").tunnel_event))


def raw_cost(report: UsageReport) -> bytes:
    class Line(msgspec.Struct):
        cost: msgspec.Raw

    line = from_kept(report.origin["line"]) if "line" in report.origin else gojson.encode_plain(wire_record(report, ""))
    return bytes(msgspec.json.decode(line, type=Line).cost)


def test_golden_event_streams_can_be_resumed_anywhere(golden) -> None:
    for _, journal, row in sessions(golden):
        events = journal.events(row["ID"])
        for place, entry in enumerate(events):
            assert journal.events(row["ID"], after=entry.id) == events[place + 1 :]
        assert journal.events(row["ID"], limit=1) == events[:1]


def test_golden_markdown_of_every_session(golden) -> None:
    for folder, journal, row in sessions(golden):
        text = (folder / "expected" / f"{row['ID']}.md").read_bytes().decode()
        thread, _ = as_loaded(journal, row["ID"])
        assert markdown(thread, journal.path(row["ID"])) == text, row["ID"]
        assert journal.export(row["ID"]).split("---", 1)[1] == text.split("---", 1)[1]


def test_golden_list_shows_sessions_with_user_text_newest_first(golden) -> None:
    for folder, journal in golden:
        wanted = expected(folder, "list.json")
        listed = {thread.id: thread for thread in journal.list_threads(limit=10_000)}
        found = [thread_id for thread_id in listed if thread_id in {row["id"] for row in wanted}]
        assert found == [row["id"] for row in wanted]
        for row in wanted:
            thread = listed[row["id"]]
            assert thread.title == re.sub("\ufffd+\\.\\.\\.$", "...", row["title"])
            assert (thread.vendor, thread.endpoint, thread.model) == (row["vendor"], row["endpoint"], row["model"])
            assert thread.workspace == row.get("workspace", "")
            assert thread.updated_ns == gotime.nanoseconds(row["updated_at"])


def test_golden_a_list_deletes_nothing(golden) -> None:
    """DEFECT of the original: List() deletes files. Here such a session is hidden if nobody said anything, and stays."""
    for folder, journal in golden:
        journal.list_threads(limit=10_000)
        for thread_id in expected(folder, "list_side_effects.json")["deleted_by_list"]:
            thread = journal.thread(thread_id)
            said = any(
                entry.message and entry.message.role == "user" and entry.message.text.strip()
                for entry in journal.entries(thread_id)
            )
            assert thread.is_archived == (not said)
            assert journal.entries(thread_id)


def test_golden_titles_are_never_cut_inside_a_character(golden) -> None:
    """DEFECT of the original: a title is cut after 57 bytes."""
    for _, journal, row in sessions(golden):
        assert "\ufffd..." not in journal.thread(row["ID"]).title


def test_golden_cleanup_removes_what_the_original_removes(golden, seed_fixtures: Path) -> None:
    for folder, _ in golden:
        answer = expected(folder, "list_side_effects.json")
        cut = gotime.nanoseconds(answer["cleanup_older_than"])
        assert cut is not None
        with st.open("memory:") as journal:
            import_sessions(journal, folder / "store")
            for thread_id in answer["deleted_by_list"]:
                journal.delete_thread(thread_id)
            would = journal.delete_older_than(cut, is_dry_run=True)
            assert len(would) == answer["cleanup_removed"]
            assert journal.delete_older_than(cut) == would
            assert [thread.id for thread in journal.list_threads(limit=10_000)] == answer["ids_after_cleanup"]


def test_golden_checkpoints_keep_the_history_before_them(golden) -> None:
    for _, journal, row in sessions(golden):
        path = journal.path(row["ID"])
        window = window_of(path)
        if window.boundary is not None:
            assert len(path) == len(window.head) + len(window.tail) + 1 + len(window.after)
            assert [entry.id for entry in path] == [entry.id for entry in journal.entries(row["ID"])]
