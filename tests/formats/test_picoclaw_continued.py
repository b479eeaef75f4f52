"""picoclaw's sessions go on here: imported, continued through SimpleStore, truncated, exported, read as picoclaw reads."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

import sessiontree as st
from golden_sets import Json, sets
from opened import open_store
from sessiontree.model.builders import payload_of_any_role
from sessiontree.sessions.simple_store import SimpleStore
from sessiontree.transfer.formats import export_sessions, import_sessions
from sessiontree.transfer.formats.picoclaw.records import wire_of

KINDS = ("memory", "sqlite", "jsonl", "postgres")
CALL = st.assistant("let me look", calls=[st.call("c9", "ls", '{"path":"."}')]).message
NEW = [
    {"role": "user", "content": "and then?"},
    {
        "role": "assistant",
        "content": "let me look",
        "tool_calls": [{"id": "c9", "type": "function", "function": {"name": "ls", "arguments": '{"path":"."}'}}],
    },
    {"role": "tool", "content": "a.txt", "tool_call_id": "c9"},
    {"role": "developer", "content": "be brief"},
]


def go_on(store: SimpleStore, key: str) -> None:
    store.add_message(key, "user", "and then?")
    store.add_full_message(key, CALL)
    store.add_full_message(key, st.tool_result("c9", "a.txt").message)
    store.add_message(key, "developer", "be brief")


def shown(store: SimpleStore, key: str) -> list[Json]:
    found = (wire_of(payload_of_any_role(message)) for message in store.get_history(key))
    return [msgspec.to_builtins(message) for message in found if message is not None]


def files_of(folder: Path, key: str) -> tuple[list[bytes], Json]:
    """The lines and the meta file of a key, found as picoclaw finds them."""
    stem = key.replace(":", "_").replace("/", "_").replace("\\", "_")
    return lines_of(folder / f"{stem}.jsonl"), json.loads((folder / f"{stem}.meta.json").read_bytes())


def lines_of(file: Path) -> list[bytes]:
    return [line for line in file.read_bytes().split(b"\n") if line]


def read_by_the_rules(folder: Path, key: str) -> tuple[list[Json], str]:
    """The history and the summary that picoclaw shows: the lines after those that are skipped, without broken ones."""
    lines, meta = files_of(folder, key)
    assert meta["key"] == key
    assert meta["count"] == len(lines)
    return [message for line in lines[meta["skip"] :] if (message := decoded(line)) is not None], meta["summary"]


def decoded(line: bytes) -> Json | None:
    try:
        found = json.loads(line)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


@pytest.mark.parametrize("kind", KINDS)
def test_golden_sessions_are_continued_truncated_and_exported(kind: str, seed_fixtures: Path, tmp_path: Path) -> None:
    compared = 0
    for number, source in enumerate(source for one in sets(seed_fixtures, "picoclaw") for source in one.stores()):
        place, target = tmp_path / f"place{number}", tmp_path / f"out{number}"
        place.mkdir()
        with open_store(kind, place, durability="process_crash") as journal:
            report = import_sessions(journal, source, format="picoclaw")
            store = SimpleStore(journal)
            for key in report.threads:
                before = shown(store, key)
                go_on(store, key)
                assert shown(store, key) == [*before, *NEW], key
                store.set_summary(key, "so far")
                store.truncate_history(key, 3)
                assert shown(store, key) == NEW[1:], key
            exported = export_sessions(journal, target, format="picoclaw")
            assert sorted(exported.threads) == sorted(report.threads)
            assert not exported.losses
            for key in report.threads:
                assert read_by_the_rules(target, key) == (NEW[1:], "so far")
                compared += _compare_originals(source, target, key)
        with st.open("memory:") as journal:
            import_sessions(journal, target)
            again = SimpleStore(journal)
            for key in report.threads:
                assert (shown(again, key), again.get_summary(key)) == (NEW[1:], "so far")
    assert compared


def _compare_originals(source: Path, target: Path, key: str) -> int:
    """Every record of the source is still there, byte for byte and in its order."""
    stem = key.replace(":", "_").replace("/", "_").replace("\\", "_")
    lines, _ = files_of(target, key)
    file = source / f"{stem}.jsonl"
    if file.is_file():
        originals = lines_of(file)
        assert lines[: len(originals)] == originals
        return 1
    legacy = [path for path in source.glob("*.json") if b"key" in path.read_bytes()]
    said = [found for path in legacy if (found := decoded(path.read_bytes())) and found.get("key") == key]
    for messages in (session.get("messages") or [] for session in said):
        assert [json.loads(line) for line in lines[: len(messages)]] == messages
    return len(said)


def test_a_key_that_was_made_here_is_exported_as_that_key(tmp_path: Path) -> None:
    with st.open("memory:") as journal:
        store = SimpleStore(journal)
        store.add_message("telegram:42", "user", "hello")
        store.add_message("telegram:42", "function", "42")
        export_sessions(journal, tmp_path / "out", format="picoclaw")
        assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
            "telegram_42.jsonl",
            "telegram_42.meta.json",
        ]
        said = [{"role": "user", "content": "hello"}, {"role": "function", "content": "42"}]
        assert read_by_the_rules(tmp_path / "out", "telegram:42") == (said, "")


@pytest.mark.parametrize("kind", KINDS)
def test_an_export_after_compact_storage_has_only_what_is_left(kind: str, tmp_path: Path) -> None:
    with open_store(kind, tmp_path) as journal:
        store = SimpleStore(journal)
        for number in range(10):
            store.add_message("k", "user", f"m{number}")
        store.truncate_history("k", 4)
        export_sessions(journal, tmp_path / "before", format="picoclaw")
        assert len(files_of(tmp_path / "before", "k")[0]) == 10
        store.compact_storage("k")
        report = export_sessions(journal, tmp_path / "after", format="picoclaw")
        lines, meta = files_of(tmp_path / "after", "k")
        assert [json.loads(line)["content"] for line in lines] == ["m6", "m7", "m8", "m9"]
        assert (meta["skip"], meta["count"]) == (0, 4)
        assert not report.losses


@pytest.mark.parametrize("kind", KINDS)
def test_an_import_can_be_repeated_after_compact_storage(kind: str, seed_fixtures: Path, tmp_path: Path) -> None:
    for number, one in enumerate(sets(seed_fixtures, "picoclaw")):
        place = tmp_path / str(number)
        place.mkdir()
        with open_store(kind, place, durability="process_crash") as journal:
            report = import_sessions(journal, one.store, format="picoclaw")
            store = SimpleStore(journal)
            for key in report.threads:
                store.truncate_history(key, 1)
                store.compact_storage(key)
            before = {key: shown(store, key) for key in report.threads}
            assert import_sessions(journal, one.store, format="picoclaw").entries_added == 0
            assert {key: shown(store, key) for key in report.threads} == before
            assert journal.check() == []


def test_a_folder_that_is_not_there_has_no_sessions(tmp_path: Path) -> None:
    with st.open("memory:") as journal:
        report = import_sessions(journal, tmp_path / "missing", format="picoclaw")
        assert (report.created, report.entries_added, report.threads, report.damage) == (0, 0, (), ())
        assert not (tmp_path / "missing").exists()
        with pytest.raises(st.InvalidInputError, match="unknown format 'word'"):
            import_sessions(journal, tmp_path / "missing", format="word")


def test_a_truncated_session_of_the_older_layout_is_exported_in_the_newer_one(tmp_path: Path) -> None:
    source = tmp_path / "sessions"
    source.mkdir()
    said = [{"role": "user", "content": f"m{number}"} for number in range(3)]
    session = {"key": "cli", "messages": said, "created": "2026-02-01T08:00:00Z", "updated": "2026-02-02T09:00:00Z"}
    (source / "cli.json").write_text(json.dumps(session, indent=2))
    with st.open("memory:") as journal:
        import_sessions(journal, source)
        store = SimpleStore(journal)
        store.add_message("cli", "user", "m3")
        export_sessions(journal, tmp_path / "whole", format="picoclaw")
        whole = json.loads((tmp_path / "whole" / "cli.json").read_bytes())
        assert whole["messages"] == [*said, {"role": "user", "content": "m3"}]
        store.truncate_history("cli", 1)
        export_sessions(journal, tmp_path / "cut", format="picoclaw")
        assert read_by_the_rules(tmp_path / "cut", "cli") == ([{"role": "user", "content": "m3"}], "")
        assert len(files_of(tmp_path / "cut", "cli")[0]) == 4
