"""What each command promises, run as a process in a pipe."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import click
import pytest

import sessiontree as st
from cli_shell import Shell, screen
from sessiontree.cli.declare import argument


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


@pytest.fixture
def talk(shell: Shell) -> Shell:
    """A thread with a conversation of four messages."""
    thread = shell("new", "Fix the parser", "--id", "talk")
    assert thread == "talk"
    shell("append", "talk", "please fix parse_config")
    shell("append", "talk", "Looking.", "--role", "assistant")
    shell("append", "talk", given="a second question")
    shell("append", "talk", "Done.", "--role", "assistant")
    return shell


def test_a_thread_is_started_listed_and_read(talk: Shell) -> None:
    line = talk("ls").split("\t")
    assert (line[0], line[2], line[3], line[7]) == ("talk", "4", "1", "Fix the parser")
    shown = talk("show", "talk")
    assert "please fix parse_config" in shown
    assert "a second question" in shown
    assert [line.split("\t")[3] for line in talk("log", "talk").splitlines()] == ["assistant", "user"] * 2


def test_lists_are_filtered_and_paged(shell: Shell) -> None:
    with st.open(shell.folder / "j.db") as journal:
        for number in range(5):
            thread = journal.create_thread(title=f"talk {number}", tags=("even" if number % 2 == 0 else "odd",))
            journal.append(thread.id, st.user("hello"))
    assert len(shell("ls", "--tag", "even").splitlines()) == 3
    page = shell.json("ls", "--limit", "3")
    assert (page["schema_version"], len(page["threads"])) == (1, 3)
    rest = shell.json("ls", "--limit", "3", "--cursor", page["cursor"])
    assert [thread["title"] for thread in page["threads"] + rest["threads"]] == [f"talk {n}" for n in (4, 3, 2, 1, 0)]
    assert rest["cursor"] is None
    assert shell("ls", "--title", "TALK 3").endswith("talk 3")
    assert shell("ls", "--since", "1d") == shell("ls")


def test_empty_threads_are_counted_and_listed_when_asked_for(shell: Shell) -> None:
    shell("new", "empty", "--id", "empty")
    listed = shell.run("ls")
    assert (listed.stdout, listed.stderr) == ("", "")
    assert shell.json("ls")["threads"] == []
    assert shell("ls", "--all").startswith("empty\t")
    shell("append", "empty", "hello")
    listed = shell.run("ls")
    assert (listed.stdout.startswith("empty\t"), listed.stderr) == (True, "")
    shell("new", "--id", "unused")
    shell("prune", "--older-than", "0d", "--empty", "--yes")
    assert [thread["id"] for thread in shell.json("ls", "--all")["threads"]] == ["empty"]


def test_a_workspace_can_be_named_by_any_path_to_it(shell: Shell) -> None:
    (shell.folder / "link").symlink_to(shell.folder)
    shell("new", "--id", "here", "--workspace", ".")
    assert shell("ls", "--all", "--workspace", str(shell.folder / "link") + "/").startswith("here\t")


def test_json_holds_every_field_also_the_empty_ones(talk: Shell) -> None:
    thread = talk.json("ls")["threads"][0]
    assert thread["workspace"] == ""
    assert thread["tags"] == []
    entries = talk.json("show", "talk")["entries"]
    assert entries[0]["payload"]["type"] == "user_message"
    assert entries[0]["parent"] is None


def test_rewind_branches_undo_and_redo(talk: Shell) -> None:
    talk("rewind", "talk~2")
    talk("append", "talk", "another way")
    tree = talk("tree", "talk").splitlines()
    assert [line.split()[-2] for line in tree if "another way" in line] == ["head"]
    assert any("  ├─" in line for line in tree)
    talk("undo", "talk")
    assert talk.json("ls")["threads"][0]["messages"] == 4
    talk("redo", "talk")
    assert talk.json("ls")["threads"][0]["messages"] == 3
    assert "nothing to redo" in talk.run("redo", "talk", code=1).stderr


def test_a_fork_shares_what_is_before_it(talk: Shell) -> None:
    fork = talk("fork", "talk~2", "--id", "other")
    assert fork == "other"
    talk("append", "other", "from the fork")
    assert talk.json("ls")["threads"][0]["messages"] == 3
    assert "fork other" in talk("tree", "talk")
    compared = talk.json("diff", "talk", "other")
    assert (len(compared["common"]), len(compared["left"]), len(compared["right"])) == (2, 2, 1)
    assert talk("fork", "talk:@", "--before", "--id", "earlier") == "earlier"
    assert len(talk.json("log", "earlier")["entries"]) == 3


def test_a_fork_counts_entries_as_lists_do(shell: Shell) -> None:
    with st.open(shell.folder / "j.db") as journal:
        journal.create_thread("t")
        with journal.turn("t", owner="me") as turn:
            turn.append(st.user("hello"))
            turn.append(st.assistant("hi"))
    assert "shares 2 entries" in shell.run("fork", "t", "--id", "other").stderr
    assert [line.split("\t")[2] for line in shell("ls").splitlines()] == ["2", "2"]


def test_labels_are_addresses(talk: Shell) -> None:
    talk("label", "talk~1", "question")
    assert "a second question" in talk("log", "talk:question", "-n", "1")
    assert talk("label", "talk").startswith("question\t")
    talk("rewind", "talk:question")
    talk("label", "talk:question", "--remove")
    assert talk.run("log", "talk:question", code=1)


def test_a_label_goes_to_the_last_message_not_to_the_marks_behind_it(shell: Shell) -> None:
    with st.open(shell.folder / "j.db") as journal:
        journal.create_thread("t")
        with journal.turn("t", owner="me") as turn:
            turn.append(st.user("hello"))
    shell("label", "t", "here")
    assert "hello" in shell("log", "t:here", "-n", "1")
    shell("label", "t", "there")
    assert shell("label", "t").startswith("there\t")


def test_search_finds_ranks_filters_and_says_when_there_is_nothing(talk: Shell) -> None:
    thread, _, _, role, snippet = talk("search", "parseConfig").split("\t")
    assert (thread, role) == ("talk", "user")
    assert "parse_config" in snippet
    assert talk("search", "role:assistant", "done").split("\t")[3] == "assistant"
    assert talk.run("search", "nowhere", code=1).stdout == ""
    assert talk.run("search", "after:nonsense", code=2).stderr
    hits = talk.json("search", "question")["hits"]
    assert hits[0]["snippet"]["marks"] == [[9, 17]]


def test_the_context_is_what_a_model_gets(talk: Shell) -> None:
    request = json.loads(talk("context", "talk", "--dialect", "openai-chat"))
    assert [message["role"] for message in request["messages"]] == ["user", "assistant"] * 2
    assert json.loads(talk("context", "talk~2", "--dialect", "anthropic"))["messages"][0]["role"] == "user"
    assert "no dialect" in talk.run("context", "talk", "--dialect", "klingon", code=2).stderr


def test_addresses_lead_to_the_right_exit_codes(talk: Shell) -> None:
    assert "No thread is called “nobody”" in talk.run("show", "nobody", code=1).stderr
    assert talk.run("show", "talk:nothing", code=1).stderr
    assert talk.run("show", "talk~99", code=1).stderr
    assert talk.run("show", "talk@{-5}", code=1).stderr
    assert talk.run("show", code=2).stderr
    talk("new", "--id", "talks")
    assert "fits 2 threads" in talk.run("show", "tal", code=2).stderr
    assert talk("log", "@", "-n", "1") == ""
    assert talk("log", "talk", "-n", "1").endswith("Done.")


def test_a_part_of_an_id_is_enough(shell: Shell) -> None:
    thread = shell("new", "one")
    shell("new", "two")
    entry = shell("append", thread[-8:], "hello")
    assert shell("log", f"{thread[-8:]}:{entry[-6:]}").split("\t")[0] == entry
    assert shell("log", f"{thread}:{entry[:-1]}").split("\t")[0] == entry


def test_an_append_with_an_expected_leaf_conflicts_after_another_append(talk: Shell) -> None:
    first = talk.json("log", "talk")["entries"][0]["id"]
    talk("append", "talk", "first", "--expect-leaf", first)
    assert "the leaf of thread" in talk.run("append", "talk", "second", "--expect-leaf", first, code=4).stderr


def test_nothing_is_written_in_a_dry_run(talk: Shell) -> None:
    before = talk("ls", "-a")
    for arguments in (
        ("new", "x"), ("append", "talk", "x"), ("fork", "talk"), ("rewind", "talk~1"), ("label", "talk", "x"), ("lease", "talk", "--acquire", "me"), ("archive", "talk"),
        ("rm", "talk"), ("prune", "--older-than", "0d", "--all"), ("export", "talk", "-o", "x.html"),
    ):  # fmt: skip
        assert talk.json(*arguments, "--dry-run")["is_dry_run"] is True
    assert talk("ls", "-a") == before
    assert not (talk.folder / "x.html").exists()


def test_a_dry_undo_or_redo_names_the_place_that_the_leaf_would_go_to(talk: Shell) -> None:
    talk("rewind", "talk~2")
    for move, said in (("undo", "Done."), ("redo", "Looking.")):
        plan = talk.run(move, "talk", "--dry-run")
        assert (plan.stdout, said in plan.stderr) == ("", True)
        assert said in talk.json(move, "talk", "--dry-run")["plan"]
        assert said in talk.run(move, "talk").stderr.splitlines()[1]
    talk("append", "talk", "and on")
    talk("rewind", "talk~1")
    assert "and on" in talk.run("undo", "talk", "--dry-run").stderr


def test_a_dry_run_fails_as_the_real_one_would(talk: Shell) -> None:
    talk("lease", "talk", "--acquire", "one")
    first = talk.json("log", "talk")["entries"][-1]["id"]
    for code, arguments in (
        (1, ("undo", "talk")), (1, ("redo", "talk")), (1, ("uncompact", "talk")), (4, ("new", "--id", "talk")),
        (4, ("fork", "talk", "--id", "talk")), (4, ("append", "talk", "x", "--expect-leaf", first)),
        (4, ("lease", "talk", "--acquire", "two")),
    ):  # fmt: skip
        dry = talk.run(*arguments, "--dry-run", code=code)
        real = talk.run(*arguments, code=code)
        assert (dry.stdout, dry.stderr) == (real.stdout, real.stderr)


def test_deleting_needs_a_yes_and_names_what_goes(talk: Shell) -> None:
    refused = talk.run("rm", "talk", code=2)
    assert "Fix the parser" in refused.stdout
    assert "--yes" in refused.stderr
    talk("rm", "talk", "--yes")
    assert talk("ls") == ""


def test_archived_threads_come_back_and_are_pruned_by_age(talk: Shell) -> None:
    talk("archive", "talk")
    assert talk("ls") == ""
    assert "(archived)" in talk("ls", "-a")
    talk("archive", "talk", "--undo")
    assert talk("ls")
    talk("archive", "talk")
    talk("prune", "--older-than", "1d", "--yes")
    assert talk("ls", "-a")
    talk("prune", "--older-than", "0d", "--yes")
    assert talk("ls", "-a") == ""


def test_pruning_leaves_the_count_of_fork_ids(shell: Shell) -> None:
    with st.open(shell.folder / "j.db") as journal:
        assert st.CheckpointedSessions(journal).new_fork_id("a") == "a#fork-1"
    for choice in ("--all", "--empty"):
        shell("prune", "--older-than", "0d", choice, "--yes")
    with st.open(shell.folder / "j.db") as journal:
        assert st.CheckpointedSessions(journal).new_fork_id("a") == "a#fork-2"


def test_leases_are_taken_shown_and_given_back(talk: Shell) -> None:
    talk("lease", "talk", "--acquire", "one")
    assert talk("lease", "talk").startswith("one\t")
    assert "'one'" in talk.run("lease", "talk", "--acquire", "two", code=4).stderr
    talk("lease", "talk", "--release")
    assert talk("lease", "talk") == ""


def test_stats_count_tokens_cost_and_tools(shell: Shell) -> None:
    with st.open(shell.folder / "j.db") as journal:
        journal.create_thread("t")
        usage = st.Usage(input_tokens=100, output_tokens=7, cost=0.25, currency="EUR")
        ask = st.assistant("", calls=[st.call("c", "bash", "{}")], model="m-1", usage=usage)
        journal.append_many("t", [st.user("go"), ask, st.tool_result("c", "ok")])
        journal.fork("t")
    totals = shell.json("stats")["stats"]
    assert (totals["threads"], totals["messages"], totals["input_tokens"]) == (2, 3, 100)
    assert (totals["cost"], totals["tools"], totals["models"]) == ({"EUR": 0.25}, {"bash": 1}, {"m-1": 1})
    assert "tool\tbash\t1\t0" in shell("stats", "t")


def test_tail_shows_the_end_and_follows(talk: Shell) -> None:
    followed = talk.run("tail", "talk", "-n", "2", "--for", "0.2").stdout.splitlines()
    assert [line.split("\t")[3] for line in followed] == ["a second question", "Done."]
    objects = [json.loads(line) for line in talk("tail", "talk", "-n", "3", "--for", "0.2", "--json").splitlines()]
    assert [item["schema_version"] for item in objects] == [1, 1, 1]


@pytest.mark.parametrize("store", ["j.db", "folder/"])
def test_the_doctor_is_content_with_a_sound_store(tmp_path: Path, store: str) -> None:
    shell = Shell(tmp_path, store)
    shell("append", shell("new"), "hello")
    assert "No problems found" in shell.run("doctor").stderr
    assert shell.json("doctor")["findings"] == []


def test_the_doctor_finds_and_repairs_a_torn_line(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    shell.environment["SESSIONTREE_STORE"] = f"jsonl:///{tmp_path / 'folder'}"
    thread = shell("new")
    shell("append", thread, "hello")
    (file,) = (tmp_path / "folder" / "trees").iterdir()
    file.write_bytes(file.read_bytes() + b'{"torn": ')
    assert shell.run("doctor", code=3).stdout
    assert "repaired: " in shell.run("doctor", "--repair").stderr
    assert "hello" in shell("log", thread)


def test_a_file_of_another_program_is_refused_untouched(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    (tmp_path / "j.db").write_bytes(b"not a store, but dear to somebody" * 10)
    before = (tmp_path / "j.db").read_bytes()
    assert "not a sessiontree store" in shell.run("ls", code=3).stderr
    assert (tmp_path / "j.db").read_bytes() == before


def test_the_store_is_found_by_flag_then_variable_then_project_then_data_folder(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    deep = tmp_path / "project" / "src"
    deep.mkdir(parents=True)
    (tmp_path / "project" / ".sessiontree.toml").write_text('store = "talks.db"\n')
    assert shell.json("config", "show", "--store", "flag.db")["store"] == "flag.db"
    assert "SESSIONTREE_STORE" in shell.json("config")["reason"]
    del shell.environment["SESSIONTREE_STORE"]
    shell.environment["XDG_DATA_HOME"] = str(tmp_path / "data")
    assert shell.json("config")["store"] == str(tmp_path / "data" / "sessiontree" / "journal.db")
    shell.folder = deep
    found = shell.json("config")
    assert found["store"] == str(tmp_path / "project" / "talks.db")
    assert ".sessiontree.toml" in found["reason"]
    (tmp_path / "project" / ".sessiontree.toml").write_text("nonsense = [")
    assert "cannot be read" in shell.run("ls", code=2).stderr


@pytest.mark.parametrize("shell_name", ["bash", "zsh", "fish", "powershell"])
def test_completion_scripts_are_printed(shell: Shell, shell_name: str) -> None:
    assert "SESSIONTREE_COMPLETE" in shell("completion", shell_name)


def test_completion_offers_the_verbs(shell: Shell) -> None:
    shell.environment |= {
        "_SESSIONTREE_COMPLETE": "bash_complete",
        "COMP_WORDS": "sessiontree re",
        "COMP_CWORD": "1",
    }
    assert {"plain,redo", "plain,rewind"} <= set(shell.run().stdout.split())


def test_usage_errors_are_two(shell: Shell) -> None:
    assert shell.run("frobnicate", code=2).stderr
    assert shell.run("ls", "--nonsense", code=2).stderr
    assert shell.run("ls", "--limit", "0", code=2).stderr
    assert shell.run("completion", "csh", code=2).stderr


def test_a_compaction_shortens_the_context_and_is_taken_back(talk: Shell) -> None:
    for number in range(3):
        talk("append", "talk", f"decision {number}: " + "we keep the plan as it is " * 300, "--role", "assistant")
    whole = talk("context", "talk", "--dialect", "openai-chat")
    result = talk.json("compact", "talk", "--keep-recent", "50", "--force")["compaction"]
    assert result["tokens_after"] < result["tokens_before"]
    assert len(talk("context", "talk", "--dialect", "openai-chat")) < len(whole)
    assert "≈ compacted" in talk("tree", "talk")
    talk("uncompact", "talk")
    assert talk("context", "talk", "--dialect", "openai-chat") == whole
    assert talk.run("uncompact", "talk", code=1).stderr


@pytest.mark.parametrize("kind", ["json", "jsonl"])
def test_what_is_exported_is_imported_again_and_a_second_time_adds_nothing(talk: Shell, kind: str) -> None:
    talk("rewind", "talk~1")
    talk("append", "talk", "another branch")
    talk("export", "talk", "-o", f"talk.{kind}")
    assert "already exists" in talk.run("export", "talk", "-o", f"talk.{kind}", code=2).stderr
    first = talk.json("import", f"talk.{kind}", "--store", "copy.db")["report"]
    assert (first["created"], first["entries_added"]) == (1, 5)
    assert talk.json("import", f"talk.{kind}", "--store", "copy.db")["report"]["entries_added"] == 0
    assert talk("log", "talk", "--store", "copy.db") == talk("log", "talk")


def test_a_store_is_copied_into_another_kind_and_a_second_time_writes_nothing(talk: Shell) -> None:
    first = talk.json("copy", f"jsonl:///{talk.folder / 'copied'}")["report"]
    assert (first["threads"], first["copied"]) == (1, 4)
    assert talk.json("copy", f"jsonl:///{talk.folder / 'copied'}")["report"]["copied"] == 0
    assert talk("log", "talk", "--store", f"jsonl:///{talk.folder / 'copied'}") == talk("log", "talk")


def test_files_are_compared_and_go_back_with_the_conversation(talk: Shell) -> None:
    folder = talk.folder / "work"
    folder.mkdir()
    (folder / "a.txt").write_text("old\n")
    with st.open(talk.folder / "j.db") as journal:
        first, *_, last = (entry.id for entry in journal.path("talk"))
        journal.workspace.snapshot("talk", first, folder)
        (folder / "a.txt").write_text("new\n")
        journal.workspace.snapshot("talk", last, folder)
    assert "+new" in talk("diff", f"talk:{first}", f"talk:{last}", "--files", "work")
    assert "a.txt" in talk.run("rewind", f"talk:{first}", "--files", "work", "--dry-run").stderr
    assert (folder / "a.txt").read_text() == "new\n"
    talk("rewind", f"talk:{first}", "--files", "work")
    assert (folder / "a.txt").read_text() == "old\n"
    talk("undo", "talk")
    assert (folder / "a.txt").read_text() == "new\n"


def test_conversations_go_to_other_programs_and_come_from_them(talk: Shell) -> None:
    talk("export", "talk", "--to", "pi", "-o", "sessions")
    assert talk.json("import", "sessions", "--dry-run")["report"]["format"] == "pi"
    assert talk.run("import", "nowhere", code=2).stderr
    assert talk.run("export", "talk", "--to", "klingon", code=2).stderr
    assert talk("export", "talk", "--to", "md").startswith("# Fix the parser")
    assert talk("export", "talk", "--to", "html").startswith("<!doctype html>")


def test_labels_with_signs_of_addresses_in_them_are_found_as_they_stand(talk: Shell) -> None:
    ids = [entry["id"] for entry in reversed(talk.json("log", "talk")["entries"])]
    for name, entry_id in zip(("good^", "~2", "a:b", "@{-1}"), ids, strict=True):
        talk("label", f"talk:{entry_id}", name)
    for name, entry_id in zip(("good^", "~2", "a:b", "@{-1}"), ids, strict=True):
        assert talk("log", f"talk:{name}", "-n", "1").split("\t")[0] == entry_id
        assert talk("log", f"@:{name}", "-n", "1").split("\t")[0] == entry_id
    assert talk("log", "talk~2", "-n", "1").split("\t")[0] == ids[1]
    assert talk("log", "talk:a:b~1", "-n", "1").split("\t")[0] == ids[1]


@pytest.mark.parametrize("name", ["@odd", "~tilde", ":colon", "^", "a:b", "x~1", "user@host", "--help", "-n", "%"])
def test_threads_with_signs_of_addresses_in_their_ids_are_found_as_they_stand(shell: Shell, name: str) -> None:
    with st.open(shell.folder / "j.db") as journal:
        journal.create_thread(name)
        journal.append_many(name, [st.user("first"), st.user("second")])
        journal.create_thread("x")
        journal.append_many("x", [st.user("other"), st.user("latest")])
    assert shell("log", "-n", "1", "--", name).endswith("second")
    assert shell("log", "-n", "1", "--", f"{name}~1").endswith("first")
    assert shell("log", "-n", "1", "~1").endswith("other")


def test_a_thread_named_like_the_shorthand_can_be_typed_too(shell: Shell) -> None:
    with st.open(shell.folder / "j.db") as journal:
        journal.create_thread("@")
        journal.append_many("@", [st.user("mine"), st.user("my own")])
        journal.create_thread("talk")
        journal.append_many("talk", [st.user("first"), st.user("second")])
    assert shell("log", "@", "-n", "1").endswith("my own")
    assert shell("log", "@~1", "-n", "1").endswith("mine")
    assert shell("log", "~0", "-n", "1").endswith("second")


def test_the_places_of_the_leaf_count_as_in_git(talk: Shell) -> None:
    talk("rewind", "talk~2")
    assert talk("log", "talk@{1}", "-n", "1") == talk("log", "talk@{-1}", "-n", "1")
    assert talk("log", "talk@{0}", "-n", "1") == talk("log", "talk", "-n", "1")
    assert talk.run("log", "talk~" + "9" * 5000, code=1).stderr


def test_every_command_shows_the_same_messages_and_tokens(shell: Shell) -> None:
    with st.open(shell.folder / "j.db") as journal:
        journal.create_thread("t")
        said = [st.user if number % 2 == 0 else st.assistant for number in range(40)]
        journal.append_many("t", [st.system("Be kind."), *(say("word " * 100) for say in said), st.system("Be brief.")])

    def shown() -> int:
        with st.open(shell.folder / "j.db") as journal:
            tokens = journal.context("t").estimate
        (listed,), totals = shell.json("ls")["threads"], shell.json("stats")["stats"]
        assert (
            (listed["messages"], listed["tokens"]) == (totals["messages"], totals["estimated_tokens"]) == (40, tokens)
        )
        return tokens

    before = shown()
    plan = shell.json("compact", "t", "--keep-recent", "500", "--dry-run")["plan"]
    assert shown() == before
    done = shell.json("compact", "t", "--keep-recent", "500")["compaction"]
    assert (done["tokens_before"], done["tokens_after"]) == (before, shown())
    assert f"~{before:,} → ~{shown():,} tokens, {done['removed_messages']} messages summarised" in plan


@pytest.mark.parametrize("messages", [0, 2, 4])
def test_a_dry_run_of_compact_says_when_nothing_would_change(shell: Shell, messages: int) -> None:
    with st.open(shell.folder / "j.db") as journal:
        journal.create_thread("t", contents=[st.user("a few words")] * messages)
    keep = ("--keep-recent", "10") if messages == 4 else ()
    plan = shell.run("compact", "t", *keep, "--dry-run").stderr
    assert "would compact" not in plan
    done = shell.run("compact", "t", *keep).stderr
    assert "nothing was changed: " in done
    assert plan == done.replace("was changed", "would be changed")


def test_stats_count_what_outlives_its_thread_once(shell: Shell) -> None:
    with st.open(shell.folder / "j.db") as journal:
        journal.create_thread("t")
        journal.append_many("t", [st.user("one"), st.user("two")])
        journal.fork("t", new_id="a")
        journal.fork("t", new_id="b")
        journal.delete_thread("t")
        journal.append("a", st.user("three"))
    assert shell.json("stats")["stats"]["messages"] == 3


def test_a_thread_that_is_named_twice_is_deleted_once(talk: Shell) -> None:
    assert "deleted 1 thread, 4 entries" in talk.run("rm", "talk", "tal", "--yes").stderr


def test_an_export_that_does_not_fit_leaves_the_file_that_was_there(talk: Shell) -> None:
    there = talk.folder / "talk.md"
    there.write_text("dear to somebody")
    with st.open(talk.folder / "j.db") as journal:
        journal.append("talk", st.user("x" * 3_000_000))
    command = f"ulimit -f 1000; exec {sys.executable} -m sessiontree export talk -o talk.md --force"
    done = subprocess.run(
        ["bash", "-c", command], env=talk.environment, cwd=talk.folder, capture_output=True, check=False
    )
    assert done.returncode == 5
    assert there.read_text() == "dear to somebody"
    assert [path.name for path in talk.folder.glob("*part*")] == []
    talk("export", "talk", "-o", "talk.md", "--force")
    assert there.read_text().startswith("# Fix the parser")
    assert talk.json("export", "talk", "-o", "talk.md", "--force")["bytes"] == there.stat().st_size


def test_a_dry_import_tells_what_is_new_to_this_store(talk: Shell) -> None:
    talk("export", "talk", "-o", "talk.jsonl")
    fresh = talk.json("import", "talk.jsonl", "--dry-run", "--store", "copy.db")["report"]
    assert (fresh["created"], fresh["entries_added"], fresh["entries_known"]) == (1, 4, 0)
    talk("import", "talk.jsonl", "--store", "copy.db")
    again = talk.json("import", "talk.jsonl", "--dry-run", "--store", "copy.db")["report"]
    assert (again["created"], again["entries_added"], again["entries_known"]) == (0, 0, 4)


FORMATS = ("native", "floret", "ggcode", "zimaos", "openrouter", "pi", "picoclaw")


@pytest.fixture
def garbage(tmp_path: Path) -> tuple[str, ...]:
    """Sources of every shape with nothing in them that can be read."""
    (tmp_path / "file.jsonl").write_bytes(b"garbage\n\xff\x00\n")
    (tmp_path / "nothing").touch()
    (tmp_path / "empty").mkdir()
    (tmp_path / "folder" / "below").mkdir(parents=True)
    for name in ("a.jsonl", "b.json", "below/thread.json", "below/entries.jsonl"):
        (tmp_path / "folder" / name).write_bytes(b"garbage\n")
    os.mkfifo(tmp_path / "pipe")
    return ("file.jsonl", "nothing", "empty", "folder", "pipe")


@pytest.mark.parametrize("kind", FORMATS)
def test_a_source_with_nothing_of_the_named_format_is_an_error_and_leaves_no_thread(
    shell: Shell, garbage: tuple[str, ...], kind: str
) -> None:
    for source in garbage:
        result = shell.run("import", source, "--from", kind, code=3)
        assert source in result.stderr
        assert "0 sessions" in result.stderr
    assert shell("ls", "-a") == ""


def test_a_source_with_nothing_readable_fails_a_dry_run_and_is_named_in_json(
    shell: Shell, garbage: tuple[str, ...]
) -> None:
    for source in garbage:
        result = shell.run("import", source, "--from", "native", "--dry-run", code=3)
        assert source in result.stderr
        assert json.loads(shell.run("import", source, "--from", "native", "--json", code=3).stdout)["report"]["notes"]


@pytest.mark.parametrize("kind", ["native", "floret", "ggcode", "pi", "picoclaw"])
def test_good_files_come_in_beside_one_that_cannot_be_read(talk: Shell, kind: str) -> None:
    source = talk.folder / "source"
    if kind == "native":
        source.mkdir()
        (source / "good.jsonl").write_text(talk("export", "talk", "--to", "jsonl"))
    else:
        talk("export", "talk", "--to", kind, "-o", str(source))
    bad = source / "bad" if kind == "floret" else source
    bad.mkdir(exist_ok=True)
    (bad / ("entries.jsonl" if kind == "floret" else "bad.jsonl")).write_text("garbage\n")
    other = Shell(talk.folder, "other.db")
    result = other.run("import", str(source), "--from", kind, code=3)
    assert "bad" in result.stderr
    assert len(other("ls", "-a").splitlines()) == 1
    assert "a second question" in other("show", "@")


def test_what_is_empty_because_a_variable_was_not_set_is_refused(talk: Shell) -> None:
    """Left out, each of these means something; given as nothing it is a mistake, and must not pass for that."""
    before = talk("ls", "-a")
    for arguments in (
        ("ls", "--store", ""), ("import", ""), ("export", "talk", "-o", ""), ("new", "--id", ""),
        ("fork", "talk", "--id", ""), ("append", "talk", "x", "--expect-leaf", ""), ("rewind", "talk~1", "--files", ""),
        ("lease", "talk", "--acquire", ""), ("diff", "talk", "talk~1", "--files", ""),
    ):  # fmt: skip
        assert "empty" in talk.run(*arguments, code=2).stderr
        if arguments[0] not in {"ls", "diff"}:
            talk.run(*arguments, "--dry-run", code=2)
    assert "empty" in talk.run("--store", "", "ls", code=2).stderr
    assert talk("ls", "-a") == before


def test_an_id_that_begins_with_a_dash_goes_behind_two_dashes(shell: Shell) -> None:
    shell("new", "--id", "-dash")
    assert "an id that starts with a dash" in shell.run("append", "-dash", "x", code=2).stderr
    shell("append", "--", "-dash", "-hello")
    assert "-hello" in shell("show", "--", "-dash")
    shell("rm", "--yes", "--", "-dash")
    assert shell("ls") == ""


def test_an_export_says_at_once_where_it_cannot_go_and_what_the_name_does_not_tell(talk: Shell) -> None:
    (talk.folder / "folder.html").mkdir()
    assert "an existing folder" in talk.run("export", "talk", "-o", "nowhere/x.html", code=2).stderr
    assert "name a file" in talk.run("export", "talk", "-o", "folder.html", "--force", code=2).stderr
    for name in ("/", ".html", "talk"):
        assert "--to" in talk.run("export", "talk", "-o", name, code=2).stderr


def test_an_empty_list_says_whether_there_is_nothing_or_nothing_that_fits(shell: Shell) -> None:
    shell("new", "--id", "gone")
    shell("rm", "gone", "--yes")
    assert "No threads here yet" in screen(shell.terminal("ls"))
    shell("new", "one")
    assert "No thread matches" in screen(shell.terminal("ls", "--title", "two"))
    assert shell.run("ls", "--title", "two").stderr == ""


def test_commands_that_share_an_argument_get_a_decorator_each(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[tuple[str, ...]] = []

    def decorator(*names: str, **_: object) -> Callable[[Callable[..., object]], Callable[..., object]]:
        made.append(names)
        return lambda function: function

    monkeypatch.setattr(click, "argument", decorator)
    shared = argument("thread", "The thread.")
    assert shared(shared(len)) is len
    assert made == [("thread",), ("thread",)], "before 8.1.4, click's own decorator could be used only once"
