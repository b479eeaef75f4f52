"""Claude Code's session files: what makes a branch, what belongs together, and what is mended."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

import sessiontree as st
from known import of_kind, present
from sessiontree.model import AssistantMessage, Compaction, ReasoningPart, ToolCallMessage
from sessiontree.transfer.formats import export_sessions, import_sessions

SESSION = "0b5e7c1a-1111-4222-8333-444455556666"


class File:
    """Writes a session line by line, as Claude Code does."""

    def __init__(self, folder: Path, name: str = f"{SESSION}.jsonl") -> None:
        self.path = folder / name
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._number = 0

    def line(self, kind: str, parent: str | None, message: Any = None, **more: Any) -> str:
        self._number += 1
        name = str(more.pop("uuid", f"line-{self._number}"))
        wire = {
            "type": kind,
            "uuid": name,
            "parentUuid": parent,
            "sessionId": SESSION,
            "cwd": "/w",
            "isSidechain": False,
        }
        wire |= {"timestamp": f"2026-08-01T10:00:{self._number:02}.000Z"}
        wire |= {"message": message} if message is not None else {}
        self.raw(json.dumps(wire | more) + "\n")
        return name

    def raw(self, text: str) -> None:
        with self.path.open("a") as file:
            file.write(text)

    def user(self, parent: str | None, words: Any, **more: Any) -> str:
        return self.line("user", parent, {"role": "user", "content": words}, **more)

    def assistant(self, parent: str | None, *blocks: Any, id: str = "", **more: Any) -> str:
        message: dict[str, Any] = {"role": "assistant", "model": "claude-opus-4-8", "content": list(blocks)}
        message |= {"id": id, "usage": {"input_tokens": 3, "output_tokens": 10}} if id else {}
        return self.line("assistant", parent, message, **more)

    def result(self, parent: str, call: str, words: str, **more: Any) -> str:
        return self.user(parent, [{"type": "tool_result", "tool_use_id": call, "content": words}], **more)


def text(words: str) -> dict[str, str]:
    return {"type": "text", "text": words}


def call(name: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": name, "name": "Read", "input": {"file_path": f"/w/{name}.py"}}


def imported(path: Path) -> tuple[st.Journal, list[str]]:
    journal = st.open("memory:")
    report = import_sessions(journal, path)
    assert report.format == "claude-code"
    return journal, [note.problem for note in report.repairs]


def said(journal: st.Journal, thread: str = SESSION) -> list[str]:
    return [entry.message.text for entry in journal.path(thread) if entry.message and entry.message.text]


def test_each_line_of_a_response_is_an_entry_and_its_tokens_count_once(tmp_path: Path) -> None:
    file = File(tmp_path)
    prompt = file.user(None, "look")
    thought = file.assistant(prompt, {"type": "thinking", "thinking": "hm", "signature": "sig"}, id="msg_1")
    words = file.assistant(thought, text("I look."), id="msg_1")
    file.assistant(words, call("a"), id="msg_1")
    journal, _ = imported(file.path)
    _, *answers = [entry.payload for entry in journal.path(SESSION)]
    first, second, third = answers
    assert isinstance(first, AssistantMessage)
    assert isinstance(second, AssistantMessage)
    assert isinstance(third, ToolCallMessage)
    assert first.message.parts == (ReasoningPart(provider="anthropic", text="hm", signature="sig"),)
    assert [answer.usage.output_tokens if answer.usage else 0 for answer in (first, second, third)] == [10, 0, 0]
    assert [answer.origin["raw"]["uuid"] for answer in (first, second, third)] == ["line-2", "line-3", "line-4"]


def test_calls_made_in_parallel_make_no_branch(tmp_path: Path) -> None:
    file = File(tmp_path)
    prompt = file.user(None, "read both")
    first = file.assistant(prompt, call("a"), id="msg_1")
    result = file.result(first, "a", "content of a")
    second = file.assistant(first, call("b"), id="msg_1")
    other = file.result(second, "b", "content of b")
    file.assistant(result, text("done"), id="msg_2")
    file.user(other, "thanks")
    journal, _ = imported(file.path)
    assert len(journal.path(SESSION)) == len(journal.entries(SESSION)) == 7
    calls = [part.id for entry in journal.path(SESSION) if entry.message for part in entry.message.tool_calls]
    results = [part.call_id for entry in journal.path(SESSION) if entry.message for part in entry.message.tool_results]
    assert calls == results == ["a", "b"]


def test_a_rewind_is_a_branch_and_the_last_one_is_active(tmp_path: Path) -> None:
    file = File(tmp_path)
    prompt = file.user(None, "hello")
    answer = file.assistant(prompt, text("hi"), id="msg_1")
    file.line("system", answer, subtype="turn_duration", durationMs=5)
    wrong = file.user(answer, "wrong way")
    file.assistant(wrong, text("lost"), id="msg_2")
    right = file.user(answer, "right way")
    file.assistant(right, text("found"), id="msg_3")
    journal, _ = imported(file.path)
    assert said(journal) == ["hello", "hi", "right way", "found"]
    assert "lost" in [entry.message.text for entry in journal.entries(SESSION) if entry.message]


def test_lines_for_the_screen_are_no_branches_and_are_kept(tmp_path: Path) -> None:
    file = File(tmp_path)
    file.raw('{"type":"file-history-snapshot","messageId":"x","snapshot":{"trackedFileBackups":{}}}\n')
    prompt = file.user(None, "go")
    progress = file.line("progress", prompt, data={"type": "hook_progress"})
    answer = file.assistant(progress, call("a"), id="msg_1")
    file.line("progress", answer, data={"type": "bash_progress"})
    file.result(answer, "a", "done")
    journal, _ = imported(file.path)
    assert len(journal.path(SESSION)) == len(journal.entries(SESSION)) == 6
    assert [entry.type for entry in journal.path(SESSION)].count("event") == 3


def test_a_compaction_hides_what_it_sums_up_and_uncompact_shows_it_again(tmp_path: Path) -> None:
    file = File(tmp_path)
    old = file.assistant(file.user(None, "old question"), text("old answer"), id="msg_1")
    metadata = {"trigger": "auto", "preTokens": 150000}
    edge = file.line(
        "system", None, subtype="compact_boundary", logicalParentUuid=old, content="…", compactMetadata=metadata
    )
    summary = file.user(edge, "This session is being continued …: they talked.", isCompactSummary=True)
    file.user(summary, "new question")
    journal, _ = imported(file.path)
    compaction = next(entry.payload for entry in journal.path(SESSION) if isinstance(entry.payload, Compaction))
    assert (compaction.trigger, compaction.tokens_before) == ("auto", 150000)
    seen = [message.text for message in journal.context(SESSION).messages]
    assert "they talked." in seen[0]
    assert seen[1:] == ["new question"]
    journal.uncompact(SESSION)
    assert [message.text for message in journal.context(SESSION).messages] == [
        "old question",
        "old answer",
        "new question",
    ]


def test_a_missing_parent_is_mended_and_the_thread_remembers_it(tmp_path: Path) -> None:
    file = File(tmp_path)
    file.assistant(file.user(None, "one"), text("two"), id="msg_1")
    third = file.user("gone-1", "three")
    file.assistant(third, text("four"), id="msg_2")
    file.user("gone-2", "five")
    journal, repairs = imported(file.path)
    assert said(journal) == ["one", "two", "three", "four", "five"]
    assert len(repairs) == 2
    assert journal.thread(SESSION).origin["mended"] == repairs


def test_a_parent_that_stands_further_down_is_found(tmp_path: Path) -> None:
    file = File(tmp_path)
    first = file.user(None, "one")
    file.user("late", "three", uuid="early")
    file.assistant(first, text("two"), id="msg_1", uuid="late")
    journal, repairs = imported(file.path)
    assert repairs == []
    assert journal.entry(SESSION, "early").parent == "late"


def test_two_records_on_one_line_are_both_read(tmp_path: Path) -> None:
    file = File(tmp_path)
    one = file.user(None, "one")
    body = file.path.read_text().rstrip("\n")
    file.assistant(one, text("two"), id="msg_1")
    other = file.path.read_text().splitlines()[1]
    file.path.write_text(body + other + "\n")
    journal, repairs = imported(file.path)
    assert said(journal) == ["one", "two"]
    assert len(repairs) == 1


def test_subagents_are_threads_linked_to_their_call(tmp_path: Path) -> None:
    file = File(tmp_path)
    agent = {"type": "tool_use", "id": "toolu_9", "name": "Task", "input": {"prompt": "look around"}}
    asked = file.assistant(file.user(None, "go"), agent, id="msg_1")
    file.result(asked, "toolu_9", "all fine", toolUseResult={"agentId": "abc"})
    inner = File(tmp_path / SESSION / "subagents", "agent-abc.jsonl")
    inner.assistant(inner.user(None, "look around", isSidechain=True), text("seen"), isSidechain=True)
    side = file.user(None, "look around", isSidechain=True)
    file.assistant(side, text("seen inline"), isSidechain=True)
    journal, _ = imported(tmp_path)
    children = {thread.id: thread for thread in journal.list_threads(parent_thread=SESSION)}
    assert {thread.custom["call"] for thread in children.values()} == {"toolu_9"}
    assert len(children) == 2
    assert "look around" not in said(journal)
    import_sessions(journal, tmp_path, prefix="old-")
    assert len(journal.list_threads(parent_thread=f"old-{SESSION}")) == 2


def test_what_a_user_typed_while_the_model_worked_is_a_message(tmp_path: Path) -> None:
    file = File(tmp_path)
    prompt = file.user(None, "go")
    file.line("attachment", prompt, attachment={"type": "queued_command", "prompt": "and hurry"})
    journal, _ = imported(file.path)
    assert said(journal) == ["go", "and hurry"]


def test_a_growing_file_adds_only_what_is_new_and_a_cut_response_comes_again_whole(tmp_path: Path) -> None:
    file = File(tmp_path)
    thought = file.assistant(
        file.user(None, "go"), {"type": "thinking", "thinking": "hm", "signature": "s"}, id="msg_1"
    )
    journal, _ = imported(file.path)
    end = file.assistant(thought, text("whole"), id="msg_1")
    file.user(end, "more")
    report = import_sessions(journal, file.path)
    assert (report.entries_added, report.conflicts) == (2, ())
    assert said(journal) == ["go", "whole", "more"]
    assert import_sessions(journal, file.path).unchanged == 1


def test_titles_tags_branch_and_folder_come_along(tmp_path: Path) -> None:
    file = File(tmp_path)
    file.user(None, "go", gitBranch="feature")
    for line in (
        '{"type":"ai-title","aiTitle":"By a model"',
        '{"type":"custom-title","customTitle":"By hand"',
        '{"type":"tag","tag":"good"',
    ):
        file.raw(f'{line},"sessionId":"{SESSION}"}}\n')
    journal, _ = imported(file.path)
    thread = journal.thread(SESSION)
    assert (thread.title, thread.tags, thread.workspace, thread.custom["git_branch"]) == (
        "By hand",
        ("good",),
        "/w",
        "feature",
    )
    journal.update_thread(SESSION, title="Mine")
    file.raw(f'{{"type":"custom-title","customTitle":"Newer","sessionId":"{SESSION}"}}\n')
    import_sessions(journal, file.path)
    assert journal.thread(SESSION).title == "Mine"


def test_files_that_calls_name_are_known_to_search(tmp_path: Path) -> None:
    file = File(tmp_path)
    file.assistant(file.user(None, "go"), call("deep"), id="msg_1")
    journal, _ = imported(file.path)
    assert [hit.entry.type for hit in journal.search("file:deep.py").hits] == ["tool_call"]


def test_an_unknown_type_is_kept_and_counted(tmp_path: Path) -> None:
    file = File(tmp_path)
    file.user(None, "go")
    file.raw('{"type":"from-the-future","sessionId":"x","data":{"words":"later"}}\n')
    with st.open("memory:") as journal:
        report = import_sessions(journal, file.path)
        assert report.not_understood == 1
        assert of_kind(st.Custom, journal.path(SESSION)[-1].payload).data["data"] == {"words": "later"}


def test_an_image_is_an_artifact_stored_once_and_comes_back_in_an_export(tmp_path: Path) -> None:
    data = base64.b64encode(bytes(range(256)) * 8).decode()
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}
    file = File(tmp_path / "in")
    file.result(file.assistant(file.user(None, [text("look"), image]), call("a"), id="msg_1"), "a", "seen")
    with st.open(f"sqlite:///{tmp_path}/s.db") as journal, st.open("memory:") as other:
        import_sessions(journal, file.path)
        entry = journal.path(SESSION)[0]
        part = present(entry.message).parts[1]
        assert isinstance(part, st.ImagePart)
        assert part.artifact is not None
        assert journal.read_artifact(part.artifact) == bytes(range(256)) * 8
        assert data not in entry.raw
        assert of_kind(st.ImagePart, journal.context(SESSION).messages[0].parts[1]).data == data
        assert import_sessions(journal, file.path, prefix="again-").conflicts == ()
        export_sessions(journal, tmp_path / "out", format="claude-code", threads=[SESSION])
        assert data in (tmp_path / "out" / f"{SESSION}.jsonl").read_text()
        import_sessions(other, tmp_path / "out")
        assert [one.raw_hash for one in other.path(SESSION)] == [one.raw_hash for one in journal.path(SESSION)]


def test_a_large_output_beside_the_session_comes_along(tmp_path: Path) -> None:
    file = File(tmp_path)
    beside = tmp_path / SESSION / "tool-results"
    beside.mkdir(parents=True)
    (beside / "a.txt").write_text("all of it\n" * 1000)
    words = (
        "<persisted-output>\nOutput too large. Full output saved to: /home/x/tool-results/a.txt\n</persisted-output>"
    )
    file.result(file.assistant(file.user(None, "go"), call("a"), id="msg_1"), "a", words)
    journal, _ = imported(file.path)
    message = journal.path(SESSION)[-2].message
    assert message is not None
    assert journal.search("all of it")
    view = message.tool_results[0].view
    assert view is not None
    assert view.full_output is not None
    assert journal.read_artifact(view.full_output) == b"all of it\n" * 1000


OTHER = "9c000000-1111-4222-8333-444455556666"


def test_a_fork_shares_the_history_that_it_repeats(tmp_path: Path) -> None:
    first = File(tmp_path)
    shared = first.assistant(first.user(None, "one"), text("two"), id="msg_1")
    body = first.path.read_text()
    first.user(shared, "three")
    background = File(tmp_path, f"{OTHER}.jsonl")
    background.raw(body.replace('"isSidechain"', '"sessionKind": "bg", "isSidechain"'))
    background.user(shared, "in the background", uuid="bg-1")
    journal, repairs = imported(tmp_path)
    assert repairs == []
    assert said(journal) == ["one", "two", "three"]
    assert said(journal, OTHER) == ["one", "two", "in the background"]
    thread = journal.thread(OTHER)
    assert (thread.forked_from_thread, thread.forked_from_entry, thread.tree) == (SESSION, shared, SESSION)
    assert import_sessions(journal, tmp_path).entries_added == 0


def test_a_branch_with_new_ids_is_a_fork_where_its_lines_say_so(tmp_path: Path) -> None:
    first = File(tmp_path)
    asked = first.user(None, "one")
    answer = first.assistant(asked, text("two"), id="msg_1")
    first.user(answer, "three")
    branch = File(tmp_path, f"{OTHER}.jsonl")
    one = branch.user(None, "one", uuid="new-1", forkedFrom={"sessionId": SESSION, "messageUuid": asked})
    two = branch.assistant(one, text("two"), uuid="new-2", forkedFrom={"sessionId": SESSION, "messageUuid": answer})
    branch.user(two, "another way", uuid="new-3")
    journal, _ = imported(tmp_path)
    assert said(journal, OTHER) == ["one", "two", "another way"]
    assert journal.thread(OTHER).forked_from_entry == answer


def test_a_fork_whose_origin_is_gone_comes_alone(tmp_path: Path) -> None:
    branch = File(tmp_path, f"{OTHER}.jsonl")
    one = branch.user(None, "one", forkedFrom={"sessionId": SESSION, "messageUuid": "gone"})
    branch.user(one, "another way")
    journal, _ = imported(tmp_path)
    assert said(journal, OTHER) == ["one", "another way"]


def test_backups_of_edited_files_come_in_as_a_checkpoint_that_restores_these_files_alone(tmp_path: Path) -> None:
    project = tmp_path / "w"
    (project / "src").mkdir(parents=True)
    (project / "src/app.py").write_text("after")
    (project / "notes.txt").write_text("mine")
    backups = tmp_path / "home/file-history" / SESSION
    backups.mkdir(parents=True)
    (backups / "aa@v1").write_text("before")
    file = File(tmp_path / "home/projects/-w")
    prompt = file.user(None, "edit it", cwd=str(project))
    tracked = {"src/app.py": {"backupFileName": "aa@v1", "version": 1}, "new.py": {"backupFileName": None}}
    tracked |= {"/etc/passwd": {"backupFileName": "../../../passwd"}, ".git/config": {"backupFileName": "aa@v1"}}
    snapshot = {"messageId": prompt, "trackedFileBackups": tracked}
    file.raw(json.dumps({"type": "file-history-snapshot", "messageId": prompt, "snapshot": snapshot}) + "\n")
    file.assistant(prompt, text("done"), id="msg_1")
    journal, repairs = imported(tmp_path / "home/projects")
    assert repairs == []

    journal.workspace.restore(SESSION, prompt, project, conflicts="force")
    assert (project / "src/app.py").read_text() == "before"
    assert (project / "notes.txt").read_text() == "mine"


def test_a_backup_that_is_gone_makes_no_conflict_and_no_half_of_a_checkpoint(tmp_path: Path) -> None:
    backups = tmp_path / "home/file-history" / SESSION
    backups.mkdir(parents=True)
    (backups / "aa@v1").write_text("before")
    file = File(tmp_path / "home/projects/-w")
    prompt = file.user(None, "edit it")
    tracked = {"a.py": {"backupFileName": "aa@v1"}, "b.py": {"backupFileName": "gone@v1"}}
    snapshot = {"messageId": prompt, "trackedFileBackups": tracked}
    file.raw(json.dumps({"type": "file-history-snapshot", "messageId": prompt, "snapshot": snapshot}) + "\n")
    journal, _ = imported(tmp_path / "home/projects")
    with pytest.raises(st.NoCheckpointError):
        journal.workspace.restore(SESSION, prompt, tmp_path / "w")

    (backups / "aa@v1").unlink()
    file.assistant(prompt, text("done"), id="msg_1")
    assert not import_sessions(journal, tmp_path / "home/projects").conflicts


def test_a_large_output_in_the_line_of_its_result_is_found(tmp_path: Path) -> None:
    file = File(tmp_path)
    asked = file.user(None, "list")
    called = file.assistant(asked, call("c"), id="m")
    preview = (
        "<persisted-output>\nOutput too large. Full output saved to: /gone.txt\n\nPreview:\nbegin\n</persisted-output>"
    )
    result = file.result(called, "c", preview, toolUseResult={"stdout": "begin\nthe needle at the end", "stderr": ""})
    file.assistant(result, text("done"), id="n")
    journal, _ = imported(file.path)
    with journal:
        assert journal.search("needle")
        assert len([entry for entry in journal.entries(SESSION) if entry.parent == result]) == 1
        assert "needle" not in "".join(said(journal))
        export_sessions(journal, tmp_path / "out", format="claude-code")
        again, _ = imported(tmp_path / "out")
        with again:
            assert [entry.id for entry in again.entries(SESSION)] == [entry.id for entry in journal.entries(SESSION)]


def test_what_a_subagent_said_is_found_where_only_the_session_tells_it(tmp_path: Path) -> None:
    file = File(tmp_path)
    asked = file.user(None, "look")
    for content in (
        [text("needle one"), {"type": "tool_use", "id": "c", "name": "Bash", "input": {"command": "cat needle-two"}}],
        [{"type": "tool_result", "tool_use_id": "c", "content": [text("needle three")]}],
        "needle four",
    ):
        told = {"type": "user", "message": {"role": "user", "content": content}}
        before = {"type": "assistant", "message": {"role": "assistant", "content": [text("needle zero")]}}
        data = {"agentId": "a", "message": told, "normalizedMessages": [before, told]}
        file.line("progress", asked, data={"type": "agent_progress", **data})
    journal, _ = imported(file.path)
    with journal:
        numbers = ("zero", "one", "two", "three", "four")
        assert [words for words in numbers if not journal.search(f"needle {words}")] == []
        assert said(journal) == ["look"]


@pytest.mark.parametrize("before", range(0, 24, 4))
def test_a_sidechain_is_found_wherever_its_mark_stands(
    before: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = File(tmp_path)
    file.user(None, "look")
    file.user(None, "of the subagent", isSidechain=True)
    at = file.path.read_bytes().index(b'"isSidechain": true')
    monkeypatch.setattr("sessiontree.transfer.formats.claude_code.agents._BLOCK", at + before)
    journal, _ = imported(file.path)
    with journal:
        assert said(journal) == ["look"]
        assert len(list(journal.iter_threads())) == 2
