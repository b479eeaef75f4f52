"""floret's stores: everything that the original answered, and better answers where it failed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

import sessiontree as st
from golden_sets import GoldenSet, Json, sets, shortened
from golden_words import floret_tokens, go_segment
from sessiontree.context import Projected, build_context, extract_summary, project, segments_of
from sessiontree.model import Compaction, Custom, Entry, Message, ReasoningPart, UnknownPayload
from sessiontree.transfer.formats import _go, import_sessions
from sessiontree.transfer.formats._files import from_kept
from sessiontree.transfer.formats._records import UNREADABLE, ImportedRecord
from sessiontree.transfer.formats.floret import records
from sessiontree.transfer.formats.floret.entries import wire_message, wire_of

Golden = list[tuple[GoldenSet, st.Journal]]


@pytest.fixture(scope="module")
def golden(seed_fixtures: Path) -> Iterator[Golden]:
    """Each set with a journal that its sound store was imported into."""
    found = [(one, st.open("memory:")) for one in sets(seed_fixtures, "floret")]
    for one, journal in found:
        report = import_sessions(journal, one.store)
        assert report.format == "floret"
        assert not report.damage
    yield found
    for _, journal in found:
        journal.close()


def rows(golden: Golden) -> Iterator[tuple[GoldenSet, st.Journal, str, str]]:
    for one, journal in golden:
        for row in one.expected("index.json", []):
            yield one, journal, row["file_prefix"], row["thread_id"]


def origin_of(entry: Entry) -> dict[str, Any]:
    assert not isinstance(entry.payload, UnknownPayload)
    return entry.payload.origin


def floret_entry(entry: Entry) -> records.FloretEntry:
    origin = origin_of(entry)
    if "line" in origin:
        return _go.as_type(from_kept(origin["line"]), records.FloretEntry)
    line = wire_of(
        ImportedRecord(entry.payload, entry.id, entry.created_ns, entry.parent, entry.turn_id), entry.thread_id
    )
    records.encode_entry(line)
    return line


def is_readable(entry: Entry) -> bool:
    return not (isinstance(entry.payload, Custom) and entry.payload.name == UNREADABLE)


def floret_message(item: Projected) -> Json:
    found = wire_message(item.message)
    compaction = item.entry.payload if isinstance(item.entry.payload, Compaction) else Compaction()
    found.entry_id, found.parent_entry_id = item.entry.id, item.entry.parent or ""
    found.compaction_id, found.compaction_window_id = compaction.id, compaction.window_id
    found.compaction_generation = compaction.generation
    shown: dict[str, Any] = msgspec.to_builtins(found)
    return shown


def without_reasoning(message: Message) -> Message:
    """Return a message as floret counts it."""
    parts = tuple(part for part in message.parts if not isinstance(part, ReasoningPart))
    return msgspec.structs.replace(message, parts=parts)


def compare(view: Sequence[Projected], messages: list[Json] | None, segments: dict[Any, list[Json] | None]) -> None:
    assert shortened([floret_message(item) for item in view]) == (messages or [])
    counted = [Projected(entry=item.entry, message=without_reasoning(item.message)) for item in view]
    for purpose, wanted in segments.items():
        assert shortened([go_segment(one) for one in segments_of(counted, purpose, floret_tokens)]) == (wanted or []), (
            purpose
        )


@pytest.mark.replays("floret", "expected/index.json", "expected/*.entries.json")
def test_golden_entries_of_every_thread(golden: Golden) -> None:
    for one, journal, prefix, thread_id in rows(golden):
        found = [msgspec.to_builtins(floret_entry(entry)) for entry in journal.entries(thread_id)]
        assert shortened(found) == (one.expected(f"{prefix}.entries.json") or []), thread_id


@pytest.mark.replays("floret", "expected/*.raw.json")
def test_golden_raw_hashes_and_exact_lines(golden: Golden) -> None:
    for one, journal, prefix, thread_id in rows(golden):
        lines = []
        for entry in journal.entries(thread_id):
            line = floret_entry(entry)
            body = records.encode_entry(line)
            digest = hashlib.sha256(body).hexdigest()
            size = len(line.raw.encode())
            lines.append({"id": entry.id, "line_sha256": digest, "raw_bytes": size, "raw_hash": line.raw_hash})
        assert lines == (one.expected(f"{prefix}.raw.json") or []), thread_id


@pytest.mark.replays("floret", "expected/*.path.json", "expected/*.path_full.json")
def test_golden_paths_after_leaf_repair(golden: Golden) -> None:
    for one, journal, prefix, thread_id in rows(golden):
        path = journal.path(thread_id)
        assert [entry.id for entry in path] == (one.expected(f"{prefix}.path.json") or []), thread_id
        if one.has(f"expected/{prefix}.path_full.json"):
            full = [msgspec.to_builtins(floret_entry(entry)) for entry in path]
            assert shortened(full) == (one.expected(f"{prefix}.path_full.json") or [])


@pytest.mark.replays("floret", "expected/*.projection.json")
def test_golden_projections_of_imported_threads_message_for_message(golden: Golden) -> None:
    for one, journal, prefix, thread_id in rows(golden):
        view = project(journal.path(thread_id))
        answer = one.expected(f"{prefix}.projection.json")
        compare(view, answer["messages"], answer["segments"])
        messages = [msgspec.convert(floret_message(item), records.FloretMessage) for item in view]
        body = _go.encode(messages) if messages else b"null"
        assert hashlib.sha256(body).hexdigest() == answer["messages_json_sha256"], thread_id


@pytest.mark.replays("floret", "expected/*.other_tips.json")
def test_golden_projections_of_every_other_branch(golden: Golden) -> None:
    for one, journal, prefix, thread_id in rows(golden):
        if not one.has(f"expected/{prefix}.other_tips.json"):
            continue
        for tip, answer in one.expected(f"{prefix}.other_tips.json").items():
            path = journal.path(thread_id, tip)
            assert [entry.id for entry in path] == answer["path"]
            projection = answer["projection"]
            compare(project(path), projection["messages"], {"provider_request": projection.get("segments")})


@pytest.mark.replays("floret", "expected/*.projection.json", "expected/*.other_tips.json")
def test_golden_contexts_differ_only_by_repaired_orphans(golden: Golden) -> None:
    """Design 5: the context is the projection, except where a call or a result has lost its partner or its place."""
    for one, journal, prefix, thread_id in rows(golden):
        tips = one.expected(f"{prefix}.other_tips.json", {})
        assert one.expected(f"{prefix}.projection.json")
        for path in (journal.path(thread_id), *(journal.path(thread_id, tip) for tip in tips)):
            seen, projected = build_context(path), [item.message for item in project(path)]
            assert len(seen.segments) == len(seen.messages)
            if _is_paired(projected):
                assert list(seen.messages) == projected, thread_id
            else:
                _compare_mended(list(seen.messages), projected)
        assert journal.context(thread_id) == build_context(journal.path(thread_id))


def _is_paired(messages: Sequence[st.Message]) -> bool:
    """Whether each batch of calls is followed by its results, once each and in its order, as providers want it."""
    waiting: list[str] = []
    for message in messages:
        if message.role == "tool":
            if [result.call_id for result in message.tool_results] != waiting[:1]:
                return False
            waiting.pop(0)
        elif message.tool_calls:
            if message.role != "assistant":
                return False
            waiting += [call.id for call in message.tool_calls]
        elif waiting:
            return False
    return not waiting


def _without_calls(message: st.Message) -> st.Message:
    """Only an assistant calls tools."""
    if message.role == "assistant":
        return message
    return replace(message, parts=tuple(part for part in message.parts if not isinstance(part, st.ToolCallPart)))


def _compare_mended(seen: list[st.Message], projected: list[st.Message]) -> None:
    """Everything but results is the same; a result was made up, moved, or left out as an orphan or a second one."""
    assert [one for one in seen if one.role != "tool"] == [
        _without_calls(one) for one in projected if one.role != "tool"
    ]
    said = [one for one in projected if one.role == "tool"]
    answered = {result.call_id for one in said for result in one.tool_results}
    for one in seen:
        if one.role == "tool" and one not in said:
            assert one.kind == "missing_result"
    for one in (one for one in said if one not in seen):
        (result,) = one.tool_results
        others = [other for other in said if other is not one and other.tool_results[0].call_id == result.call_id]
        calls = [call.id for message in seen for call in message.tool_calls]
        assert result.call_id not in calls or others
    assert answered >= {result.call_id for one in seen if one in said for result in one.tool_results}
    paired = [result.call_id for one in seen for result in one.tool_results]
    assert paired == [call.id for one in seen for call in one.tool_calls]


@pytest.mark.replays("floret", "expected/index.json")
def test_golden_checkpoints_give_their_summary_back_and_counts_are_the_originals(golden: Golden) -> None:
    for one, journal in golden:
        for row in one.expected("index.json", []):
            path = journal.path(row["thread_id"])
            view = project(path)
            assert (journal.thread(row["thread_id"]).leaf or "") == row["leaf_id"]
            counted = (len(journal.entries(row["thread_id"])), len(path), len(view))
            assert counted == (row["entries"], row["path_length"], row["messages"]), row["thread_id"]
            for checkpoint in row["checkpoint_summary"] or []:
                message = view[checkpoint["message_index"]].message
                assert message.kind == "compaction_summary"
                assert shortened(extract_summary(message.text)) == checkpoint["extracted_summary"]


@pytest.mark.replays("floret", "expected/list_all.json", "expected/list_active_ids.json")
def test_golden_list_order_with_and_without_archived(golden: Golden) -> None:
    for one, journal in golden:
        if not one.has("expected/list_all.json"):
            continue
        listed = one.expected("list_all.json")
        page = journal.list_threads(is_archived=None, order="created", limit=len(listed) + 1)
        assert [thread.id for thread in page] == [row["id"] for row in listed]
        active = journal.list_threads(order="created", limit=len(listed) + 1)
        wanted = one.expected("list_active_ids.json", [row["id"] for row in listed if not row.get("archived")])
        assert [thread.id for thread in active] == wanted


@pytest.mark.replays("floret", "expected/list_pages.json")
def test_golden_list_pages(golden: Golden) -> None:
    for one, journal in golden:
        cursor = None
        for page in one.expected("list_pages.json", []):
            found = journal.list_threads(order="created", limit=page["limit"], cursor=cursor)
            assert [thread.id for thread in found] == (page["ids"] or [])
            cursor = found.cursor


@pytest.mark.replays("floret", "expected/list_all.json")
def test_golden_metadata_of_every_thread(golden: Golden) -> None:
    for one, journal in golden:
        for row in one.expected("list_all.json", []):
            thread = journal.thread(row["id"])
            assert thread.created_ns == _go.nanoseconds(row["created_at"])
            assert (thread.leaf or "") == row.get("leaf_id", "")
            assert thread.title == row.get("title", "")
            assert thread.status == row.get("status", "")
            assert thread.is_archived == row.get("archived", False)
            assert thread.parent_thread == row.get("parent_thread_id", "")


@pytest.mark.replays("floret", "expected/leases.json")
def test_golden_leases_are_imported_but_do_not_lock(golden: Golden) -> None:
    for one, journal in golden:
        threads = journal.list_threads(is_archived=None, limit=10_000)
        kept = {one.id: json.loads(one.origin["lease"]["text"]) for one in threads if "lease" in one.origin}
        assert kept == one.expected("leases.json", kept)
        assert all(journal.active_lease(thread_id) is None for thread_id in kept)


@pytest.mark.replays("floret", "expected/forks.json")
def test_golden_forks_know_where_they_come_from(golden: Golden) -> None:
    for one, journal in golden:
        for row in one.expected("forks.json", []):
            thread = journal.thread(row["NewID"])
            assert thread.origin.get("forked_from_thread", "") == row["Meta"].get("forked_from_thread_id", "")
            assert thread.origin.get("forked_from_entry", "") == row["Meta"].get("forked_from_entry_id", "")
            assert thread.parent_thread == row["Meta"].get("parent_thread_id", "")
            assert thread.created_ns == _go.nanoseconds(row["Now"])


@pytest.mark.replays("floret", "expected/forks.json")
def test_golden_forks_made_here_show_what_the_originals_copied(golden: Golden) -> None:
    """The original copies entries under new ids; here they are shared, and read the same."""
    for one, journal in golden:
        for row in one.expected("forks.json", []):
            at = row["Meta"].get("forked_from_entry_id")
            asked = {"before": row["EntryID"]} if row["Position"] == "before" else {"at": at}
            fork = journal.fork(row["Source"], **asked) if at else journal.fork(row["Source"])
            assert (fork.leaf or "") == (at or "")
            shown = [(entry.type, entry.message) for entry in journal.path(fork.id)]
            copied = journal.path(row["NewID"])[: len(shown)]
            assert shown == [(entry.type, entry.message) for entry in copied], row["NewID"]
            assert len(copied) == len(shown)
            journal.delete_thread(fork.id)


@pytest.mark.replays("floret", "expected/raw_not_rederivable.json")
def test_golden_every_line_can_be_written_again_from_its_entry(golden: Golden) -> None:
    for one, journal in golden:
        if not one.has("expected/raw_not_rederivable.json"):
            continue
        excepted = {row["id"] if isinstance(row, dict) else row for row in one.expected("raw_not_rederivable.json")}
        for thread in journal.list_threads(is_archived=None, limit=10_000):
            kept = {entry.id for entry in journal.entries(thread.id) if "line" in origin_of(entry)}
            assert kept <= excepted, thread.id


@pytest.mark.replays("floret", "expected/tokens_and_hashes.json")
def test_golden_tokens_and_hashes_of_texts(seed_fixtures: Path) -> None:
    for one in sets(seed_fixtures, "floret"):
        for row in one.expected("tokens_and_hashes.json", []):
            assert floret_tokens(row["s"]) == row["tokens"], row["s"]
            assert hashlib.sha256(row["s"].encode()).hexdigest() == row["hash"]


Damaged = list[tuple[GoldenSet, Path, str, st.Journal]]


@pytest.fixture(scope="module")
def damaged(seed_fixtures: Path) -> Iterator[Damaged]:
    """Each store beside the sound one, with the name of its answers."""
    found = []
    for one in sets(seed_fixtures, "floret"):
        for store in one.stores():
            answers = f"expected_{store.name.removeprefix('store_')}.json"
            if one.has(answers):
                journal = st.open("memory:")
                import_sessions(journal, store)
                found.append((one, store, answers, journal))
    yield found
    for *_, journal in found:
        journal.close()


def answers_of(damaged: Damaged) -> Iterator[tuple[Path, Json, st.Journal]]:
    for one, store, name, journal in damaged:
        yield store, json.loads(one.text(name)), journal


@pytest.mark.replays("floret", "expected_*.json")
def test_golden_every_damaged_store_has_its_answers(damaged: Damaged) -> None:
    """What the original lists is listed here, and what it does not know is a thread here or a note."""
    for _, answers, journal in answers_of(damaged):
        listed = [thread.id for thread in journal.list_threads(order="created", limit=10_000)]
        assert [name for name in listed if name in answers["listed_ids"]] == answers["listed_ids"]


@pytest.mark.replays("floret", "expected_*.json")
def test_golden_damaged_threads_project_as_the_original_does(damaged: Damaged) -> None:
    for _, answers, journal in answers_of(damaged):
        for thread_id, answer in answers["threads"].items():
            if "messages" in answer:
                found = [_native(floret_message(item), item.entry) for item in project(journal.path(thread_id))]
                assert shortened(found) == [_native(row) for row in answer["messages"] or []], thread_id


def _native(message: Json, entry: Entry | None = None) -> Json:
    """Without the parent, which a repair may have changed, and with the id that the source gave."""
    native = origin_of(entry).get("id", entry.id) if entry else message["EntryID"]
    return {**message, "EntryID": native, "ParentEntryID": ""}


@pytest.mark.replays("floret", "expected_*.json")
def test_golden_damaged_threads_keep_what_the_original_could_read(damaged: Damaged) -> None:
    for _, answers, journal in answers_of(damaged):
        for thread_id, answer in answers["threads"].items():
            if "entries" not in answer:
                continue
            entries = [entry for entry in journal.entries(thread_id) if is_readable(entry)]
            found = [_comparable(floret_entry(entry)) for entry in entries]
            assert shortened(found) == [_without_derived(row) for row in answer["entries"]], thread_id


def _comparable(entry: records.FloretEntry) -> Json:
    return _without_derived(msgspec.to_builtins(entry))


def _without_derived(row: Json) -> Json:
    """Entries without an id get one here; what is computed from the content is not compared."""
    return {key: value for key, value in row.items() if key not in ("raw", "raw_hash", "id", "created_at")}


@pytest.mark.replays("floret", "expected_*.json")
def test_golden_damaged_paths_are_the_originals_or_whole_where_it_failed(damaged: Damaged) -> None:
    for _, answers, journal in answers_of(damaged):
        for thread_id, answer in answers["threads"].items():
            path = journal.path(thread_id)
            if "path" in answer:
                natives = [getattr(entry.payload, "origin", {}).get("id", entry.id) for entry in path]
                assert natives == answer["path"], thread_id
            elif journal.entries(thread_id):
                assert path, thread_id


@pytest.mark.replays("floret", "expected_*.json")
def test_golden_hidden_threads_are_there_with_every_readable_record(damaged: Damaged) -> None:
    """DEFECT of the original: one broken line hides a whole thread."""
    for store, answers, journal in answers_of(damaged):
        for folder in store.iterdir():
            journal_file = folder / "entries.jsonl"
            readable = list(_readable_ids(journal_file)) if journal_file.exists() else []
            if readable:
                holder = _thread_of(journal, readable)
                found = [entry.id for entry in journal.entries(holder)]
                assert set(readable) <= set(found), folder.name
        assert all("thread_error" not in answer or journal.thread(name) for name, answer in answers["threads"].items())


def _readable_ids(path: Path) -> Iterator[str]:
    for line in path.read_bytes().split(b"\n"):
        try:
            value = json.loads(line)
        except ValueError:
            continue
        if isinstance(value, dict) and value.get("id"):
            yield value["id"]


def _thread_of(journal: st.Journal, entry_ids: list[str]) -> str:
    for thread in journal.list_threads(is_archived=None, limit=10_000):
        if entry_ids[0] in {entry.id for entry in journal.entries(thread.id)}:
            return thread.id
    raise AssertionError(f"no thread has {entry_ids[0]}")


@pytest.mark.replays("floret", "expected_*.json")
def test_golden_every_damaged_thread_can_be_leased(damaged: Damaged) -> None:
    """DEFECT of the original: an empty lease file locks a thread for ever."""
    for _, answers, journal in answers_of(damaged):
        for thread_id in answers["threads"]:
            with journal.turn(thread_id, owner="test"):
                assert journal.active_lease(thread_id) is not None
