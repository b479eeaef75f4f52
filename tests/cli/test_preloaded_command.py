"""A run of the preloaded command is a run of the command: the same output, exit code, streams, folder and variables."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

import sessiontree as st
from cli_shell import COMMAND, Shell
from known import present


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    shell = Shell(tmp_path)
    with st.open(tmp_path / "j.db") as journal:
        journal.create_thread("talk", title="Tïtle 東京")
        journal.append("talk", st.user("hello"))
    return shell


def really(shell: Shell, arguments: list[str], given: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *arguments], input=given, capture_output=True, text=True, env=shell.environment, cwd=shell.folder,
        check=False,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "given", "code"),
    [
        (["ls", "--json"], "", 0),
        (["config"], "", 0),
        (["show", "nobody"], "", 1),
        (["append", "talk", "--role", "nobody"], "some text", 2),
        (["append", "talk", os.fsdecode(b"\xff")], "", 2),
    ],
)
def test_output_and_exit_code_are_those_of_the_command(
    shell: Shell, arguments: list[str], given: str, code: int
) -> None:
    done, expected = shell.run(*arguments, given=given, code=code), really(shell, arguments, given)
    assert (done.returncode, done.stdout, done.stderr) == (expected.returncode, expected.stdout, expected.stderr)


def test_input_is_read_to_its_end(shell: Shell) -> None:
    text = "x" * 1_000_000
    shell("append", "talk", given=text)
    with st.open(shell.folder / "j.db") as journal:
        assert [present(entry.message).text for entry in journal.path("talk")] == ["hello", text]


def test_each_run_has_its_own_folder_and_variables(tmp_path: Path) -> None:
    shells = [Shell(tmp_path / name) for name in ("one", "two")]
    for shell in shells:
        shell.folder.mkdir()
        del shell.environment["SESSIONTREE_STORE"]
        (shell.folder / ".sessiontree.toml").write_text('store = "here.db"\n')
    assert ["one" in shell("config") for shell in shells] == [True, False]
    shells[0].environment["SESSIONTREE_STORE"] = str(tmp_path / "variable.db")
    assert ["variable.db" in shell("config") for shell in shells] == [True, False]
