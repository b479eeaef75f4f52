"""floret's types, words and functions, called by their names here and compared with what floret does."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest
from msgspec.structs import asdict, fields

import sessiontree as st
from floret_rows import both, everywhere, ids, say, threads
from long_conversations import FakeModel
from opened import url_of
from seed_rows import covers
from sessiontree.context import Context, Purpose, Segment, build_context, project, segments_of
from sessiontree.model.entry import (
    ActiveToolsChange,
    AssistantMessage,
    BranchSummary,
    Compaction,
    Custom,
    Entry,
    ModelChange,
    RunFailure,
    ThreadInfo,
    ToolCallMessage,
    ToolResultMessage,
    TurnMarker,
    TurnStatus,
    UserMessage,
    entry_type,
)
from sessiontree.model.thread import Thread, ThreadQuery
from sessiontree.stores.listing import page_of, sort_by_created
from sessiontree.stores.protocol import Store
from sessiontree.testing.clock import ManualClock
from sessiontree.transfer.formats.floret import raw_of

STORES = ("memory", "sqlite", "jsonl", "postgres")
HOUR = 3600

ENTRY_TYPES: dict[str, tuple[str, st.Payload]] = {
    "EntryThreadInfo": ("thread_info", ThreadInfo()),
    "EntryTurnMarker": ("turn_marker", TurnMarker(status="started")),
    "EntryUserMessage": ("user_message", UserMessage(message=st.user("hi").message)),
    "EntryAssistantMessage": ("assistant_message", AssistantMessage(message=st.assistant("hi").message)),
    "EntryToolCall": ("tool_call", ToolCallMessage(message=st.assistant(calls=[st.call("c", "ls")]).message)),
    "EntryToolResult": ("tool_result", ToolResultMessage(message=st.tool_result("c", "x").message)),
    "EntryModelChange": ("model_change", ModelChange(provider="p", model="m")),
    "EntryActiveTools": ("active_tools_change", ActiveToolsChange(tools=("ls", "cat"))),
    "EntryCompaction": ("compaction", Compaction(summary="so far")),
    "EntryBranchSummary": ("branch_summary", BranchSummary(summary="left")),
    "EntryRunFailure": ("run_failure", RunFailure(error="broken")),
    "EntryCustom": ("custom", Custom(name="custom")),
}


@covers(*ENTRY_TYPES, "EntryType")
@pytest.mark.parametrize("symbol", ENTRY_TYPES)
def test_an_entry_type_has_florets_wire_name(symbol: str, journal: st.Journal) -> None:
    name, payload = ENTRY_TYPES[symbol]
    journal.create_thread("t")
    entry = journal.append("t", payload)
    assert entry_type(payload) == entry.type == journal.entry("t", entry.id).type == name
    assert raw_of(entry).startswith(f'{{"type":"{name}",')


@covers("ForkAt", "ForkBefore", "ForkPosition", "ForkOptions", *everywhere("Fork"))
def test_a_fork_ends_at_an_entry_or_before_it(journal: st.Journal, clock: ManualClock) -> None:
    journal.create_thread("source", title="T", status="unread", is_archived=True)
    say(journal, "source", "one", "two", "three")
    clock.advance(60)
    at = journal.fork("source", at="two", new_id="at")
    before = journal.fork("source", before="two", new_id="before", created_ns=7)
    whole = journal.fork("source", new_id="whole")
    assert [ids(journal.path(name)) for name in ("at", "before", "whole")] == [
        ["one", "two"],
        ["one"],
        ["one", "two", "three"],
    ]
    assert (before.parent_thread, before.forked_from_thread, before.forked_from_entry) == ("source", "source", "one")
    assert (at.created_ns, at.updated_ns, before.created_ns) == (clock(), clock(), 7)
    assert (at.title, at.status, at.is_archived) == ("", "", False)
    assert whole.leaf == "three"
    # floret copies the whole thread here: it takes the empty parent of the first entry for the leaf.
    assert journal.path(journal.fork("source", before="one").id) == []
    with pytest.raises(st.EntryNotFoundError):
        journal.fork("source", before="unknown")
    with pytest.raises(st.ThreadExistsError):
        journal.fork("source", at="three", new_id="at")
    with pytest.raises(st.ThreadNotFoundError):
        journal.fork("unknown")
    assert journal.fork(journal.create_thread("empty").id).leaf is None
    assert ids(journal.path("at")) == ["one", "two"]


@covers("ProjectionCompaction", "ProjectionProviderRequest", "ProjectionTestUI", "ProjectionPurpose")
@covers("ContextProjectionOptions", "ContextProjection", "ProjectedSegment", "BuildContextProjection")
def test_messages_are_the_same_for_every_purpose_and_segments_tell_where_they_come_from(journal: st.Journal) -> None:
    assert get_args(Purpose) == ("provider_request", "compaction", "test_ui")
    journal.create_thread("t")
    ref = st.ArtifactRef(id="a1", label="log", size=900)
    view = st.ResultView(is_truncated=True, original_bytes=900, full_output=ref)
    journal.append("t", st.user("x" * 300), id="e1")
    journal.append("t", st.assistant(calls=[st.call("c", "ls")]), id="e2")
    journal.append("t", st.tool_result("c", "seen", name="ls", view=view), id="e3")
    built = {purpose: build_context(journal.path("t"), purpose) for purpose in get_args(Purpose)}
    assert all(isinstance(found, Context) for found in built.values())
    assert built["provider_request"].messages == built["compaction"].messages == built["test_ui"].messages
    assert [segment.entry_id for segment in built["compaction"].segments] == ["e1", "e2", "e3"]
    assert set(fields_of(Segment)) >= {"entry_id", "entry_type", "message_index", "role", "tool_call_id", "tool_name"}
    first, call, result = built["test_ui"].segments
    assert (first.message_index, first.role, first.token_estimate) == (0, "user", 46)
    assert (call.entry_type, call.tool_call_id, call.tool_name) == ("tool_call", "c", "ls")
    assert first.ui_preview == "x" * 240 + "..."
    assert result.artifact_refs == (ref,)
    assert built["provider_request"].segments[0].ui_preview == ""
    assert built["provider_request"].segments[2].artifact_refs == ()


def fields_of(record: type[Segment]) -> list[str]:
    return [field.name for field in fields(record)]


@covers("BuildContext", "ContextOptions")
def test_a_context_shows_messages_alone_and_starts_at_the_last_compaction(journal: st.Journal) -> None:
    journal.create_thread("t")
    say(journal, "t", "old", "kept")
    journal.append("t", ModelChange(provider="p", model="m"))
    journal.append("t", Compaction(id="c", summary="S", first_kept_entry_id="kept", kept_user_entry_ids=("old",)))
    journal.append("t", st.tool_result("lost", "orphan"), id="orphan")
    path = journal.path("t")
    checkpoint, kept, orphan = (item.message for item in project(path))
    assert (checkpoint.role, checkpoint.kind) == ("user", "compaction_summary")
    assert '"entry_id": "old"' in checkpoint.text
    assert (kept.text, orphan.role) == ("kept", "tool")
    assert [segment.entry_id for segment in segments_of(project(path))] == [path[3].id, "kept", "orphan"]
    # A provider refuses a result without a call, so the context leaves it out; project() has it, as floret does.
    assert journal.context("t").messages == (checkpoint, kept)
    assert [item.text for item in journal.context("t", leaf="kept").messages] == ["old", "kept"]


@covers("ThreadTitleReady", "ThreadTitleFailed", "ThreadTitleStatus")
@pytest.mark.parametrize("word", ["ready", "failed"])
def test_a_title_has_florets_status(word: str, journal: st.Journal) -> None:
    journal.create_thread("t")
    journal.append("t", st.user("Plan the release"))

    def titler(_text: str) -> str:
        if word == "failed":
            raise ZeroDivisionError
        return "A plan"

    titled = journal.suggest_title("t", titler)
    assert titled.title_status == word
    assert titled.title == ("A plan" if word == "ready" else "Plan the release")
    assert journal.update_thread("t", title_status="stale").title_status == "stale"


@covers("ThreadTitleSourceHost", "ThreadTitleSourceProvider", "ThreadTitleSource")
@pytest.mark.parametrize("word", ["host", "provider"])
def test_a_title_has_florets_source(word: str, journal: st.Journal) -> None:
    journal.create_thread("t")
    journal.append("t", st.user("Plan the release"))
    titled = journal.suggest_title("t", (lambda _text: "A plan") if word == "provider" else None)
    assert titled.title_source == word
    assert journal.update_thread("t", title_source="person").title_source == "person"


STATUSES: dict[str, TurnStatus] = {
    "TurnStarted": "started",
    "TurnSavePoint": "save_point",
    "TurnCompleted": "completed",
    "TurnWaiting": "waiting",
    "TurnFailed": "failed",
    "TurnAborted": "aborted",
}


@covers(*STATUSES, "TurnMarkerStatus")
@pytest.mark.parametrize("symbol", STATUSES)
def test_a_turn_marker_has_florets_status(symbol: str, journal: st.Journal) -> None:
    word = STATUSES[symbol]
    assert word in get_args(TurnStatus)
    journal.create_thread("t")
    entry = journal.append("t", TurnMarker(status=word, metadata={"why": "test"}), turn_id="turn")
    assert (journal.entries("t")[0].payload, entry.turn_id) == (
        TurnMarker(status=word, metadata={"why": "test"}),
        "turn",
    )
    assert f'"turn_status":"{word}"' in raw_of(entry)
    with pytest.raises(st.InvalidInputError):
        journal.append("t", TurnMarker(status="paused"))  # type: ignore[arg-type]


@covers("ErrThreadNotFound", "ErrEntryNotFound", "ErrInvalidParent", "ErrActiveTurn", "ErrThreadExists")
def test_florets_errors_are_classes_that_carry_the_ids(journal: st.Journal) -> None:
    journal.create_thread("t")
    say(journal, "t", "e")
    lease = journal.acquire_lease("t", owner="me", turn_id="turn")
    with pytest.raises(st.errors.ThreadNotFoundError) as no_thread:
        journal.thread("no")
    with pytest.raises(st.errors.EntryNotFoundError) as no_entry:
        journal.entry("t", "no")
    with pytest.raises(st.errors.InvalidParentError) as no_parent:
        journal.append("t", st.user("x"), parent="no")
    with pytest.raises(st.errors.ActiveTurnError) as busy:
        journal.acquire_lease("t", owner="you")
    with pytest.raises(st.errors.ThreadExistsError) as taken:
        journal.create_thread("t")
    assert (no_thread.value.thread_id, taken.value.thread_id) == ("no", "t")
    assert (no_entry.value.thread_id, no_entry.value.entry_id) == ("t", "no")
    assert (no_parent.value.thread_id, no_parent.value.parent) == ("t", "no")
    assert (busy.value.owner, busy.value.turn_id, busy.value.expires_ns) == ("me", "turn", lease.expires_ns)


@covers("AppendMessage")
def test_the_type_of_a_message_follows_from_its_role_and_its_calls(journal: st.Journal) -> None:
    journal.create_thread("t")
    calling = (st.ToolCallPart(id="c", name="ls", arguments="{}"),)
    said = (
        st.Message(role="user", parts=(st.TextPart(text="hi"),)),
        st.Message(role="assistant", parts=(st.TextPart(text="hi"),)),
        st.Message(role="assistant", parts=calling),
        st.Message(role="tool", parts=(st.ToolResultPart(call_id="c", parts=(st.TextPart(text="x"),)),)),
    )
    found = [journal.append("t", message, turn_id="turn") for message in said]
    assert [entry.type for entry in found] == ["user_message", "assistant_message", "tool_call", "tool_result"]
    assert [entry.message for entry in journal.path("t")] == list(said)
    assert {entry.turn_id for entry in found} == {"turn"}


@covers("AppendActiveTools", "AppendFailure")
def test_tools_and_failures_are_appended(journal: st.Journal) -> None:
    journal.create_thread("t")
    tools = journal.append("t", ActiveToolsChange(tools=("ls", "cat"), metadata={"by": "host"}))
    failure = journal.append("t", RunFailure(error="no answer"), turn_id="turn")
    assert '"metadata":{"by":"host","tools":"ls,cat"}' in raw_of(tools)
    assert '"error":"no answer"' in raw_of(failure)
    assert (journal.context("t").active_tools, journal.context("t").messages) == (("ls", "cat"), ())
    with pytest.raises(RuntimeError), journal.turn("t") as turn:
        raise RuntimeError("broken")
    assert [entry.type for entry in journal.path("t")[-2:]] == ["run_failure", "turn_marker"]
    assert journal.path("t")[-1].turn_id == turn.lease.turn_id


@covers("AppendTurnMarker")
def test_a_turn_writes_its_markers(journal: st.Journal) -> None:
    journal.create_thread("t")
    with journal.turn("t", owner="me", turn_id="turn") as turn:
        turn.append(st.user("hi"))
    markers = [entry.payload for entry in journal.path("t") if isinstance(entry.payload, TurnMarker)]
    assert [marker.status for marker in markers] == ["started", "completed"]
    assert {entry.turn_id for entry in journal.path("t")} == {"turn"}


@covers("AppendCompaction")
def test_compactions_count_their_generations(journal: st.Journal) -> None:
    journal.create_thread("t")
    policy = st.CompactionPolicy(keep_recent_messages=1, keep_user_tokens=0)
    found = []
    for generation in (1, 2):
        say(journal, "t", *(f"{generation}.{number} " + "word " * 90 for number in range(6)))
        result = journal.compact("t", FakeModel(f"S{generation}"), policy=policy)
        found.append(next(e.payload for e in reversed(journal.path("t")) if isinstance(e.payload, Compaction)))
        assert result.window_id == found[-1].id
    first, second = found
    assert [(one.generation, one.summary, one.window_id) for one in found] == [
        (1, "S1", first.id),
        (2, "S2", second.id),
    ]
    assert (first.previous_id, second.previous_id) == ("", first.id)
    assert (second.trigger, second.reason) == ("manual", "manual")
    assert first.first_kept_entry_id.startswith("1.5")


@covers("ApplyThreadListOptions", "SortThreadsByCreatedAtDesc")
def test_a_list_of_threads_is_sorted_and_cut_without_a_store() -> None:
    given = [
        Thread(id=f"t{number:03}", tree="t", created_ns=number // 2, updated_ns=9, is_archived=number % 10 == 0)
        for number in range(120)
    ]
    newest = sorted(given, key=lambda thread: (-thread.created_ns, thread.id))
    active = [thread for thread in newest if not thread.is_archived]
    before = list(given)
    assert sort_by_created(given) == newest
    assert sorted(page_of(given), key=lambda thread: thread.id) == given
    assert list(page_of(given, ThreadQuery(order="created", limit=None))) == active
    first = page_of(given, ThreadQuery(order="created", limit=7))
    rest = page_of(given, ThreadQuery(order="created", limit=None, cursor=first.cursor))
    assert (list(first), list(rest)) == (active[:7], active[7:])
    assert given == before


@covers("ListThreads", "ListThreadsOptions", *both("ListThreads"))
def test_threads_are_listed_by_creation_then_id(journal: st.Journal) -> None:
    for name, created in (("older", 1), ("beta", 3), ("alpha", 3), ("newer", 2)):
        journal.create_thread(name, created_ns=created)
    journal.create_thread("archived", created_ns=4, is_archived=True)
    journal.update_thread("older", updated_ns=99)
    first = journal.list_threads(ThreadQuery(order="created", limit=2))
    assert threads(first) == ["alpha", "beta"]
    assert threads(journal.list_threads(order="created", limit=None, cursor=first.cursor)) == ["newer", "older"]
    assert threads(journal.list_threads(order="created", is_archived=None, limit=1)) == ["archived"]
    assert threads(journal.list_threads())[0] == "older"


@covers("NewMemoryRepo", "NewFileRepo", "FileRepo", "MemoryRepo", "Repo", "ThreadListRepo", "TurnLeaseRepo")
@pytest.mark.parametrize("kind", STORES)
def test_one_class_opens_every_store_and_a_durable_one_lasts(kind: str, tmp_path: Path) -> None:
    with st.open(url_of(kind, tmp_path)) as first:
        assert isinstance(first, st.Journal)
        store: Store = first.store
        assert store.place
        first.create_thread("t", title="kept")
        say(first, "t", "a", "b")
        lease = first.acquire_lease("t", owner="me", ttl_seconds=HOUR)
        assert threads(first.list_threads()) == ["t"]
    with st.open(url_of(kind, tmp_path)) as second:
        assert threads(second.list_threads()) == ([] if kind == "memory" else ["t"])
        if kind != "memory":
            assert (ids(second.path("t")), second.active_lease("t")) == (["a", "b"], lease)


@covers("PrepareEntry", "RawForEntry", "StableHash", "Entry")
def test_an_entry_carries_its_canonical_text_and_the_hash_of_it(journal: st.Journal, clock: ManualClock) -> None:
    journal.create_thread("t")
    journal.create_thread("other")
    first = journal.append("t", st.assistant("<hi>", provider="p", model="m"), turn_id="turn")
    clock.advance(5)
    again = journal.append("other", st.assistant("<hi>", provider="p", model="m"))
    assert isinstance(journal.entry("t", first.id), Entry)
    assert set(asdict(first)) == {"id", "thread_id", "parent", "created_ns", "turn_id", "payload"}
    assert first.raw == again.raw == journal.path("t")[0].raw
    assert first.raw_hash == again.raw_hash == st.content_hash(first.raw)
    assert first.raw_hash != journal.append("t", st.assistant("<hi>", provider="p", model="n")).raw_hash
    assert (
        raw_of(first)
        == raw_of(again)
        == (
            '{"type":"assistant_message","message":{"Role":"assistant","Content":"\\u003chi\\u003e","Reasoning":"",'
            '"ToolCallID":"","ToolName":"","ToolArgs":"","EntryID":"","ParentEntryID":"","Kind":"","ToolResult":null,'
            '"CompactionID":"","CompactionGeneration":0,"CompactionWindowID":""},"provider":"p","model":"m"}'
        )
    )
    assert st.content_hash("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
