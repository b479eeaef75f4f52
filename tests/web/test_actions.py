"""What can be done in the browser: every write is undoable or asks, and none is there on a read-only viewer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import sessiontree as st
from sample_store import SHOP
from web.conftest import Viewer


def post(viewer: Viewer, path: str, status: int = 200, **body: Any) -> dict[str, Any]:
    answer = viewer.client.post(path, json=body)
    assert answer.status_code == status, answer.text
    found: dict[str, Any] = answer.json()
    return found


def take_back(viewer: Viewer, done: dict[str, Any]) -> dict[str, Any]:
    return post(viewer, done["undo"]["path"], **done["undo"].get("body", {}))


@pytest.fixture
def talk(viewer: Viewer) -> list[str]:
    contents = [st.user("one"), st.assistant("two"), st.user("three"), st.assistant("four")]
    viewer.journal.create_thread("t", title="A talk", tags=("a",))
    return [entry.id for entry in viewer.journal.append_many("t", contents)]


def test_a_rewind_moves_the_head_and_is_taken_back(viewer: Viewer, talk: list[str]) -> None:
    done = post(viewer, "/t/t/rewind", entry=talk[1])
    assert done["said"] == "Rewound to “two”. 2 entries kept on a branch."
    assert viewer.journal.thread("t").leaf == talk[1]
    back = take_back(viewer, done)
    assert viewer.journal.thread("t").leaf == talk[3]
    take_back(viewer, back)
    assert viewer.journal.thread("t").leaf == talk[1]


def test_a_fork_is_a_new_thread_and_its_undo_archives_it(viewer: Viewer, talk: list[str]) -> None:
    done = post(viewer, "/t/t/fork", entry=talk[1])
    made = done["go"].removeprefix("/t/")
    assert [entry.id for entry in viewer.journal.path(made)] == talk[:2]
    take_back(viewer, done)
    assert viewer.journal.thread(made).is_archived


def test_labels_titles_tags_and_the_archive_change_and_change_back(viewer: Viewer, talk: list[str]) -> None:
    changes: list[tuple[str, dict[str, Any]]] = [
        ("/t/t/label", {"entry": talk[0], "name": "good"}),
        ("/t/t/rename", {"title": "Another talk"}),
        ("/t/t/tags", {"tags": ["b", "c", "b", " "]}),
        ("/t/t/archive", {"is_archived": True}),
    ]
    before = viewer.journal.thread("t")
    done = [post(viewer, path, **body) for path, body in changes]
    after = viewer.journal.thread("t")
    assert viewer.journal.labels("t") == {"good": talk[0]}
    assert (after.title, after.tags, after.is_archived) == ("Another talk", ("b", "c"), True)
    for one in done:
        take_back(viewer, one)
    again = viewer.journal.thread("t")
    assert viewer.journal.labels("t") == {}
    assert (again.title, again.tags, again.is_archived) == (before.title, before.tags, False)


def test_a_preview_of_a_compaction_changes_nothing_and_the_compaction_can_be_taken_back(viewer: Viewer) -> None:
    viewer.journal.create_thread("t")
    said = [st.user("word " * 900) if at % 2 else st.assistant("answer " * 900) for at in range(120)]
    viewer.journal.append_many("t", said)
    before = viewer.journal.thread("t").version, viewer.journal.context("t").tokens
    plan = post(viewer, "/t/t/compact", is_preview=True)
    assert plan["result"]["status"] == "planned"
    assert (viewer.journal.thread("t").version, viewer.journal.context("t").tokens) == before
    done = post(viewer, "/t/t/compact", is_preview=False)
    assert viewer.journal.context("t").tokens < before[1]
    take_back(viewer, done)
    assert viewer.journal.context("t").tokens == before[1]


def test_files_are_restored_after_the_plan_and_come_back(viewer: Viewer, talk: list[str], tmp_path: Path) -> None:
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "a.py").write_text("old\n")
    entry = viewer.journal.workspace.snapshot("t", talk[0], folder).entry
    (folder / "a.py").write_text("new\n")
    viewer.journal.workspace.snapshot("t", talk[1], folder)
    plan = post(viewer, "/t/t/restore", entry=entry.id)
    assert [step["path"] for step in plan["plan"]["steps"]] == ["a.py"]
    assert (folder / "a.py").read_text() == "new\n"
    done = post(viewer, "/t/t/restore", entry=entry.id, is_confirmed=True)
    assert (folder / "a.py").read_text() == "old\n"
    take_back(viewer, done)
    assert (folder / "a.py").read_text() == "new\n"


def test_one_file_of_a_checkpoint_is_restored_and_comes_back(viewer: Viewer, talk: list[str], tmp_path: Path) -> None:
    folder = tmp_path / "shop"
    folder.mkdir()
    for name in ("a.py", "b.py"):
        (folder / name).write_text("old\n")
    entry = viewer.journal.workspace.snapshot("t", talk[0], folder).entry
    for name in ("a.py", "b.py"):
        (folder / name).write_text("new\n")
    done = post(viewer, "/t/t/restore", entry=entry.id, is_confirmed=True, paths=["a.py"])
    assert done["said"] == "1 file restored."
    (folder / "b.py").write_text("newer\n")
    take_back(viewer, done)
    assert [(folder / name).read_text() for name in ("a.py", "b.py")] == ["new\n", "newer\n"]
    refused = post(viewer, "/t/t/restore", 422, entry=entry.id, is_confirmed=True, paths=["../../etc/passwd"])
    assert refused["type"] == "InvalidInputError"


def test_erasing_asks_for_the_title_and_is_for_good(viewer: Viewer, talk: list[str]) -> None:
    viewer.html("/t/t")
    assert post(viewer, "/t/t/erase", 422, entry=talk[1], title="wrong")["type"] == "InvalidInputError"
    assert "two" in viewer.html("/t/t")
    done = post(viewer, "/t/t/erase", entry=talk[1], title="A talk")
    assert "undo" not in done
    assert ">two<" not in viewer.html("/t/t")


def test_what_happened_is_said_without_characters_that_turn_the_words_round(viewer: Viewer, talk: list[str]) -> None:
    said = [
        post(viewer, "/t/t/label", entry=talk[0], name="a\u202eb")["said"],
        post(viewer, "/t/t/tags", tags=["a\u202eb"])["said"],
    ]
    viewer.journal.acquire_lease("t", owner="a\u202eb")
    said.append(post(viewer, "/t/t/rewind", 423, entry=talk[0])["title"])
    assert all("a<U+202E>b" in words for words in said)


@pytest.mark.parametrize("action", ["rewind", "undo", "redo", "uncompact"])
def test_the_head_is_not_moved_under_a_running_turn(viewer: Viewer, talk: list[str], action: str) -> None:
    viewer.journal.rewind("t", talk[2])
    viewer.journal.acquire_lease("t", owner="worker-2")
    problem = post(viewer, f"/t/t/{action}", 423, entry=talk[0])
    assert problem["title"].startswith("worker-2 is running a turn, until ")
    assert "worker-2" in problem["title"]
    assert viewer.journal.thread("t").leaf == talk[2]


def test_nothing_to_take_back_is_said(viewer: Viewer, talk: list[str]) -> None:
    assert post(viewer, "/t/t/undo", 404)["type"] == "NothingToUndoError"


def test_forms_work_without_a_script(viewer: Viewer, talk: list[str]) -> None:
    assert viewer.client.post("/t/t/tags", data={"tags": ["x", "y"]}).status_code == 200
    assert viewer.journal.thread("t").tags == ("x", "y")


def test_a_read_only_viewer_has_no_writes(tmp_path: Path, sample: Path) -> None:
    copy = tmp_path / "journal.db"
    copy.write_bytes(sample.read_bytes())
    viewer = Viewer(copy, is_read_only=True)
    with viewer.client, viewer.journal:
        head = viewer.journal.thread(SHOP)
        for name in ("fork", "rewind", "undo", "label", "rename", "tags", "archive", "compact", "restore", "erase"):
            assert viewer.client.post(f"/t/{SHOP}/{name}", json={"entry": head.leaf}).status_code in {404, 405}
        assert viewer.journal.thread(SHOP) == head
        page = viewer.html(f"/t/{SHOP}")
        assert "read only" in page
        assert 'data-do="rewind"' not in page
        assert 'data-do="restore"' not in page
        assert not any("post" in one for one in viewer.client.get("/openapi.json").json()["paths"].values())


@pytest.mark.parametrize(
    ("body", "status"),
    [(b"{", 422), (b"[]", 422), (b'{"title": 1}', 422), (b"x" * 2_000_000, 413), (b"[" * 100_000, 422)],
)
def test_a_body_that_does_not_fit_is_refused(viewer: Viewer, talk: list[str], body: bytes, status: int) -> None:
    answer = viewer.client.post("/t/t/rename", content=body, headers={"content-type": "application/json"})
    assert answer.status_code == status


@pytest.mark.parametrize(
    ("format", "words"), [("html", "<!doctype html>"), ("markdown", "# A talk"), ("json", '"threads"'), ("jsonl", "{")]
)
def test_a_thread_is_saved_as_a_file(viewer: Viewer, talk: list[str], format: str, words: str) -> None:
    answer = viewer.client.get(f"/t/t/export?format={format}")
    assert answer.status_code == 200
    assert words in answer.text
    assert answer.headers["content-disposition"].startswith('attachment; filename="A-talk.')


def test_markdown_of_a_compacted_thread_begins_at_its_first_message(sampled: Viewer) -> None:
    answer = sampled.client.get(f"/t/{SHOP}/export?format=markdown").text
    assert answer.index("The login test fails since") < answer.index("Login fixed in src/login.py")
