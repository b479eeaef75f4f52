"""What an import promises: repeatable, growing with its source, polite to what is already there."""

from __future__ import annotations

import inspect
import json
from contextlib import suppress
from pathlib import Path

import pytest

import sessiontree as st
from golden_sets import STORE_FORMATS
from known import present
from sessiontree.journal.journal_async import AsyncJournal
from sessiontree.sessions.checkpointed import CheckpointedSessions
from sessiontree.transfer.formats import detect, export_sessions, import_sessions

GGCODE_META = {"type": "meta", "session_id": "s1", "title": "T", "vendor": "v", "model": "m",
               "created_at": "2026-01-01T00:00:00Z", "updated_at": "2026-01-02T00:00:00Z"}  # fmt: skip
ZERO = {"created_at": "0001-01-01T00:00:00Z", "updated_at": "0001-01-01T00:00:00Z"}


def compact(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"


def said(text: str, role: str = "user") -> bytes:
    message = {"role": role, "content": [{"type": "text", "text": text}]}
    return compact({"type": "message", "session_id": "s1", **ZERO, "message": message})


@pytest.fixture
def store(tmp_path: Path) -> Path:
    folder = tmp_path / "ggcode"
    folder.mkdir()
    (folder / "s1.jsonl").write_bytes(compact(GGCODE_META) + said("one") + said("two", "assistant"))
    return folder


def texts(journal: st.Journal, thread_id: str = "s1") -> list[str]:
    return [entry.message.text for entry in journal.path(thread_id) if entry.message]


def test_a_source_that_grew_brings_only_what_is_new(store: Path) -> None:
    with st.open("memory:") as journal:
        import_sessions(journal, store)
        with (store / "s1.jsonl").open("ab") as file:
            file.write(said("three"))
        report = import_sessions(journal, store)
        assert (report.entries_added, report.entries_known) == (1, 3)
        assert texts(journal) == ["one", "two", "three"]


def test_a_source_that_was_rewritten_becomes_a_branch_and_nothing_is_lost(store: Path) -> None:
    with st.open("memory:") as journal:
        import_sessions(journal, store)
        (store / "s1.jsonl").write_bytes(compact(GGCODE_META) + said("one") + said("another", "assistant"))
        import_sessions(journal, store)
        assert texts(journal) == ["one", "another"]
        assert {entry.message.text for entry in journal.entries("s1") if entry.message} == {"one", "two", "another"}
        journal.undo("s1")
        assert texts(journal) == ["one", "two"]


def test_a_thread_that_was_continued_here_keeps_its_tip(store: Path) -> None:
    with st.open("memory:") as journal:
        import_sessions(journal, store)
        mine = journal.append("s1", st.user("mine"))
        with (store / "s1.jsonl").open("ab") as file:
            file.write(said("theirs"))
        report = import_sessions(journal, store)
        assert report.entries_added == 1
        assert report.of_kind("hint")
        assert journal.thread("s1").leaf == mine.id
        assert "theirs" in {entry.message.text for entry in journal.entries("s1") if entry.message}


def test_a_thread_of_the_same_name_is_left_alone_unless_there_is_a_prefix(store: Path) -> None:
    with st.open("memory:") as journal:
        journal.create_thread("s1", title="mine")
        report = import_sessions(journal, store)
        assert report.conflicts
        assert not report.threads
        assert journal.thread("s1").title == "mine"
        assert import_sessions(journal, store, prefix="ggcode/").threads == ("ggcode/s1",)
        assert texts(journal, "ggcode/s1") == ["one", "two"]


def test_a_thread_that_is_created_while_its_source_is_read_is_left_alone(store: Path) -> None:
    with st.open("memory:") as journal:

        def interfere(done: int, total: int) -> None:
            with suppress(st.ThreadExistsError):
                journal.create_thread("s1", title="mine")

        report = import_sessions(journal, store, progress=interfere)
        assert [note.thread_id for note in report.conflicts] == ["s1"]
        assert (report.threads, report.created, report.entries_added) == ((), 0, 0)
        assert (journal.thread("s1").title, texts(journal)) == ("mine", [])


def test_an_import_that_another_one_overtakes_adds_nothing_twice(store: Path) -> None:
    with st.open("memory:") as journal:
        others: list[st.ImportReport] = []
        is_overtaken = False

        def overtake(done: int, total: int) -> None:
            nonlocal is_overtaken
            if not is_overtaken:
                is_overtaken = True
                others.append(import_sessions(journal, store))

        report = import_sessions(journal, store, progress=overtake)
        assert (others[0].created, others[0].entries_added) == (1, 3)
        assert (report.created, report.entries_added, report.entries_known, report.notes) == (0, 0, 3, ())
        assert texts(journal) == ["one", "two"]


@pytest.mark.parametrize("url", ["memory:", "sqlite", "jsonl"])
def test_records_that_a_fork_of_a_deleted_thread_shows_are_left_to_it(url: str, store: Path, tmp_path: Path) -> None:
    (store / "s2.jsonl").write_bytes(compact(GGCODE_META | {"session_id": "s2"}) + said("other"))
    place = {"sqlite": tmp_path / "s.db", "jsonl": tmp_path / "folder"}.get(url, url)
    with st.open(place) as journal:
        import_sessions(journal, store)
        fork = journal.fork("s1")
        journal.delete_thread("s1")
        journal.delete_thread("s2")
        report = import_sessions(journal, store)
        assert [note.thread_id for note in report.conflicts] == ["s1"]
        assert "prefix" in report.conflicts[0].problem
        assert report.threads == ("s2",)
        assert not journal.check()
        again = import_sessions(journal, store, prefix="new-")
        assert again.threads == ("new-s1", "new-s2")
        assert texts(journal, fork.id) == texts(journal, "new-s1") == ["one", "two"]


def test_a_tip_that_was_moved_here_stays_however_often_its_source_comes_in(store: Path) -> None:
    with st.open("memory:") as journal:
        import_sessions(journal, store)
        journal.append("s1", st.user("mine"))
        for _ in range(3):
            import_sessions(journal, store)
            assert texts(journal) == ["one", "two", "mine"]
        journal.rewind("s1", journal.path("s1")[1].id)
        for _ in range(3):
            import_sessions(journal, store)
            assert texts(journal) == ["one"]


def test_a_thread_that_came_in_empty_and_was_continued_here_keeps_its_tip(tmp_path: Path) -> None:
    source = tmp_path / "picoclaw"
    source.mkdir()
    (source / "k.meta.json").write_text('{"key":"k","summary":"","skip":0,"count":0}')
    with st.open("memory:") as journal:
        import_sessions(journal, source)
        journal.append("k", st.user("mine"))
        for _ in range(2):
            import_sessions(journal, source)
            assert texts(journal, "k") == ["mine"]


def test_our_own_files_move_no_tip_that_went_on_here(store: Path, tmp_path: Path) -> None:
    with st.open("memory:") as journal:
        import_sessions(journal, store)
        export_sessions(journal, tmp_path / "out", format="native")
        journal.append("s1", st.user("mine"))
        for _ in range(2):
            import_sessions(journal, tmp_path / "out")
            assert texts(journal) == ["one", "two", "mine"]


def test_a_record_that_can_no_longer_be_held_stays_as_it_came_before(tmp_path: Path) -> None:
    source = tmp_path / "s.jsonl"
    rows = [{"type": "session", "version": 3, "id": "s", "timestamp": "2025-01-01T00:00:00Z", "cwd": "/"}] + [
        {"type": "message", "id": name, "parentId": parent, "timestamp": "2025-01-01T00:00:01Z",
         "message": {"role": "user", "content": name}}
        for name, parent in [("a", None), ("b", "a"), ("c", "b"), ("d", "c")]
    ]  # fmt: skip
    lines = [compact(row) for row in rows]
    source.write_bytes(b"".join(lines[:4]))
    with st.open("memory:") as journal:
        import_sessions(journal, source)
        broken = lines[3][:-2] + b',"odd":1e999}\n'
        source.write_bytes(b"".join([*lines[:3], broken]))
        report = import_sessions(journal, source)
        assert (len(report.conflicts), report.entries_known) == (1, 3)
        assert texts(journal, "s") == ["a", "b", "c"]
        source.write_bytes(b"".join([*lines[:3], broken, lines[4]]))
        import_sessions(journal, source)
        assert texts(journal, "s") == ["a", "b", "c", "d"]


def test_a_last_record_that_cannot_be_held_does_not_empty_the_conversation(tmp_path: Path) -> None:
    source = tmp_path / "s.jsonl"
    head = {"type": "session", "version": 3, "id": "s", "timestamp": "2025-01-01T00:00:00Z", "cwd": "/"}
    row = {"type": "message", "id": "a", "parentId": None, "timestamp": "2025-01-01T00:00:01Z",
           "message": {"role": "user", "content": "a"}}  # fmt: skip
    broken = b'{"type":"custom","id":"z","parentId":null,"customType":"c","data":1e999}\n'
    source.write_bytes(compact(head) + compact(row) + broken)
    with st.open("memory:") as journal:
        report = import_sessions(journal, source)
        assert (len(report.damage), texts(journal, "s")) == (1, ["a"])


def test_a_thread_that_is_deleted_during_its_import_is_reported_and_the_others_follow(store: Path) -> None:
    (store / "s2.jsonl").write_bytes(compact(GGCODE_META | {"session_id": "s2"}) + said("other"))
    with st.open("memory:") as journal:
        import_sessions(journal, store)
        with (store / "s1.jsonl").open("ab") as file:
            file.write(said("three"))

        def interfere(done: int, total: int) -> None:
            with suppress(st.ThreadNotFoundError):
                journal.delete_thread("s1")

        report = import_sessions(journal, store, progress=interfere)
        assert [note.thread_id for note in report.conflicts] == ["s1"]
        assert texts(journal, "s2") == ["other"]


def test_an_exported_prefix_is_gone_again(store: Path, tmp_path: Path) -> None:
    with st.open("memory:") as journal:
        import_sessions(journal, store, prefix="a/")
        export_sessions(journal, tmp_path / "out", format="ggcode")
    assert (tmp_path / "out" / "s1.jsonl").read_bytes() == (store / "s1.jsonl").read_bytes()


def test_progress_counts_every_byte(store: Path) -> None:
    seen: list[tuple[int, int]] = []
    with st.open("memory:") as journal:
        import_sessions(journal, store, progress=lambda done, total: seen.append((done, total)))
    size = (store / "s1.jsonl").stat().st_size
    assert seen[-1] == (size, size)
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)


def test_changes_made_here_go_back(store: Path, tmp_path: Path) -> None:
    with st.open("memory:") as journal:
        import_sessions(journal, store)
        journal.append("s1", st.user("three"))
        journal.update_thread("s1", title="a new title")
        export_sessions(journal, tmp_path / "out", format="ggcode")
    with st.open("memory:") as other:
        import_sessions(other, tmp_path / "out")
        assert texts(other) == ["one", "two", "three"]
        assert other.thread("s1").title == "a new title"
    original = (store / "s1.jsonl").read_bytes()
    assert (tmp_path / "out" / "s1.jsonl").read_bytes().startswith(original)


def test_an_export_overwrites_nothing(store: Path) -> None:
    before = (store / "s1.jsonl").read_bytes()
    with st.open("memory:") as journal:
        import_sessions(journal, store)
        with pytest.raises(st.InvalidInputError, match="not an empty folder"):
            export_sessions(journal, store, format="ggcode")
    assert (store / "s1.jsonl").read_bytes() == before


@pytest.mark.parametrize("name", STORE_FORMATS)
@pytest.mark.parametrize("thread_id", ["../escape", "/etc/passwd", "a\x00b", "x" * 400, "..", "con:1", "漢" * 120])
def test_no_id_leads_out_of_the_target(name: str, thread_id: str, tmp_path: Path) -> None:
    target = tmp_path / "deep" / "target"
    with st.open("memory:") as journal:
        journal.create_thread(thread_id)
        journal.append(thread_id, st.user("hello"))
        export_sessions(journal, target, format=name)
    assert [path.name for path in tmp_path.iterdir()] == ["deep"]
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["target"]
    assert any(target.rglob("*"))


@pytest.mark.parametrize("name", ["floret", "pi", "native"])
def test_trees_go_along_with_every_branch(name: str, tmp_path: Path) -> None:
    with st.open("memory:") as journal, st.open("memory:") as other:
        thread = journal.create_thread("t")
        first = journal.append("t", st.user("first"))
        journal.append("t", st.assistant("left"))
        journal.append("t", st.assistant("right"), parent=first.id)
        report = export_sessions(journal, tmp_path / "out", format=name)
        assert not report.losses
        import_sessions(other, tmp_path / "out")
        assert [present(one.message).text for one in other.children(thread.id, first.id)] == ["left", "right"]
        assert [present(one.message).text for one in other.path(thread.id)] == ["first", "right"]


@pytest.mark.parametrize("name", ["picoclaw", "ggcode", "zimaos"])
def test_flat_formats_take_the_path_and_say_so(name: str, tmp_path: Path) -> None:
    with st.open("memory:") as journal:
        journal.create_thread("t")
        first = journal.append("t", st.user("first"))
        journal.append("t", st.assistant("left"))
        journal.append("t", st.assistant("right"), parent=first.id)
        report = export_sessions(journal, tmp_path / "out", format=name)
    assert any("other branches" in note.problem for note in report.losses)


def test_a_tree_of_forks_travels_in_our_own_files(tmp_path: Path) -> None:
    with st.open("memory:") as journal, st.open("memory:") as other:
        journal.create_thread("root", title="Root", tags=("a",))
        entry = journal.append("root", st.user("shared"))
        journal.fork("root", at=entry.id, new_id="fork")
        journal.append("fork", st.user("only in the fork"))
        journal.append("root", st.user("only in the root"))
        for ending in ("jsonl", "json"):
            path = tmp_path / f"tree.{ending}"
            path.write_text(journal.export("fork", format=ending, scope="tree"), encoding="utf-8")
            assert detect(path) == "native"
            import_sessions(other, path)
            for thread_id in ("root", "fork"):
                assert other.entries(thread_id) == journal.entries(thread_id)
                assert other.thread(thread_id).leaf == journal.thread(thread_id).leaf
            assert other.thread("fork").tree == other.thread("root").tree
            assert other.thread("root").tags == ("a",)
        assert not other.check()


def test_a_markdown_of_a_whole_tree_is_refused() -> None:
    with st.open("memory:") as journal:
        journal.create_thread("t")
        with pytest.raises(st.InvalidInputError, match="one path"):
            journal.export("t", format="markdown", scope="tree")


def test_both_journals_export_alike() -> None:
    for name in ("export", "events", "delete_older_than"):
        sync, awaiting = getattr(st.Journal, name), getattr(AsyncJournal, name)
        assert inspect.signature(sync) == inspect.signature(awaiting)
        assert sync.__doc__ == awaiting.__doc__


def test_old_threads_go_only_without_the_dry_run() -> None:
    with st.open("memory:") as journal:
        journal.create_thread("old", created_ns=10)
        journal.create_thread("new", created_ns=100)
        journal.create_thread("old but archived", created_ns=10, is_archived=True)
        assert [one.id for one in journal.delete_older_than(50, is_archived=False, is_dry_run=True)] == ["old"]
        assert len(journal.list_threads(is_archived=None)) == 3
        assert {one.id for one in journal.delete_older_than(50)} == {"old", "old but archived"}
        assert [one.id for one in journal.list_threads(is_archived=None)] == ["new"]


def test_what_is_unknown_is_named(tmp_path: Path) -> None:
    with st.open("memory:") as journal:
        with pytest.raises(st.InvalidInputError, match="does not exist"):
            import_sessions(journal, tmp_path / "nothing")
        (tmp_path / "notes.txt").write_text("hello")
        with pytest.raises(st.InvalidInputError, match=r"format of .* is not known"):
            import_sessions(journal, tmp_path / "notes.txt")
        with pytest.raises(st.InvalidInputError, match="unknown format 'word'"):
            export_sessions(journal, tmp_path / "out", format="word")


def test_records_before_their_parents_find_them(tmp_path: Path) -> None:
    rows = [{"type": "session", "version": 3, "id": "t", "timestamp": "2026-01-01T00:00:00Z", "cwd": "/"}]
    names = [("c", "b"), ("b", "a"), ("a", None)]
    rows += [
        {"type": "message", "id": name, "parentId": parent, "timestamp": "2026-01-01T00:00:01Z",
         "message": {"role": "user", "content": name}}
        for name, parent in names
    ]  # fmt: skip
    path = tmp_path / "t.jsonl"
    path.write_bytes(b"".join(compact(row) for row in rows))
    with st.open("memory:") as journal:
        report = import_sessions(journal, path)
        assert not report.repairs
        assert [entry.id for entry in journal.path("t", "c")] == ["a", "b", "c"]


def test_the_files_of_checkpoints_travel_in_our_own_files(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "sub").mkdir(parents=True)
    (root / "sub" / "a.bin").write_bytes(b"\xff\x00one")
    with st.open("memory:") as journal, st.open("memory:") as other:
        journal.create_thread("t")
        first = journal.append("t", st.user("first")).id
        journal.workspace.snapshot("t", first, root)
        journal.fork("t", at=first, new_id="fork")
        second = journal.append("fork", st.user("second")).id
        (root / "b.txt").write_text("two")
        journal.workspace.snapshot("fork", second, root)
        export_sessions(journal, tmp_path / "out", format="native")
        report = import_sessions(other, tmp_path / "out")
        assert not report.notes
        assert import_sessions(other, tmp_path / "out").entries_added == 0
        assert not other.check()
        (root / "sub" / "a.bin").write_bytes(b"changed")
        other.rewind("fork", second, files=root)
        assert (root / "sub" / "a.bin").read_bytes() == b"\xff\x00one"
        assert (root / "b.txt").read_text() == "two"
        other.rewind("fork", first, files=root)
        assert not (root / "b.txt").exists()


def test_a_checkpoint_whose_files_did_not_come_along_brings_nothing_back(tmp_path: Path) -> None:
    """The text of an export holds no files; a restore from it must not take that for an empty folder."""
    root = tmp_path / "root"
    root.mkdir()
    (root / "mine.txt").write_text("mine")
    with st.open("memory:") as journal, st.open("memory:") as other:
        journal.create_thread("t")
        entry = journal.append("t", st.user("first")).id
        journal.workspace.snapshot("t", entry, root)
        (tmp_path / "t.jsonl").write_text(journal.export("t", format="jsonl"), encoding="utf-8")
        for added in (2, 0):
            report = import_sessions(other, tmp_path / "t.jsonl")
            assert report.entries_added == added
            assert "files" in report.damage[0].problem
            assert not report.conflicts
        assert not other.check()
        with pytest.raises(st.NoCheckpointError):
            other.rewind("t", entry, files=root)
        assert (root / "mine.txt").read_text() == "mine"


def test_branches_that_no_checkpoint_goes_back_to_are_named(tmp_path: Path) -> None:
    with st.open("memory:") as journal:
        journal.create_thread("t")
        first = journal.append("t", st.user("first"))
        journal.append("t", st.assistant("left"))
        journal.append("t", st.assistant("right"), parent=first.id)
        report = export_sessions(journal, tmp_path / "out", format="openrouter")
        assert any("1 entries on branches that no checkpoint leads to" in note.problem for note in report.losses)
        left = journal.children("t", first.id)[0]
        journal.label("t", left.id, "left")
        assert not export_sessions(journal, tmp_path / "again", format="openrouter").losses


def test_an_imported_file_snapshot_leaves_modes_as_they_are(tmp_path: Path) -> None:
    """The source keeps no modes: a script stays one, and the differences that are shown are those of the texts."""
    files = {"run.sh": "#!/bin/sh\n", "sub/new.txt": "new"}
    session = {"ID": "a", "Messages": [], "Checkpoints": {"u1": []}, "FileCheckpoints": {"u1": files}}
    (tmp_path / "sessions.json").write_text(json.dumps({"sessions": {"a": session}}))
    root = tmp_path / "root"
    root.mkdir()
    (root / "run.sh").write_text("changed")
    (root / "run.sh").chmod(0o755)
    with st.open("memory:") as journal:
        import_sessions(journal, tmp_path / "sessions.json")
        mark = journal.labels("a")["u1"]
        journal.rewind("a", mark, files=root)
        assert journal.workspace.plan("a", mark, root).is_empty
    assert {str(path.relative_to(root)): path.read_text() for path in root.rglob("*.*") if path.is_file()
            and ".sessiontree" not in path.parts} == files  # fmt: skip
    assert (root / "run.sh").stat().st_mode & 0o777 == 0o755
    assert (root / "sub" / "new.txt").stat().st_mode & 0o777 == 0o644


def test_a_checkpoint_that_went_back_in_the_source_goes_back_here(tmp_path: Path) -> None:
    def write(count: int) -> None:
        said = [{"role": "user", "content": str(number)} for number in range(count)]
        session = {"ID": "a", "Messages": said, "Checkpoints": {"u": said}, "FileCheckpoints": {}}
        (tmp_path / "sessions.json").write_text(json.dumps({"sessions": {"a": session}}))

    with st.open("memory:") as journal:
        for number, count in enumerate((1, 3, 1, 2, 3)):
            write(count)
            import_sessions(journal, tmp_path / "sessions.json")
            export_sessions(journal, tmp_path / str(number), format="openrouter")
            written = json.loads((tmp_path / str(number) / "sessions.json").read_text())["sessions"]["a"]
            assert len(written["Messages"]) == len(written["Checkpoints"]["u"]) == count
        sessions = CheckpointedSessions(journal)
        assert len(sessions.rewind("a", "u").messages) == 3
        journal.undo("a")
        sessions.set_state("a", [], user_turns=1)
        sessions.snapshot("a", "u")
        assert sessions.rewind("a", "u").messages == ()
