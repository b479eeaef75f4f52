"""A file of the openrouter SDK goes on through CheckpointedSessions, and comes out as the SDK would have written it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import sessiontree as st
from golden_sets import Json, sets
from opened import open_store
from sessiontree.sessions.checkpointed import CheckpointedSession, CheckpointedSessions
from sessiontree.transfer.formats import export_sessions, import_sessions

STORES = ["memory", "sqlite", "jsonl", "postgres"]
NEW: list[Json] = [
    {"content": 'go on with <this> & "that" \u2028', "role": "user"},
    {"content": None, "role": "assistant", "tool_calls": [{"id": "n1", "type": "function"}], "x": 9007199254740993},
    {"content": "done", "role": "tool", "tool_call_id": "n1"},
]
FIELDS = ["ID", "CreatedAt", "UpdatedAt", "Messages", "UserTurns", "Checkpoints", "FileCheckpoints"]


def golden_store(fixtures: Path) -> Path:
    (one,) = [one for one in sets(fixtures, "openrouter") if one.has("expected/list.json")]
    return next(store for store in one.stores() if store.name == "sessions.json")


def block(lines: list[str], start: str) -> list[str]:
    """The lines of a JSON value, without the one that opens it and the one that closes it."""
    at = next(number for number, line in enumerate(lines) if line.startswith(start))
    if lines[at].rstrip(",").endswith(("[]", "{}", "null")):
        return []
    indent = lines[at][: len(lines[at]) - len(lines[at].lstrip())]
    end = next(number for number in range(at + 1, len(lines)) if lines[number].startswith((indent + "]", indent + "}")))
    return lines[at + 1 : end]


def session_lines(lines: list[str], key: str) -> list[str]:
    return block(
        block(lines, '  "sessions": {'),
        f"    {json.dumps(key, ensure_ascii=False)}: {{".replace("<>&", "\\u003c\\u003e\\u0026"),
    )


def continued(sessions: CheckpointedSessions, key: str) -> None:
    """A turn as the SDK's runner makes it: the user's message, a checkpoint of it, and the answers."""
    before = sessions.get(key)
    said, *answers = NEW
    turns = before.user_turns + 1
    sessions.set_state(key, [*before.messages, said], user_turns=turns)
    sessions.snapshot(key, f"{key}-new")
    sessions.set_state(key, [*before.messages, said, *answers], user_turns=turns)


@pytest.mark.parametrize("store", STORES)
def test_golden_sessions_go_on_and_every_original_record_stays(store: str, seed_fixtures: Path, tmp_path: Path) -> None:
    source = golden_store(seed_fixtures)
    original = json.loads(source.read_bytes())["sessions"]
    with open_store(store, tmp_path) as journal:
        import_sessions(journal, source)
        sessions = CheckpointedSessions(journal)
        for key in original:
            continued(sessions, key)
            journal.compact(
                key, lambda _: "what was said", force=True, policy=st.CompactionPolicy(keep_recent_tokens=1)
            )
        report = export_sessions(journal, tmp_path / "out", format="openrouter")
        assert {note.problem for note in report.losses} <= {"the SDK cannot hold entries of type compaction"}
        kept = {key: sessions.get(key) for key in original}
    written = tmp_path / "out" / "sessions.json"
    _compare_bytes(source, written, list(original))
    _compare_values(original, written)
    _compare_again(kept, written, tmp_path)


def _compare_bytes(source: Path, written: Path, keys: list[str]) -> None:
    """Line by line: the original's messages begin the list, and its checkpoints are all there."""
    old, new = (path.read_text(encoding="utf-8").split("\n") for path in (source, written))
    assert block(old, '  "fork_counters"') == block(new, '  "fork_counters"')
    for key in keys:
        before, after = session_lines(old, key), session_lines(new, key)
        assert [line for line in after if line.startswith('      "')][:2] == before[:2]
        messages = block(before, '      "Messages"')
        shown = block(after, '      "Messages"')
        assert [line.rstrip(",") for line in shown[: len(messages)]] == [line.rstrip(",") for line in messages]
        for name in ("Checkpoints", "FileCheckpoints"):
            saved = [line.rstrip(",") for line in block(before, f'      "{name}"')]
            text = "\n".join(line.rstrip(",") for line in block(after, f'      "{name}"'))
            for start, line in enumerate(saved):
                if line.startswith('        "'):
                    end = next(
                        (at for at in range(start + 1, len(saved)) if saved[at].startswith('        "')), len(saved)
                    )
                    assert "\n".join(saved[start:end]) in text, (key, name, line)


def _compare_values(original: dict[str, Json], written: Path) -> None:
    found = json.loads(written.read_bytes())["sessions"]
    assert list(found) == sorted(original, key=str.encode)
    for key, before in original.items():
        after = found[key]
        assert list(after) == FIELDS
        assert after["Messages"] == [*(before["Messages"] or []), *NEW]
        assert after["UserTurns"] == before["UserTurns"] + 1
        assert after["Checkpoints"] == {**before["Checkpoints"], f"{key}-new": [*(before["Messages"] or []), NEW[0]]}
        assert after["FileCheckpoints"] == before["FileCheckpoints"]
        assert after["CreatedAt"] == before["CreatedAt"]
        assert after["UpdatedAt"] > before["UpdatedAt"]


def _compare_again(kept: dict[str, CheckpointedSession], written: Path, tmp_path: Path) -> None:
    """What was written reads back as the same sessions, and comes out with the same bytes."""
    with st.open("memory:") as journal:
        assert not import_sessions(journal, written).damage
        again = CheckpointedSessions(journal)
        for key, before in kept.items():
            found = again.get(key)
            assert (found.messages, found.user_turns) == (before.messages, before.user_turns)
            assert dict(found.checkpoints) == dict(before.checkpoints)
            assert set(found.file_checkpoints) == set(before.file_checkpoints)
        export_sessions(journal, tmp_path / "again", format="openrouter")
    assert (tmp_path / "again" / "sessions.json").read_bytes() == written.read_bytes()


@pytest.mark.parametrize("store", STORES)
def test_golden_clones_and_fork_ids_go_on(store: str, seed_fixtures: Path, tmp_path: Path) -> None:
    source = golden_store(seed_fixtures)
    before = json.loads(source.read_bytes())
    before["fork_counters"]["nobody"] = 4
    changed = tmp_path / "sessions.json"
    changed.write_text(json.dumps(before), encoding="utf-8")
    with open_store(store, tmp_path) as journal:
        import_sessions(journal, changed)
        import_sessions(journal, changed)
        sessions = CheckpointedSessions(journal)
        assert sessions.new_fork_id("nobody") == "nobody#fork-5"
        clone = sessions.fork("alpha")
        assert clone.id == f"alpha#fork-{before['fork_counters']['alpha'] + 1}"
        journal.delete_thread("alpha")
        assert {name: list(saved) for name, saved in clone.checkpoints.items()} == before["sessions"]["alpha"][
            "Checkpoints"
        ]
        assert not import_sessions(journal, changed).damage
        assert sessions.new_fork_id("alpha") == f"alpha#fork-{before['fork_counters']['alpha'] + 2}"
        export_sessions(journal, tmp_path / "out", format="openrouter")
    after = json.loads((tmp_path / "out" / "sessions.json").read_bytes())
    assert after["fork_counters"] == {
        **before["fork_counters"],
        "nobody": 5,
        "alpha": before["fork_counters"]["alpha"] + 2,
    }
    for name in ("Messages", "UserTurns", "Checkpoints", "FileCheckpoints"):
        assert after["sessions"][clone.id][name] == before["sessions"]["alpha"][name]


@pytest.mark.parametrize("store", STORES)
def test_golden_rewinds_keep_the_turns_in_one_step(store: str, seed_fixtures: Path, tmp_path: Path) -> None:
    """The SDK stores no user turns with a checkpoint: a rewind keeps those of the session, with files and without."""
    root = tmp_path / "root"
    root.mkdir()
    (root / "mine").write_text("text")
    with open_store(store, tmp_path) as journal:
        import_sessions(journal, golden_store(seed_fixtures))
        sessions = CheckpointedSessions(journal)
        continued(sessions, "alpha")
        before = sessions.get("alpha")
        name = next(iter(before.file_checkpoints))
        for files in (None, root):
            back = sessions.rewind("alpha", name, files=files)
            assert (back.messages, back.user_turns) == (before.checkpoints[name], before.user_turns)
            assert (root / "mine").exists() == (files is None)
            journal.undo("alpha", conflicts="force")
            undone = sessions.get("alpha")
            assert (undone.messages, undone.user_turns) == (before.messages, before.user_turns)
            assert (root / "mine").exists()
