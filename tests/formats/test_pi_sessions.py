"""pi's session files: every version, trees, damage, and the way back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import sessiontree as st
from known import of_kind, present
from sessiontree.model import BranchSummary, Compaction, Label, ModelChange
from sessiontree.transfer.formats import export_sessions, import_sessions
from sessiontree.transfer.formats._wire import Json
from sessiontree.transfer.formats.pi.records import wire_entry

DATA = Path(__file__).parent.parent / "data" / "pi"


def lines(path: Path) -> list[Json]:
    found = []
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            found.append(json.loads(line))
        except ValueError:
            continue
    return found


@pytest.mark.parametrize("path", sorted(DATA.glob("*.jsonl")), ids=lambda path: path.stem)
def test_every_entry_comes_in_with_all_its_fields(path: Path) -> None:
    header, *entries = lines(path)
    with st.open("memory:") as journal:
        import_sessions(journal, path)
        thread = journal.thread(header["id"])
        assert thread.workspace == header["cwd"]
        found = [wire_entry(entry) for entry in journal.entries(thread.id)]
        readable = [row for row in found if row.get("customType") != "unreadable"]
        for row, wanted in zip(readable, entries, strict=True):
            frame = ("id", "parentId", "timestamp") if "id" not in wanted else ("timestamp",)
            if "firstKeptEntryIndex" in wanted:
                frame = (*frame, "firstKeptEntryId")
            assert _without(row, *frame) == _without(wanted, *frame)


def _without(row: Json, *names: str) -> Json:
    return {key: value for key, value in row.items() if key not in names}


def test_the_way_back_gives_the_same_tree(tmp_path: Path) -> None:
    source = DATA / "synthetic_tree_v3.jsonl"
    with st.open("memory:") as journal:
        import_sessions(journal, source)
        report = export_sessions(journal, tmp_path / "out", format="pi")
    assert lines(tmp_path / "out" / report.files[0]) == lines(source)


def test_version_1_gets_a_chain_and_finds_its_kept_entry(tmp_path: Path) -> None:
    rows = [
        {"type": "session", "id": "old", "timestamp": "2025-01-01T00:00:00.000Z", "cwd": "/w"},
        {"type": "message", "timestamp": "2025-01-01T00:00:01.000Z", "message": {"role": "user", "content": "one"}},
        {"type": "message", "timestamp": "2025-01-01T00:00:02.000Z", "message": {"role": "user", "content": "two"}},
        {"type": "compaction", "timestamp": "2025-01-01T00:00:03.000Z", "summary": "s", "firstKeptEntryIndex": 2,
         "tokensBefore": 5},
        {"type": "message", "timestamp": "2025-01-01T00:00:04.000Z", "message": {"role": "user", "content": "three"}},
    ]  # fmt: skip
    path = tmp_path / "old.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with st.open("memory:") as journal:
        import_sessions(journal, path)
        entries = journal.path("old")
        assert [entry.parent for entry in entries] == [None, *(entry.id for entry in entries[:-1])]
        assert of_kind(Compaction, entries[2].payload).first_kept_entry_id == entries[1].id
        texts = [message.text for message in journal.context("old").messages]
        assert texts[1:] == ["two", "three"]


def test_version_2_hook_messages_reach_the_model_as_the_users(tmp_path: Path) -> None:
    rows = [
        {"type": "session", "version": 2, "id": "two", "timestamp": "2025-01-01T00:00:00Z", "cwd": "/w"},
        {"type": "message", "id": "a", "parentId": None, "timestamp": "2025-01-01T00:00:01Z",
         "message": {"role": "hookMessage", "customType": "note", "content": "from a hook", "display": True}},
    ]  # fmt: skip
    path = tmp_path / "two.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with st.open("memory:") as journal:
        import_sessions(journal, path)
        assert [(m.role, m.text) for m in journal.context("two").messages] == [("user", "from a hook")]


def test_a_file_without_a_header_is_read_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "2025_lost.jsonl"
    body = b'{"type":"message","id":"a","parentId":null,"timestamp":"2025-01-01T00:00:01Z","message":{"role":"user","content":"hi"}}\n'
    path.write_bytes(body)
    with st.open("memory:") as journal:
        report = import_sessions(journal, path, format="pi")
        assert report.damage
        assert present(journal.path("lost")[0].message).text == "hi"
    assert path.read_bytes() == body


@pytest.mark.parametrize("ring", [["a", "a"], ["b", "a"]], ids=["its own parent", "two in a ring"])
def test_rings_of_parents_are_cut_open(ring: list[str], tmp_path: Path) -> None:
    rows = [{"type": "session", "version": 3, "id": "ring", "timestamp": "2025-01-01T00:00:00Z", "cwd": "/"}]
    rows += [
        {"type": "message", "id": name, "parentId": parent, "timestamp": "2025-01-01T00:00:01Z",
         "message": {"role": "user", "content": name}}
        for name, parent in zip("ab", ring, strict=True)
    ]  # fmt: skip
    path = tmp_path / "ring.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with st.open("memory:") as journal:
        report = import_sessions(journal, path)
        assert report.repairs
        assert {present(entry.message).text for entry in journal.entries("ring")} == {"a", "b"}
        assert not journal.check()


def test_labels_branches_and_model_changes_keep_their_meaning() -> None:
    with st.open("memory:") as journal:
        report = import_sessions(journal, DATA / "synthetic_tree_v3.jsonl")
        entries = journal.entries(report.threads[0])
        kinds = {type(entry.payload) for entry in entries}
        assert kinds & {Label, BranchSummary, ModelChange, Compaction}
        assert journal.thread(report.threads[0]).leaf == entries[-1].id


TIME = "2025-01-01T00:00:00.000Z"
ODD_NUMBERS = [False, True, 0, 5, 0.0, 5.0, -3, 2**70, 10**400, "5", None, [1]]


def imported_and_back(tmp_path: Path, header: Json, *entries: Json) -> tuple[st.ImportReport, list[st.Payload]]:
    """The report and the payloads of an import; what is exported again must be the same JSON, to the last number."""
    source = tmp_path / "session.jsonl"
    rows = [{"type": "session", "version": 3, "id": "s", "timestamp": TIME, "cwd": "/w", **header}]
    for number, entry in enumerate(entries):
        rows.append({"id": str(number), "parentId": str(number - 1) if number else None, "timestamp": TIME, **entry})
    source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with st.open("memory:") as journal:
        report = import_sessions(journal, source, format="pi")
        payloads = [entry.payload for entry in journal.entries("s")]
        exported = export_sessions(journal, tmp_path / "out", format="pi")
    written = (tmp_path / "out" / exported.files[0]).read_text().splitlines()[1:]
    assert [json.dumps(json.loads(line), sort_keys=True) for line in written] == [
        json.dumps(row, sort_keys=True) for row in rows[1:]
    ]
    return report, payloads


@pytest.mark.parametrize("value", ODD_NUMBERS, ids=lambda value: str(value)[:10])
def test_a_compaction_comes_in_whatever_its_token_count_is(tmp_path: Path, value: object) -> None:
    entry = {"type": "compaction", "summary": "so far", "firstKeptEntryId": "0", "tokensBefore": value}
    report, [payload] = imported_and_back(tmp_path, {}, entry)
    assert report.notes == ()
    assert isinstance(payload, Compaction)
    assert payload.summary == "so far"
    assert payload.tokens_before == (5 if value is ODD_NUMBERS[3] else 0)


@pytest.mark.parametrize("value", ODD_NUMBERS, ids=lambda value: str(value)[:10])
def test_an_answer_comes_in_whatever_its_usage_is(tmp_path: Path, value: object) -> None:
    usage = {"input": value, "output": 7, "cost": {"total": value}}
    message = {"role": "assistant", "content": "hello", "usage": usage}
    report, [payload] = imported_and_back(tmp_path, {}, {"type": "message", "message": message})
    assert report.notes == ()
    assert isinstance(payload, st.AssistantMessage)
    assert payload.message.text == "hello"
    assert payload.usage is not None
    is_whole = type(value) is int
    assert (payload.usage.input_tokens, payload.usage.output_tokens) == (value if is_whole else 0, 7)
    is_amount = isinstance(value, int | float) and not isinstance(value, bool) and value < 10**300
    assert payload.usage.cost == (value if is_amount else 0)


def test_true_is_neither_a_version_nor_the_number_of_a_line(tmp_path: Path) -> None:
    said = {"type": "message", "message": {"role": "user", "content": "one"}}
    cut = {"type": "compaction", "summary": "so far", "firstKeptEntryIndex": True, "tokensBefore": 1}
    report, payloads = imported_and_back(tmp_path, {"version": True}, said, cut)
    assert ["version True" in note.problem for note in report.notes] == [True]
    assert isinstance(payloads[1], Compaction)
    assert payloads[1].first_kept_entry_id == ""
