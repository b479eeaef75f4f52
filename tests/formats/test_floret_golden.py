"""floret's stores: everything that the original answered, and better answers where it failed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from golden_sets import GoldenSet, Json, sets, shortened

import sessiontree as st
from sessiontree.context import Projected, build_context, project
from sessiontree.formats import gojson, gotime, import_sessions
from sessiontree.formats.floret import wire
from sessiontree.formats.floret.entries import wire_message, wire_of
from sessiontree.formats.session import UNREADABLE, Item
from sessiontree.formats.verbatim import from_kept
from sessiontree.model import Compaction, Custom, Entry


@pytest.fixture(scope="module")
def golden(seed_fixtures: Path) -> Iterator[list[tuple[Path, st.Journal]]]:
    """Each set with a journal that its sound store was imported into."""
    found = [(folder, st.open("memory:")) for folder in sets(seed_fixtures, "floret")]
    assert found
    for folder, journal in found:
        report = import_sessions(journal, folder / "store")
        assert report.format == "floret"
        assert not report.damage
    yield found
    for _, journal in found:
        journal.close()


def rows(golden: list[tuple[Path, st.Journal]]) -> Iterator[tuple[Path, st.Journal, str, str]]:
    for folder, journal in golden:
        for row in expected(folder, "index.json"):
            yield folder, journal, row["file_prefix"], row["thread_id"]


def floret_entry(entry: Entry) -> wire.Entry:
    origin = entry.payload.origin
    if "line" in origin:
        return gojson.as_type(from_kept(origin["line"]), wire.Entry)
    line = wire_of(Item(entry.payload, entry.id, entry.created_ns, entry.parent, entry.turn_id), entry.thread_id)
    wire.encode_entry(line)
    return line


def is_readable(entry: Entry) -> bool:
    return not (isinstance(entry.payload, Custom) and entry.payload.name == UNREADABLE)


def floret_message(item: Projected) -> Json:
    found = wire_message(item.message)
    compaction = item.entry.payload if isinstance(item.entry.payload, Compaction) else Compaction()
    found.entry_id, found.parent_entry_id = item.entry.id, item.entry.parent or ""
    found.compaction_id, found.compaction_window_id = compaction.id, compaction.window_id
    found.compaction_generation = compaction.generation
    return msgspec.to_builtins(found)


def test_golden_entries_of_every_thread(golden) -> None:
    for folder, journal, prefix, thread_id in rows(golden):
        found = [msgspec.to_builtins(floret_entry(entry)) for entry in journal.entries(thread_id)]
        assert shortened(found) == (expected(folder, f"{prefix}.entries.json") or []), thread_id


def test_golden_raw_hashes_and_exact_lines(golden) -> None:
    for folder, journal, prefix, thread_id in rows(golden):
        lines = []
        for entry in journal.entries(thread_id):
            line = floret_entry(entry)
            body = wire.encode_entry(line)
            digest = hashlib.sha256(body).hexdigest()
            size = len(line.raw.encode())
            lines.append({"id": entry.id, "line_sha256": digest, "raw_bytes": size, "raw_hash": line.raw_hash})
        assert lines == (expected(folder, f"{prefix}.raw.json") or []), thread_id


def test_golden_paths_after_leaf_repair(golden) -> None:
    for folder, journal, prefix, thread_id in rows(golden):
        path = journal.path(thread_id)
        assert [entry.id for entry in path] == (expected(folder, f"{prefix}.path.json") or []), thread_id
        if (folder / "expected" / f"{prefix}.path_full.json").exists():
            full = [msgspec.to_builtins(floret_entry(entry)) for entry in path]
            assert shortened(full) == (expected(folder, f"{prefix}.path_full.json") or [])


def test_golden_projections_of_imported_threads_message_for_message(golden) -> None:
    for folder, journal, prefix, thread_id in rows(golden):
        found = [floret_message(item) for item in project(journal.path(thread_id))]
        assert shortened(found) == (expected(folder, f"{prefix}.projection.json")["messages"] or []), thread_id


def test_golden_projections_of_every_other_branch(golden) -> None:
    for folder, journal, prefix, thread_id in rows(golden):
        if not (folder / "expected" / f"{prefix}.other_tips.json").exists():
            continue
        for tip, answer in expected(folder, f"{prefix}.other_tips.json").items():
            path = journal.path(thread_id, tip)
            assert [entry.id for entry in path] == answer["path"]
            found = [floret_message(item) for item in project(path)]
            assert shortened(found) == (answer["projection"]["messages"] or [])


def test_golden_contexts_differ_only_by_mended_orphans(golden) -> None:
    """Design 5: the context is the projection, except where a call or a result has lost its partner."""
    for _, journal, _, thread_id in rows(golden):
        seen = journal.context(thread_id)
        assert seen == build_context(journal.path(thread_id))
        calls = [call.id for message in seen.messages for call in message.tool_calls]
        results = [result.call_id for message in seen.messages for result in message.tool_results]
        assert sorted(calls) == sorted(results), thread_id


def test_golden_list_order_with_and_without_archived(golden) -> None:
    for folder, journal in golden:
        listed = expected(folder, "list_all.json")
        page = journal.list_threads(is_archived=None, order="created", limit=len(listed) + 1)
        assert [thread.id for thread in page] == [row["id"] for row in listed]
        active = journal.list_threads(order="created", limit=len(listed) + 1)
        assert [thread.id for thread in active] == expected(folder, "list_active_ids.json")


def test_golden_list_pages(golden) -> None:
    for folder, journal in golden:
        cursor = None
        for page in expected(folder, "list_pages.json"):
            found = journal.list_threads(order="created", limit=page["limit"], cursor=cursor)
            assert [thread.id for thread in found] == (page["ids"] or [])
            cursor = found.cursor


def test_golden_metadata_of_every_thread(golden) -> None:
    for folder, journal in golden:
        for row in expected(folder, "list_all.json"):
            thread = journal.thread(row["id"])
            assert thread.created_ns == gotime.nanoseconds(row["created_at"])
            assert (thread.leaf or "") == row.get("leaf_id", "")
            assert thread.title == row.get("title", "")
            assert thread.status == row.get("status", "")
            assert thread.is_archived == row.get("archived", False)
            assert thread.parent_thread == row.get("parent_thread_id", "")


def test_golden_leases_travel_along_but_lock_nobody_out(golden) -> None:
    for folder, journal in golden:
        threads = journal.list_threads(is_archived=None, limit=10_000)
        kept = {one.id: json.loads(one.origin["lease"]["text"]) for one in threads if "lease" in one.origin}
        assert kept == expected(folder, "leases.json")
        assert all(journal.active_lease(thread_id) is None for thread_id in kept)


def test_golden_forks_know_where_they_come_from(golden) -> None:
    for folder, journal in golden:
        for row in expected(folder, "forks.json"):
            thread = journal.thread(row["NewID"])
            assert thread.origin.get("forked_from_thread", "") == row["Meta"].get("forked_from_thread_id", "")
            assert thread.origin.get("forked_from_entry", "") == row["Meta"].get("forked_from_entry_id", "")


@pytest.fixture(scope="module")
def damaged(seed_fixtures: Path) -> Iterator[list[tuple[Path, Any, st.Journal]]]:
    found = []
    for folder in sets(seed_fixtures, "floret"):
        for store in stores(folder, "floret"):
            answers = folder / f"expected_{store.name.removeprefix('store_')}.json"
            if answers.exists():
                journal = st.open("memory:")
                import_sessions(journal, store)
                found.append((store, json.loads(answers.read_text(encoding="utf-8")), journal))
    yield found
    for _, _, journal in found:
        journal.close()


def test_golden_damaged_threads_keep_what_the_original_could_read(damaged) -> None:
    for _, answers, journal in damaged:
        for thread_id, answer in answers["threads"].items():
            if "entries" not in answer:
                continue
            entries = [entry for entry in journal.entries(thread_id) if is_readable(entry)]
            found = [_comparable(floret_entry(entry)) for entry in entries]
            assert shortened(found) == [_without_derived(row) for row in answer["entries"]], thread_id


def _comparable(entry: wire.Entry) -> Json:
    return _without_derived(msgspec.to_builtins(entry))


def _without_derived(row: Json) -> Json:
    """Entries without an id get one here; what is computed from the content is not compared."""
    return {key: value for key, value in row.items() if key not in ("raw", "raw_hash", "id", "created_at")}


def test_golden_damaged_paths_are_the_originals_or_whole_where_it_failed(damaged) -> None:
    for _, answers, journal in damaged:
        for thread_id, answer in answers["threads"].items():
            path = journal.path(thread_id)
            if "path" in answer:
                natives = [getattr(entry.payload, "origin", {}).get("id", entry.id) for entry in path]
                assert natives == answer["path"], thread_id
            elif journal.entries(thread_id):
                assert path, thread_id


def test_golden_hidden_threads_are_there_with_every_readable_record(damaged) -> None:
    """DEFECT of the original: one broken line hides a whole thread."""
    for store, answers, journal in damaged:
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


def test_golden_every_damaged_thread_can_be_leased(damaged) -> None:
    """DEFECT of the original: an empty lease file locks a thread for ever."""
    for _, answers, journal in damaged:
        for thread_id in answers["threads"]:
            with journal.turn(thread_id, owner="test"):
                assert journal.active_lease(thread_id) is not None
