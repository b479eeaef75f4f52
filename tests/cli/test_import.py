"""The command import: everything on the machine in one command, formats by content, conflicts, and following."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

DATA = Path(__file__).parent.parent / "data" / "transcripts"


class Machine:
    """A home folder with the sessions of some tools in it."""

    def __init__(self, root: Path) -> None:
        self.home = root / "home"
        self.work = root / "work"
        self.work.mkdir(parents=True)
        self.put("claude-code/synthetic", ".claude/projects")
        self.put("codex/synthetic/sessions", ".codex/sessions")
        self.put("goose/synthetic", ".local/share/goose/sessions")
        self.put("copilot/synthetic/session-state", ".copilot/session-state")

    def put(self, sample: str, place: str) -> None:
        shutil.copytree(DATA / sample, self.home / place)

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        names = (
            "CLAUDE_CONFIG_DIR",
            "CODEX_HOME",
            "XDG_DATA_HOME",
            "XDG_CONFIG_HOME",
            "GOOSE_PATH_ROOT",
            "LLM_USER_PATH",
        )
        environment = {name: value for name, value in os.environ.items() if name not in names}
        return subprocess.Popen(
            [sys.executable, "-m", "sessiontree", *arguments],
            cwd=self.work,
            env={**environment, "HOME": str(self.home), "SESSIONTREE_STORE": str(self.work / "store.db")},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *arguments: str, code: int = 0) -> tuple[str, str]:
        process = self.start(*arguments)
        out, err = process.communicate(timeout=60)
        assert process.returncode == code, err
        return out, err

    def json(self, *arguments: str, code: int = 0) -> Any:
        return json.loads(self.run(*arguments, "--json", code=code)[0])


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_one_command_brings_everything_home(machine: Machine) -> None:
    found = machine.json("import", "--dry-run")["found"]
    assert [one["format"] for one in found] == ["claude-code", "codex", "goose", "copilot"]
    assert found[0]["next_loss_ns"] > found[0]["oldest_ns"]
    _, problem = machine.run("import", code=2)
    assert "--yes" in problem
    reports = machine.json("import", "--yes", code=3)["reports"]
    assert {one["format"]: len(one["threads"]) for one in reports} == {
        "claude-code": 3,
        "codex": 1,
        "goose": 1,
        "copilot": 1,
    }
    again = machine.json("import", "--yes", code=3)["reports"]
    assert sum(one.get("entries_added", 0) for one in again) == 0
    assert "app.py" in machine.run("search", "app.py")[0]


def test_a_folder_with_several_tools_is_read_by_content(machine: Machine) -> None:
    reports = machine.json("import", str(machine.home), code=3)["reports"]
    assert {one["format"] for one in reports} == {"claude-code", "codex", "goose", "copilot"}


def test_what_is_not_known_is_refused_with_the_list_of_what_is(machine: Machine) -> None:
    (machine.work / "notes.txt").write_text("milk, bread")
    _, problem = machine.run("import", "notes.txt", code=2)
    assert "no session that is known here" in problem
    assert "claude-code" in problem


def test_a_conflict_shows_in_the_summary_and_in_the_exit_code(machine: Machine) -> None:
    machine.run("new", "another", "--id", "goose-20260801_1")
    _, told = machine.run("import", str(machine.home / ".local/share/goose/sessions"), code=4)
    assert "1 conflict" in told


def test_the_numbers_of_an_import_add_up_on_every_run(machine: Machine) -> None:
    """With a conflict, a damaged file, and from the second run on a session that grew and some that are as they were."""
    machine.run("new", "another", "--id", "goose-20260801_1")
    codex = next((machine.home / ".codex/sessions").rglob("*.jsonl"))
    copy = codex.with_name(codex.name.replace("000000000001", "000000000002"))
    copy.write_text(codex.read_text().replace("000000000001", "000000000002"))
    seen = []
    for _ in range(3):
        _, told = machine.run("import", "--yes", code=4)
        found = dict(re.findall(r"^[!✓] ([^:\n]+): ([^;\n]+)", told, re.MULTILINE))
        assert set(found) == {"Claude Code", "Codex CLI", "goose", "GitHub Copilot CLI"}
        for total, kinds in re.findall(r"(\d+) sessions? \(([^)]*)\)", " ".join(found.values())):
            assert int(total) == sum(map(int, re.findall(r"\d+", kinds))), found
        seen.append(found)
        with copy.open("a") as out:
            content = [{"type": "input_text", "text": "late thought"}]
            wire = {"type": "message", "role": "user", "content": content}
            out.write(
                json.dumps({"timestamp": "2026-08-01T11:00:00Z", "type": "response_item", "payload": wire}) + "\n"
            )
    later = "1 session (1 read again), 1 source unchanged"
    assert [one["Codex CLI"] for one in seen] == ["2 sessions (2 new)", later, later]
    assert {one["goose"] for one in seen} == {"1 session (1 conflict)"}


def test_a_watcher_sees_what_is_added(machine: Machine) -> None:
    file = next((machine.home / ".claude/projects").rglob("1*.jsonl"))
    watcher = machine.start("import", str(file), "--watch")
    try:
        assert watcher.stderr is not None
        # The first import is reported when it is done: only what comes after it needs the watcher.
        while "sessions" not in watcher.stderr.readline():
            pass
        wire = {
            "type": "user",
            "uuid": "late",
            "parentUuid": None,
            "message": {"role": "user", "content": "late thought"},
        }
        # The file ends with half a line; now that the line has ended, it is kept as one that cannot be read.
        with file.open("a") as out:
            out.write("\n" + json.dumps(wire) + "\n")
        while "2 entries added" not in watcher.stderr.readline():
            pass
        assert "late thought" in machine.run("search", "late thought")[0]
    finally:
        watcher.terminate()
        watcher.communicate(timeout=20)


def test_the_doctor_says_what_was_mended(machine: Machine) -> None:
    lines = [
        {"type": "user", "uuid": "a", "parentUuid": None, "cwd": "/w", "message": {"role": "user", "content": "one"}},
        {"type": "user", "uuid": "b", "parentUuid": "gone", "cwd": "/w", "message": {"role": "user", "content": "two"}},
    ]
    (machine.work / "broken.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    machine.run("import", "broken.jsonl")
    (problem,) = machine.json("doctor")["mended"]["broken"]
    assert "'gone' is missing" in problem
    assert "mended" in machine.run("doctor")[0]


def test_a_conversation_goes_on_in_another_tool_and_its_command_is_printed(machine: Machine) -> None:
    machine.run("import", str(machine.home / ".codex"))
    out, _ = machine.run("continue", "019f0000-0000-7000-8000-000000000001", "--in", "claude-code")
    assert out.startswith("claude --resume ")
    name = out.split()[-1]
    (file,) = (machine.home / ".claude/projects").rglob(f"{name}.jsonl")
    assert file.parent.name == "-home-u-demo"
    rows = machine.run("export", "019f0000-0000-7000-8000-000000000001", "--to", "openai-jsonl")[0].splitlines()
    assert all("messages" in json.loads(row) for row in rows)
    machine.run("export", "019f0000-0000-7000-8000-000000000001", "--to", "codex", "-o", "back")
    assert list((machine.work / "back").glob("rollout-*.jsonl"))
    _, problem = machine.run("continue", "019f0000-0000-7000-8000-000000000001", "--in", "goose", "--run", code=2)
    assert "not installed" in problem


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "is empty"),
        ('{"role": "user"}'.encode("utf-16"), "UTF-16"),
        (b'{"unknown": [1, 2', "breaks off"),
        (b"SQLite format 3\x00 and no more", "is damaged"),
        (b"plain words\n", "no session that is known"),
    ],
)
def test_a_file_that_is_not_known_says_why(body: bytes, said: str, machine: Machine) -> None:
    path = machine.work / "odd.json"
    path.write_bytes(body)
    assert said in " ".join(machine.run("import", str(path), code=2)[1].split())


def test_a_dangling_link_is_named_as_one(machine: Machine) -> None:
    path = machine.work / "link.jsonl"
    path.symlink_to(machine.work / "gone.jsonl")
    problem = machine.run("import", str(path), code=2)[1]
    assert "gone.jsonl, which does not exist" in " ".join(problem.split())
    assert "Did you mean" not in problem
