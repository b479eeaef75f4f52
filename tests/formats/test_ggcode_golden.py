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

import sessiontree as st
from golden_sets import GoldenSet, Json, sets
from known import of_kind, present
from sessiontree.context import window_of
from sessiontree.context.markdown import history, markdown
from sessiontree.model import Event, Thread, ThreadInfo, UsageReport
from sessiontree.transfer.formats import _go, import_sessions
from sessiontree.transfer.formats._files import from_kept
from sessiontree.transfer.formats.ggcode.records import is_said_by_user, wire_message, wire_record

Golden = list[tuple[GoldenSet, st.Journal]]


@pytest.fixture(scope="module")
def golden(seed_fixtures: Path) -> Iterator[Golden]:
    found = [(one, st.open("memory:")) for one in sets(seed_fixtures, "ggcode")]
    for one, journal in found:
        assert import_sessions(journal, one.store).format == "ggcode"
    yield found
    for _, journal in found:
        journal.close()


def sessions(golden: Golden) -> Iterator[tuple[GoldenSet, st.Journal, Json]]:
    for one, journal in golden:
        for row in one.expected("sessions.json", []):
            yield one, journal, row


def as_loaded(journal: st.Journal, thread_id: str) -> tuple[Thread, dict[str, str]]:
    """The thread as its own file describes it: the index may know better."""
    thread = journal.thread(thread_id)
    infos = [entry.payload for entry in journal.path(thread_id) if isinstance(entry.payload, ThreadInfo)]
    last = infos[-1] if infos else ThreadInfo()
    names = ("workspace", "vendor", "endpoint", "model")
    fields = {name: last.metadata.get(name, "") for name in names}
    times = {name: last.metadata.get(name, _go.ZERO) for name in ("created_at", "updated_at")}
    if times["updated_at"] == _go.ZERO:
        times["updated_at"] = times["created_at"]
    stored_times = {
        name: {"ns": _go.nanoseconds(text), "text": _go.whole_seconds(text)} for name, text in times.items()
    }
    changed = replace(
        thread,
        title=last.text,
        created_ns=stored_times["created_at"]["ns"] or 0,
        updated_ns=stored_times["updated_at"]["ns"] or 0,
        origin={**thread.origin, "times": {name: {**one, "ns": one["ns"] or 0} for name, one in stored_times.items()}},
        **fields,
    )
    return changed, times


@pytest.mark.replays("ggcode", "expected/sessions.json", "expected/*.load.json")
def test_golden_loaded_messages_of_every_session(golden: Golden) -> None:
    for one, journal, row in sessions(golden):
        loaded = one.expected(f"{row['ID']}.load.json")
        found = [msgspec.json.decode(_go.encode(wire_message(one))) for one in history(journal.path(row["ID"]))]
        assert found == (loaded.get("messages") or []), row["ID"]
        assert len(found) == row["Messages"]


@pytest.mark.replays("ggcode", "expected/*.load.json")
def test_golden_tool_inputs_keep_the_text_of_their_numbers(golden: Golden) -> None:
    for one, journal, row in sessions(golden):
        text = one.text(f"expected/{row['ID']}.load.json")
        calls = [call for message in history(journal.path(row["ID"])) for call in message.tool_calls]
        numbers = {number for call in calls for number in re.findall(r":(-?\d[\d.eE+]*)", call.arguments)}
        assert all(number in text for number in numbers)


@pytest.mark.replays("ggcode", "expected/*.load.json")
def test_golden_metadata_of_every_session_file(golden: Golden) -> None:
    for one, journal, row in sessions(golden):
        loaded = one.expected(f"{row['ID']}.load.json")
        thread, times = as_loaded(journal, row["ID"])
        assert (thread.title, thread.workspace) == (loaded["title"], loaded.get("workspace", ""))
        assert (thread.vendor, thread.endpoint, thread.model) == (loaded["vendor"], loaded["endpoint"], loaded["model"])
        if not row["CreatedIsNow"]:
            assert times["created_at"] == loaded["created_at"]


@pytest.mark.replays("ggcode", "expected/*.load.json")
def test_golden_events_and_costs_of_every_session(golden: Golden) -> None:
    """DEFECT of the original: those before a checkpoint vanish. Here the expected ones are the last of all."""
    for one, journal, row in sessions(golden):
        loaded = one.expected(f"{row['ID']}.load.json")
        events = [raw_event(of_kind(Event, entry.payload)) for entry in journal.events(row["ID"])]
        wanted = loaded.get("tunnel_events") or []
        assert events[len(events) - len(wanted) :] == wanted
        assert len(wanted) == row["TunnelEvents"]
        costs = [raw_cost(entry.payload) for entry in journal.path(row["ID"]) if isinstance(entry.payload, UsageReport)]
        if loaded.get("cost"):
            assert costs[-1] == base64.b64decode(loaded["cost"])


def raw_event(event: Event) -> Any:
    if "line" in event.origin:
        return msgspec.json.decode(from_kept(event.origin["line"]))["tunnel_event"]
    return msgspec.json.decode(_go.encode_plain(present(wire_record(event, "")).tunnel_event))


def raw_cost(report: UsageReport) -> bytes:
    class Line(msgspec.Struct):
        cost: msgspec.Raw

    line = from_kept(report.origin["line"]) if "line" in report.origin else _go.encode_plain(wire_record(report, ""))
    return bytes(msgspec.json.decode(line, type=Line).cost)


@pytest.mark.replays("ggcode", "expected/sessions.json")
def test_golden_event_streams_can_be_resumed_anywhere(golden: Golden) -> None:
    for _, journal, row in sessions(golden):
        events = journal.events(row["ID"])
        for place, entry in enumerate(events):
            assert journal.events(row["ID"], after=entry.id) == events[place + 1 :]
        assert journal.events(row["ID"], limit=1) == events[:1]


@pytest.mark.replays("ggcode", "expected/*.md")
def test_golden_markdown_of_every_session(golden: Golden) -> None:
    for one, journal, row in sessions(golden):
        text = one.text(f"expected/{row['ID']}.md")
        thread, _ = as_loaded(journal, row["ID"])
        assert markdown(thread, journal.path(row["ID"])) == text, row["ID"]
        assert journal.export(row["ID"]).split("---", 1)[1] == text.split("---", 1)[1]


@pytest.mark.replays("ggcode", "expected/list.json")
def test_golden_list_shows_sessions_with_user_text_newest_first(golden: Golden) -> None:
    for one, journal in golden:
        wanted = one.expected("list.json", [])
        listed = {thread.id: thread for thread in journal.list_threads(limit=10_000)}
        found = [thread_id for thread_id in listed if thread_id in {row["id"] for row in wanted}]
        assert found == [row["id"] for row in wanted]
        for row in wanted:
            thread = listed[row["id"]]
            assert thread.title == re.sub("\ufffd+\\.\\.\\.$", "...", row["title"])
            assert (thread.vendor, thread.endpoint, thread.model) == (row["vendor"], row["endpoint"], row["model"])
            assert thread.workspace == row.get("workspace", "")
            assert thread.updated_ns == _go.nanoseconds(row["updated_at"])


@pytest.mark.replays("ggcode", "expected/list_side_effects.json")
def test_golden_a_list_deletes_nothing(golden: Golden) -> None:
    """DEFECT of the original: List() deletes files. Here such a session is hidden if nobody said anything, and stays."""
    for one, journal in golden:
        journal.list_threads(limit=10_000)
        for thread_id in one.expected("list_side_effects.json", {}).get("deleted_by_list", []):
            thread = journal.thread(thread_id)
            said = any(
                entry.message and entry.message.role == "user" and entry.message.text.strip()
                for entry in journal.entries(thread_id)
            )
            assert thread.is_archived == (not said)
            assert journal.entries(thread_id)


@pytest.mark.replays("ggcode", "expected/sessions.json")
def test_golden_titles_are_never_cut_inside_a_character(golden: Golden) -> None:
    """DEFECT of the original: a title is cut after 57 bytes."""
    for _, journal, row in sessions(golden):
        assert "\ufffd..." not in journal.thread(row["ID"]).title


@pytest.mark.replays("ggcode", "expected/list_side_effects.json")
def test_golden_cleanup_removes_what_the_original_removes(golden: Golden) -> None:
    for one, _ in golden:
        if not one.has("expected/list_side_effects.json"):
            continue
        answer = one.expected("list_side_effects.json")
        cut = _go.nanoseconds(answer["cleanup_older_than"])
        assert cut is not None
        with st.open("memory:") as journal:
            import_sessions(journal, one.store)
            for thread_id in answer["deleted_by_list"]:
                journal.delete_thread(thread_id)
            would = journal.delete_older_than(cut, is_dry_run=True)
            assert len(would) == answer["cleanup_removed"]
            assert journal.delete_older_than(cut) == would
            assert [thread.id for thread in journal.list_threads(limit=10_000)] == answer["ids_after_cleanup"]
            unknown = answer["load_missing_error"].removeprefix("session ").removesuffix(" not found")
            with pytest.raises(st.ThreadNotFoundError, match=re.escape(unknown)):
                journal.thread(unknown)


@pytest.mark.replays("ggcode", "expected/sessions.json")
def test_golden_sessions_without_user_text_are_hidden_and_kept(golden: Golden) -> None:
    """The original looks at the last checkpoint alone; here what the user said before it counts, too."""
    for _, journal, row in sessions(golden):
        said = any(is_said_by_user(entry.message) for entry in journal.path(row["ID"]))
        assert said >= row["HasUserText"]
        listed = {thread.id for thread in journal.list_threads(limit=10_000)}
        assert (row["ID"] in listed) == said, row["ID"]
        assert journal.thread(row["ID"]).is_archived == (not said)
        assert journal.entries(row["ID"])


@pytest.mark.replays("ggcode", "expected/sessions.json")
def test_golden_checkpoints_keep_the_history_before_them(golden: Golden) -> None:
    for _, journal, row in sessions(golden):
        path = journal.path(row["ID"])
        window = window_of(path)
        if window.boundary is not None:
            assert len(path) == len(window.head) + len(window.tail) + 1 + len(window.after)
            assert [entry.id for entry in path] == [entry.id for entry in journal.entries(row["ID"])]
