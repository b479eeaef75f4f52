"""floret's stores go on here and come back: every original record byte for byte, the new ones in floret's format."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

import sessiontree as st
from golden_sets import sets
from opened import open_store
from sessiontree.context import extract_summary, project
from sessiontree.transfer.formats import _go, export_sessions, import_sessions
from sessiontree.transfer.formats._records import unreadable_bytes
from sessiontree.transfer.formats.floret import raw_of, records
from sessiontree.transfer.formats.floret.entries import OURS, wire_message
from sessiontree.transfer.formats.floret.read import repaired_leaf

SOME = (
    ("memory", 1),
    ("sqlite", 4),
    ("jsonl", 4),
    ("postgres", 9),
    *(pytest.param(kind, 1, marks=pytest.mark.deep) for kind in ("sqlite", "jsonl", "postgres")),
)
"""Each store with the distance between the threads that are taken: one thread costs more on some stores."""
DAMAGED = ("store_damaged",)
POLICY = st.CompactionPolicy(keep_recent_messages=2, keep_user_tokens=50)


@pytest.fixture
def sources(seed_fixtures: Path, tmp_path: Path) -> Iterator[list[Path]]:
    """Copies of floret's stores, sound and damaged ones."""
    found = [store for one in sets(seed_fixtures, "floret") for store in one.stores()]
    copies = [tmp_path / "sources" / str(number) / store.name for number, store in enumerate(found)]
    for store, copy in zip(found, copies, strict=True):
        shutil.copytree(store, copy)
    yield copies
    for store, copy in zip(found, copies, strict=True):
        assert contents(store) == contents(copy), "an import changed its source"


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def go_on(journal: st.Journal, thread_id: str) -> list[str]:
    """Three messages and a compaction; the ids of what is new."""
    known = {entry.id for entry in journal.entries(thread_id)}
    calls = [st.call("c1", "ls", '{"path": "<.>"}')]
    with journal.turn(thread_id, owner="host") as turn:
        turn.append(st.user("and now? <&> \u2028 é"))
        turn.append(st.assistant("look", calls=calls, reasoning="why", provider="p", model="m"))
        turn.append(st.tool_result("c1", "a\nb", name="ls"))
    journal.compact(thread_id, lambda _request: "What happened so far.", policy=POLICY, force=True)
    return [entry.id for entry in journal.entries(thread_id) if entry.id not in known]


def seen_by_floret(exported: Path, place: Path) -> Path:
    """The exported store as floret reads it: it takes no notice of our payloads in the metadata."""
    shutil.copytree(exported, place)
    for path in place.rglob("entries.jsonl"):
        lines = path.read_bytes().split(b"\n")
        path.write_bytes(b"\n".join(_without_ours(line) if OURS.encode() in line else line for line in lines))
    return place


def _without_ours(line: bytes) -> bytes:
    entry = _go.as_type(line, records.FloretEntry)
    del entry.metadata[OURS]
    return records.encode_entry(entry)


QUOTED = re.compile(r"(?s)^\[\n.*?^\]$", re.MULTILINE)


def visible(journal: st.Journal, thread_id: str) -> list[Any]:
    """What floret's BuildContext gives for a thread; each program has its own words around a summary."""
    shown = [(item.entry.id, wire_message(item.message)) for item in project(journal.path(thread_id))]
    for _, message in shown:
        if message.kind == "compaction_summary":
            message.content = "\n".join([extract_summary(message.content), *QUOTED.findall(message.content)])
    return shown


def folder_of(thread: st.Thread) -> str:
    return str(thread.origin.get("folder") or records.folder_name(thread.origin.get("id", thread.id)))


@pytest.mark.parametrize(("kind", "step"), SOME)
def test_golden_threads_go_on_and_come_back(kind: str, step: int, sources: list[Path], tmp_path: Path) -> None:
    for number, whole in enumerate(sources):
        source = tmp_path / f"part{number}" / whole.name
        for folder in sorted(whole.iterdir())[::step]:
            shutil.copytree(folder, source / folder.name)
        place = tmp_path / f"store{number}"
        place.mkdir()
        with open_store(kind, place) as journal, st.open("memory:") as again:
            report = import_sessions(journal, source)
            new = {thread_id: go_on(journal, thread_id) for thread_id in report.threads}
            assert all(len(added) >= 5 for added in new.values())
            target = tmp_path / f"exported{number}"
            export_sessions(journal, target, format="floret", threads=report.threads)
            for thread_id, added in new.items():
                check_records(journal, thread_id, added, source, target)
            import_sessions(again, target)
            for thread_id in new:
                # A record whose parent is missing has no place of its own, so it is compared without one.
                is_damaged = source.name in DAMAGED
                assert as_said(again, thread_id, has_places=not is_damaged) == as_said(
                    journal, thread_id, has_places=not is_damaged
                )
                assert again.context(thread_id) == journal.context(thread_id)


def check_records(journal: st.Journal, thread_id: str, added: list[str], source: Path, target: Path) -> None:
    thread = journal.thread(thread_id)
    folder = folder_of(thread)
    before = source / folder / "entries.jsonl"
    original = before.read_bytes() if before.exists() else b""
    written = (target / folder / "entries.jsonl").read_bytes()
    assert written.startswith(original) or squeezed(written).startswith(squeezed(original))
    assert written.startswith(original) or source.name in DAMAGED
    lines = written.splitlines()[-len(added) :]
    assert [json.loads(line)["id"] for line in lines] == added
    for line in lines:
        entry = _go.as_type(line, records.FloretEntry)
        assert entry.thread_id == thread.origin.get("id", thread_id)
        assert entry.raw == records.raw_text(entry)
        assert records.encode_entry(entry) == line
    meta = json.loads((target / folder / "thread.json").read_bytes())
    assert (meta["id"], meta["leaf_id"]) == (thread.origin.get("id", thread_id), added[-1])


def squeezed(written: bytes) -> bytes:
    """The records alone: a damaged file has blank lines, or several records in a line."""
    return b"".join(line.strip() for line in written.split(b"\n"))


def as_said(journal: st.Journal, thread_id: str, *, has_places: bool = True) -> list[Any]:
    """The readable entries of a thread, without what an importer noted about the bytes that it read."""
    found = [
        (entry.id, entry.parent if has_places else "", entry.created_ns, _without_origin(entry.payload))
        for entry in journal.entries(thread_id)
        if unreadable_bytes(entry.payload) is None
    ]
    return found if has_places else sorted(found, key=lambda row: row[0])


def _without_origin(payload: st.Payload) -> st.Payload:
    return payload if isinstance(payload, st.UnknownPayload) else replace(payload, origin={})


def test_golden_floret_shows_the_same_messages_after_the_export(sources: list[Path], tmp_path: Path) -> None:
    """By floret's rules alone: what it reads of the exported files, its leaf, its projection."""
    for number, source in enumerate(sources):
        with st.open("memory:") as journal, st.open("memory:") as floret:
            report = import_sessions(journal, source)
            for thread_id in report.threads:
                go_on(journal, thread_id)
            target = tmp_path / f"exported{number}"
            export_sessions(journal, target, format="floret", threads=report.threads)
            import_sessions(floret, seen_by_floret(target, tmp_path / f"seen{number}"))
            for thread_id in report.threads:
                assert visible(floret, thread_id) == visible(journal, thread_id), thread_id


def _keep_nothing(journal: st.Journal) -> None:
    journal.compact("t", lambda _request: "All of it.", policy=replace(POLICY, keep_recent_messages=1), force=True)
    newest = journal.path("t")[-1].payload
    assert isinstance(newest, st.Compaction)
    whole = replace(newest, id="c", first_kept_entry_id="", kept_user_entry_ids=(), tail_after_entry_id="e9")
    journal.append("t", whole, parent="e9")


def _keep_what_came_meanwhile(journal: st.Journal) -> None:
    journal.append("t", st.Compaction(id="c", summary="S", tail_after_entry_id="e7", through_entry_id="e7"))


def _uncompact(journal: st.Journal) -> None:
    journal.append("t", st.Compaction(id="c", summary="S", first_kept_entry_id="e8"))
    journal.uncompact("t")


def _uncompact_the_second(journal: st.Journal) -> None:
    journal.append("t", st.Compaction(id="c1", summary="S1", first_kept_entry_id="e3", kept_user_entry_ids=("e2",)))
    journal.append("t", st.user("between"), id="between")
    journal.append("t", st.Compaction(id="c2", summary="S2", first_kept_entry_id="between", previous_id="c1"))
    journal.uncompact("t")


@pytest.mark.parametrize("shape", [_keep_nothing, _keep_what_came_meanwhile, _uncompact, _uncompact_the_second])
def test_floret_shows_what_is_visible_after_compactions_that_it_does_not_know(
    shape: Callable[[st.Journal], None], tmp_path: Path
) -> None:
    with st.open("memory:") as journal, st.open("memory:") as floret, st.open("memory:") as again:
        journal.create_thread("t")
        for number in range(10):
            journal.append(
                "t", st.user(f"message {number}") if number % 2 == 0 else st.assistant("ok"), id=f"e{number}"
            )
        shape(journal)
        journal.append("t", st.user("after"), id="after")
        export_sessions(journal, tmp_path / "out", format="floret")
        import_sessions(floret, seen_by_floret(tmp_path / "out", tmp_path / "seen"))
        import_sessions(again, tmp_path / "out")
        said = [(name, message.content) for name, message in visible(journal, "t") if message.kind == ""]
        assert [(name, message.content) for name, message in visible(floret, "t") if message.kind == ""] == said
        assert floret_summaries(floret) == floret_summaries(journal)
        assert as_said(again, "t") == as_said(journal, "t")
        assert again.context("t") == journal.context("t")


def floret_summaries(journal: st.Journal) -> list[str]:
    return [message.content for _, message in visible(journal, "t") if message.kind == "compaction_summary"]


def test_what_floret_has_no_field_for_comes_back_and_what_it_does_not_show_is_named(tmp_path: Path) -> None:
    image = st.ImagePart(data="cG5n", mime="image/png")
    payloads: dict[str, st.Payload] = {
        "usage": st.assistant("hi", stop_reason="stop", usage=st.Usage(input_tokens=3)),
        "image": st.user([st.TextPart(text="look"), image]),
        "calls": st.assistant(calls=[st.call("1", "ls"), st.call("2", "cat")]),
        "number": st.user("hi", metadata={"n": 1}),
        "event": st.Event(name="opened", data={"deep": [1, None]}),
        "system": st.system("Be brief."),
        "plain": st.user("hi", metadata={"n": "1"}),
    }
    with st.open("memory:") as journal, st.open("memory:") as again:
        journal.create_thread("t")
        for name, payload in payloads.items():
            journal.append("t", payload, id=name)
        report = export_sessions(journal, tmp_path / "out", format="floret")
        import_sessions(again, tmp_path / "out")
        assert as_said(again, "t") == as_said(journal, "t")
        assert [note.problem.split("'")[1] for note in report.losses] == ["image", "calls"]
        assert OURS not in raw_of(journal.entry("t", "plain"))
        second = export_sessions(again, tmp_path / "twice", format="floret")
        assert second.threads == report.threads
        assert contents(tmp_path / "twice")["id_dA/entries.jsonl"] == contents(tmp_path / "out")["id_dA/entries.jsonl"]


def test_a_thread_that_floret_forked_after_an_export_has_the_references_of_its_copies(tmp_path: Path) -> None:
    with st.open("memory:") as journal, st.open("memory:") as again:
        journal.create_thread("t")
        for number in range(8):
            journal.append("t", st.user("word " * 60 + str(number)), id=f"e{number}")
        journal.compact("t", lambda _request: "S", policy=replace(POLICY, keep_user_tokens=400), force=True)
        export_sessions(journal, tmp_path / "out", format="floret")
        fork_as_floret_does(tmp_path / "out", "id_dA", "fork")
        import_sessions(again, tmp_path / "out")
        assert [m.text for m in again.context("fork").messages[1:]] == [
            m.text for m in journal.context("t").messages[1:]
        ]
        assert '"entry_id": "fork-entry-' in again.context("fork").messages[0].text


def fork_as_floret_does(root: Path, source: str, name: str) -> None:
    """Copies with new ids; the references of a compaction follow, metadata does not."""
    entries = [json.loads(line) for line in (root / source / "entries.jsonl").read_bytes().splitlines()]
    new = {entry["id"]: f"{name}-entry-{number}" for number, entry in enumerate(entries, 1)}
    for entry in entries:
        entry["id"], entry["thread_id"] = new[entry["id"]], name
        for field in ("parent_id", "first_kept_entry_id", "compacted_through_entry_id"):
            if field in entry:
                entry[field] = new.get(entry[field], "")
        if "kept_user_entry_ids" in entry:
            entry["kept_user_entry_ids"] = [new[one] for one in entry["kept_user_entry_ids"] if one in new]
    folder = root / records.folder_name(name)
    folder.mkdir()
    meta = json.loads((root / source / "thread.json").read_bytes()) | {"id": name, "leaf_id": entries[-1]["id"]}
    (folder / "thread.json").write_text(json.dumps(meta))
    (folder / "entries.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    assert repaired_leaf(meta["leaf_id"], {entry["id"]: entry.get("parent_id", "") for entry in entries})
