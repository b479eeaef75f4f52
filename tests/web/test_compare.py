"""The page that compares two branches."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import sessiontree as st
from web.conftest import Viewer


def signs(found: dict[str, Any]) -> list[str]:
    return [pair["sign"] for pair in found["pairs"]]


def texts(found: dict[str, Any], side: str) -> list[str]:
    return [block.get("text", "") for pair in found["pairs"] for block in pair.get(side, [])]


def two_branches(journal: st.Journal, thread: str = "t") -> tuple[str, str]:
    """A question with two answers; the second is active. Returns the ends of both."""
    journal.create_thread(thread, title="Fix the login test")
    question = journal.append(thread, st.user("The login test fails."))
    journal.append(thread, st.user("Freeze the clock in the test."))
    made = st.call("c1", "Bash", json.dumps({"command": "pytest -x"}))
    journal.append(thread, st.assistant("", calls=[made]))
    journal.append(thread, st.tool_result("c1", "1 failed in 0.4s", is_error=True))
    old = journal.append(thread, st.assistant("It passes."))
    journal.rewind(thread, question.id)
    journal.append(thread, st.user("Fix it in the code, not in the test."))
    new = journal.append(thread, st.assistant("It passes."))
    return old.id, new.id


def test_a_thread_is_compared_with_the_branch_that_it_left(viewer: Viewer) -> None:
    old, new = two_branches(viewer.journal)
    found: dict[str, Any] = viewer.json("/compare.json?a=t")
    assert (found["a"]["tip"], found["b"]["tip"]) == (old, new)
    assert (found["a"].get("is_active", False), found["b"]["is_active"]) == (False, True)
    assert (found["common"], found["common_words"]) == (1, "The login test fails.")
    assert signs(found) == ["differs", "one", "same"]
    assert texts(found, "right") == ["Fix it in the code, not in the test.", "It passes."]
    assert (found["a"]["entries"], found["a"]["failures"]) == (4, 1)
    page = viewer.html("/compare?a=t")
    assert "<del>Freeze</del> the <del>clock</del> in the test." in page
    assert "<ins>Fix it in</ins> the <ins>code, not</ins> in the test." in page
    assert "1 entry in common, up to “The login test fails.”" in page


def test_a_move_along_the_active_path_is_not_another_branch(viewer: Viewer) -> None:
    old, new = two_branches(viewer.journal)
    viewer.journal.rewind("t", viewer.journal.path("t")[0].id)
    viewer.journal.move_leaf("t", new)
    viewer.journal.label("t", new, "good")  # an entry that is left behind, and nothing to compare
    viewer.journal.move_leaf("t", new)
    found: dict[str, Any] = viewer.json("/compare.json?a=t")
    assert (found["a"]["tip"], found["b"]["tip"]) == (old, new)


def test_any_two_entries_can_be_compared_and_swapped(viewer: Viewer) -> None:
    old, new = two_branches(viewer.journal)
    there: dict[str, Any] = viewer.json(f"/compare.json?a=t&a_at={old}&b=t&b_at={new}")
    back: dict[str, Any] = viewer.json(f"/compare.json?a=t&a_at={new}&b=t&b_at={old}")
    assert (there["a"], there["b"]) == (back["b"], back["a"])
    assert texts(there, "left") == texts(back, "right")
    same: dict[str, Any] = viewer.json(f"/compare.json?a=t&a_at={new}")
    assert same.get("pairs", []) == []
    assert "Neither branch has anything after that." in viewer.html(f"/compare?a=t&a_at={new}")


def test_a_fork_is_compared_with_its_source(viewer: Viewer) -> None:
    two_branches(viewer.journal)
    fork = viewer.journal.fork("t", title="Another way")
    viewer.journal.append(fork.id, st.user("only in the fork"))
    viewer.journal.append("t", st.user("only in the source"))
    found: dict[str, Any] = viewer.json(f"/compare.json?a=t&b={fork.id}")
    assert texts(found, "left") == ["only in the source"]
    assert texts(found, "right") == ["only in the fork"]
    assert "Another way" in viewer.html("/compare?a=t")


def test_threads_without_anything_in_common_are_compared_whole(viewer: Viewer) -> None:
    for name in ("x", "y"):
        viewer.journal.append(name, st.user(f"hello {name}"), create=True)
    found: dict[str, Any] = viewer.json("/compare.json?a=x&b=y")
    assert found.get("common", 0) == 0
    assert signs(found) == ["differs"]
    assert "They have nothing in common" in viewer.html("/compare?a=x&b=y")


def test_long_branches_meet_far_from_their_ends(viewer: Viewer) -> None:
    viewer.journal.create_thread("t")
    root = viewer.journal.append("t", st.user("the root"))
    for name in ("one", "two"):
        viewer.journal.append_many("t", [st.user(f"{name} {number}") for number in range(1100)], parent=root.id)
    found: dict[str, Any] = viewer.json("/compare.json?a=t")
    assert found["common_words"] == "the root"
    assert found["is_cut"]
    assert "Only the beginning is shown" in viewer.html("/compare?a=t")


def test_a_thread_with_one_branch_says_what_to_do(viewer: Viewer) -> None:
    viewer.journal.append("t", st.user("alone"), create=True)
    answer = viewer.client.get("/compare?a=t")
    assert answer.status_code == 404
    assert "rewind or fork it" in answer.text
    assert viewer.client.get("/compare?a=none").status_code == 404
    assert viewer.client.get("/compare").status_code == 422


def test_files_of_two_checkpoints_are_shown_side_by_side(viewer: Viewer, tmp_path: Path) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    journal = viewer.journal
    journal.create_thread("t", workspace=str(folder))
    (folder / "same.txt").write_text("same\n")
    (folder / "app.py").write_text("one = 1\ntwo = 2\n")
    start = journal.append("t", st.user("start"))
    left = journal.append("t", st.user("left"))
    journal.workspace.snapshot("t", left.id, folder)
    (folder / "app.py").write_text("one = 1\ntwo = 22\nthree = 3\n")
    (folder / "new.bin").write_bytes(b"\0\1")
    right = journal.append("t", st.user("right"), parent=start.id)
    journal.workspace.snapshot("t", right.id, folder)
    found: dict[str, Any] = viewer.json(f"/compare.json?a=t&a_at={left.id}&b=t&b_at={right.id}")
    assert [(file["path"], file.get("added", 0), file.get("removed", 0)) for file in found["files"]] == [
        ("app.py", 2, 1),
        ("new.bin", 0, 0),
    ]
    page = viewer.html(f"/compare?a=t&a_at={left.id}&b=t&b_at={right.id}")
    assert "two = <em>2</em>" in page
    assert "two = <em>22</em>" in page
    assert 'class="nil"' in page
    unified = viewer.html(f"/compare?a=t&a_at={left.id}&b=t&b_at={right.id}&view=unified")
    assert "sd one" in unified
    assert "A binary file." in viewer.html(f"/compare?a=t&a_at={left.id}&b=t&b_at={right.id}&file=new.bin")
    fork = journal.fork("t", at=left.id)
    forked: dict[str, Any] = viewer.json(f"/compare.json?a={fork.id}&b=t&b_at={right.id}")
    assert [file["path"] for file in forked["files"]] == ["app.py", "new.bin"]


def test_without_checkpoints_the_edits_of_tool_calls_are_listed(viewer: Viewer) -> None:
    two_branches(viewer.journal)
    made = st.call("c9", "Edit", json.dumps({"file_path": "a.py", "old_string": "x", "new_string": "y"}))
    viewer.journal.append("t", st.assistant("", calls=[made]))
    viewer.journal.append("t", st.tool_result("c9", "ok"))
    page = viewer.html("/compare?a=t")
    assert "there are no checkpoints" in page
    assert "a.py" in page
    assert "no file changed" in page


HOSTILE = '"><script>alert(1)</script><svg onload=x>\u202e\x1b[31m<b>javascript:alert(1)'


def test_hostile_text_stays_text_on_both_sides(viewer: Viewer, tmp_path: Path) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    odd = 'a"<i>&.py'
    journal = viewer.journal
    journal.create_thread("t", title=HOSTILE, workspace=str(folder))
    start = journal.append("t", st.user(HOSTILE))
    for number in range(2):
        made = st.call(f"c{number}", HOSTILE, json.dumps({"command": HOSTILE + str(number)}))
        contents: list[st.Payload | st.Message] = [
            st.user(f"{HOSTILE} {number}"),
            st.assistant(f"{HOSTILE} {number}", calls=[made], model=HOSTILE, reasoning=HOSTILE),
            st.tool_result(f"c{number}", HOSTILE, name=HOSTILE, is_error=True),
            st.RunFailure(error=HOSTILE),
            st.Compaction(summary=HOSTILE),
            st.Custom(name=HOSTILE),
        ]
        if number:
            journal.rewind("t", start.id)
        last = journal.append_many("t", contents)[-1]
        (folder / odd).write_text(f"{HOSTILE} {number}\n")
        journal.workspace.snapshot("t", last.id, folder)
    page = viewer.html("/compare?a=t")
    assert page.count("<script") == 1  # ours
    for sign in ("<svg onload", "<b>javascript", "<i>&", "\x1b", "\u202e"):
        assert sign not in page.replace("<b>0</b>", ""), sign
    assert 'href="javascript' not in page
