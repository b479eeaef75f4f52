"""picoclaw's sessions: the histories that the original gave, and better answers where it lost something."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

import sessiontree as st
from golden_sets import GoldenSet, Json, sets
from known import present
from sessiontree.context import window_of
from sessiontree.model import Compaction, Entry
from sessiontree.model.builders import message_of, payload_of_any_role
from sessiontree.sessions.simple_store import SimpleStore
from sessiontree.transfer.formats import import_sessions
from sessiontree.transfer.formats.picoclaw.records import PicoclawMessage as Wire
from sessiontree.transfer.formats.picoclaw.records import payload_of, wire_of

Golden = list[tuple[GoldenSet, st.Journal]]


@pytest.fixture(scope="module")
def golden(seed_fixtures: Path) -> Iterator[Golden]:
    found = [(one, st.open("memory:")) for one in sets(seed_fixtures, "picoclaw")]
    for one, journal in found:
        import_sessions(journal, one.store, format="picoclaw")
    yield found
    for _, journal in found:
        journal.close()


def history(path: list[Entry]) -> list[Json]:
    window = window_of(path)
    found = (wire_of(entry.payload) for entry in (*window.tail, *window.after))
    return [msgspec.to_builtins(message) for message in found if message is not None]


def summary(path: list[Entry]) -> str:
    boundary = window_of(path).boundary
    return boundary.payload.summary if boundary and isinstance(boundary.payload, Compaction) else ""


@pytest.mark.replays("picoclaw", "expected/keys.json", "expected/*.history.json")
def test_golden_histories_and_summaries_of_every_key(golden: Golden) -> None:
    for one, journal in golden:
        for row in one.expected("keys.json", []):
            path = journal.path(row["key"])
            assert history(path) == one.expected(row["history_file"]), row["key"]
            assert summary(path) == row["summary"]


@pytest.mark.replays("picoclaw", "expected/keys.json")
def test_golden_skipped_messages_stay_readable(golden: Golden) -> None:
    """DEFECT of the original: what is truncated is lost with the next save."""
    for one, journal in golden:
        for row in one.expected("keys.json", []):
            said = [entry for entry in journal.entries(row["key"]) if wire_of(entry.payload)]
            assert len(said) >= row["messages"]
            if row["meta_skip"] and row["messages"]:
                assert len(said) > row["messages"] or row["meta_skip"] > len(said)


@pytest.mark.replays("picoclaw", "expected/keys.json")
def test_golden_a_broken_meta_file_hides_no_history(golden: Golden) -> None:
    """DEFECT of the original: the history of a session with a broken meta file reads as empty."""
    for one, journal in golden:
        known = {row["file"] for row in one.expected("keys.json", [])}
        hidden = [path for path in one.store.glob("*.jsonl") if path.name.removesuffix(".jsonl") not in known]
        for path in hidden:
            lines = [line for line in path.read_bytes().split(b"\n") if line.strip()]
            found = history(journal.path(path.name.removesuffix(".jsonl")))
            assert len(found) == len(lines)


def test_golden_an_append_after_a_torn_line_is_kept(golden: Golden) -> None:
    """DEFECT of the original: the next message is glued to a torn line and lost."""
    for _, journal in golden:
        for thread in journal.list_threads(limit=10_000):
            before = history(journal.path(thread.id))
            journal.append(thread.id, st.user("after the tear"))
            assert history(journal.path(thread.id))[: len(before)] == before
            assert history(journal.path(thread.id))[-1]["content"] == "after the tear"
            journal.rewind(thread.id, thread.leaf) if thread.leaf else journal.reset(thread.id)


@pytest.mark.replays("picoclaw", "expected/*_migration.json")
def test_golden_legacy_sessions_come_in_as_the_migration_brings_them(seed_fixtures: Path) -> None:
    for one in sets(seed_fixtures, "picoclaw"):
        for store in one.stores():
            name = f"{store.name}_migration.json"
            if one.has(f"expected/{name}"):
                with st.open("memory:") as journal:
                    _compare_migration(journal, store, one.expected(name))


def _compare_migration(journal: st.Journal, store: Path, answers: Json) -> None:
    before = sorted(path.name for path in store.iterdir())
    report = import_sessions(journal, store)
    for key, answer in answers["sessions"].items():
        if key in report.threads:
            path = journal.path(key)
            assert history(path) == answer["history"]
            assert summary(path) == answer["summary"]
        else:
            assert not answer["history"]
            assert any(key in note.place for note in report.damage)
    moved = {name.removesuffix(".json.migrated") for name in answers["files_after"] if name.endswith(".migrated")}
    assert answers["migrated"] == len(moved - {name.removesuffix(".json.migrated") for name in before})
    again = import_sessions(journal, store)
    assert (again.created, again.entries_added) == (answers["migrated_second_run"], 0)
    assert sorted(path.name for path in store.iterdir()) == before


@pytest.mark.replays("picoclaw", "expected/errors.json")
def test_golden_what_the_original_answers_with_an_error_or_with_nothing(golden: Golden) -> None:
    """DEFECT of the original: a broken meta file is an error, or an empty answer. An unknown key is empty for both."""
    for one, journal in golden:
        known = {row["key"] for row in one.expected("keys.json", [])}
        for name, answer in one.expected("errors.json", {}).items():
            if name.endswith("_history_error"):
                thread_id = name.removesuffix("_history_error")
                assert thread_id not in known
                assert answer
                assert history(journal.path(thread_id))
            elif name == "unknown_key_history":
                assert SimpleStore(journal).get_history("no such key at all") == (answer or [])


@pytest.mark.replays("picoclaw", "expected/operations.json")
def test_golden_operations_one_by_one(seed_fixtures: Path) -> None:
    """Through the store that has the original's verbs, after each call.

    DEFECT of the original: a message after a torn line is lost, and lines that cannot be read count as messages to keep.
    """
    for one in sets(seed_fixtures, "picoclaw"):
        if one.has("expected/operations.json"):
            with st.open("memory:") as journal:
                import_sessions(journal, one.store, format="picoclaw", prefix=SimpleStore.thread_id(""))
                _replay(journal, one.expected("operations.json"))


def _replay(journal: st.Journal, steps: list[Json]) -> None:
    store = SimpleStore(journal)
    keys = {step["key"] for step in steps}
    models = {key: _shown(store, key) for key in keys}
    sound = {key for key in keys if _is_sound(journal, store.thread_id(key))}
    for step in steps:
        key = step["key"]
        models[key] = _by_the_rules(models[key], step)
        _call(store, step)
        wanted, shown = models[key], _shown(store, key)
        assert shown[len(shown) - len(wanted) :] == wanted, step
        assert _is_cut_at_a_pair(shown, len(shown) - len(wanted)), step
        assert store.get_summary(key) == step["after"]["summary"]
        models[key] = shown
        if key in sound and wanted == shown:
            ends = (len(shown), shown[0] if shown else None, shown[-1] if shown else None)
            assert ends == (step["after"]["history_len"], step["after"]["first"], step["after"]["last"]), step
        else:
            sound.discard(key)
    assert all(step["after"]["history_len"] <= len(store.get_full_history(step["key"])) for step in steps)


def _call(store: SimpleStore, step: Json) -> None:
    match step["op"]:
        case "add":
            store.add_message(step["key"], "user", step["arg"])
        case "truncate":
            store.truncate_history(step["key"], step["arg"])
        case "set_summary":
            store.set_summary(step["key"], step["arg"])
        case "set_history":
            store.set_history(step["key"], [_message(wire) for wire in step["arg"]])
        case "compact":
            pass  # the original throws away what it skipped; here that stays readable, and takes no part in anything
        case other:
            raise AssertionError(f"{other} is no operation that is known")


def _by_the_rules(model: list[Json], step: Json) -> list[Json]:
    match step["op"]:
        case "add":
            return [*model, {"role": "user", "content": step["arg"]}]
        case "truncate":
            return model[-step["arg"] :] if step["arg"] > 0 else []
        case "set_history":
            return list(step["arg"])
        case _:
            return model


def _message(wire: Json) -> st.Message:
    return present(message_of(payload_of(msgspec.convert(wire, Wire))))


def _shown(store: SimpleStore, key: str) -> list[Json]:
    found = (wire_of(payload_of_any_role(message)) for message in store.get_history(key))
    return [msgspec.to_builtins(message) for message in found if message is not None]


def _is_sound(journal: st.Journal, thread_id: str) -> bool:
    """Whether every line is a message, and no more of them are skipped than there are; a new session is."""
    try:
        thread = journal.thread(thread_id)
    except st.ThreadNotFoundError:
        return True
    said = [entry for entry in journal.entries(thread_id) if not isinstance(entry.payload, Compaction)]
    return all(entry.message for entry in said) and thread.origin["skip"] <= len(said)


def _is_cut_at_a_pair(shown: list[Json], extra: int) -> bool:
    """More than was asked for stays only where a call in it has its result behind the cut, or still waits for it."""
    calls = {call["id"] for message in shown[:extra] for call in message.get("tool_calls", ())}
    answered = {message.get("tool_call_id") for message in shown[:extra]}
    return not extra or bool(calls - answered)
