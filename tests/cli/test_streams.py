"""Streams that are closed, full, cut off early or of a poor encoding: no trace, and the exit code tells."""

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
    shell.environment.pop("PYTHONUTF8")
    with st.open(tmp_path / "j.db") as journal:
        journal.create_thread("talk", title="Tïtle 東京")
        journal.append_many("talk", [st.user(f"question {number} 東京") for number in range(400)])
    return shell


def redirected(shell: Shell, arguments: str, how: str, **environment: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {' '.join(COMMAND)} {arguments} {how}"],
        env=shell.environment | environment,
        cwd=shell.folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr
    return done


@pytest.mark.parametrize("arguments", ["ls", "show talk", "log talk", "search question", "export talk", "--help"])
def test_data_that_cannot_be_written_is_an_error(shell: Shell, arguments: str) -> None:
    for how in (">&-", ">/dev/full"):
        done = redirected(shell, arguments, how)
        assert done.returncode == 5
        assert done.stderr.startswith("✗ ")


@pytest.mark.parametrize("how", ["2>&-", "2>/dev/full"])
@pytest.mark.parametrize("arguments", ["rewind talk~1", "label talk good", "archive talk", "rm talk --yes", "doctor"])
def test_a_message_that_cannot_be_written_is_not_a_failure(shell: Shell, arguments: str, how: str) -> None:
    assert redirected(shell, arguments, how).returncode == 0


def test_errors_keep_their_code_when_stderr_cannot_be_written(shell: Shell) -> None:
    assert redirected(shell, "show nobody", "2>/dev/full").returncode == 1
    assert redirected(shell, "show nobody", "2>&-").returncode == 1
    assert redirected(shell, "show", "<&- 2>&-").returncode == 2


def test_a_closed_stdin_is_neither_a_terminal_nor_input(shell: Shell) -> None:
    assert "Which thread" in redirected(shell, "show", "<&-").stderr
    assert "--yes" in redirected(shell, "rm talk", "<&-").stderr
    assert redirected(shell, "append talk", "<&-").returncode == 2


def test_the_store_is_sound_after_a_run_without_any_stream(shell: Shell) -> None:
    assert redirected(shell, "append talk hello", "<&- >&- 2>&-").returncode == 5
    with st.open(f"jsonl:///{shell.folder}/folder") as journal:
        journal.create_thread("t")
    redirected(shell, f"append t hello --store jsonl:///{shell.folder}/folder", "<&- >&- 2>&-")
    for store in ("j.db", f"jsonl:///{shell.folder}/folder"):
        with st.open(store if ":" in store else shell.folder / store) as journal:
            assert journal.check() == []
            assert present(journal.path(journal.list_threads().threads[0].id)[-1].message).text == "hello"


@pytest.mark.parametrize("arguments", ["show talk", "context talk", "log talk -n 400", "tree talk --full"])
def test_a_closed_reader_is_distinguished_from_something_not_found(shell: Shell, arguments: str) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [*COMMAND, *arguments.split()],
        env=shell.environment,
        cwd=shell.folder,
        stdin=subprocess.DEVNULL,
        stdout=writer,
        stderr=subprocess.PIPE,
        check=False,
    )
    os.close(writer)
    assert done.returncode == 141
    assert done.stderr == b""


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
@pytest.mark.parametrize("arguments", ["ls", "show talk", "tree talk", "export talk --to html", "ls --json"])
def test_pipes_and_files_get_utf8_whatever_the_locale_is(shell: Shell, arguments: str, encoding: str) -> None:
    done = redirected(shell, arguments, "", PYTHONIOENCODING=encoding)
    assert done.returncode == 0
    assert "Tïtle 東京" in done.stdout


def test_a_terminal_without_a_letter_gets_another_one_in_its_place(shell: Shell) -> None:
    child = shell.terminal("ls", PYTHONIOENCODING="ascii")
    child.expect("T.tle")
    child.wait()
    assert child.exitstatus == 0


def test_a_message_that_is_not_text_or_empty_is_refused(shell: Shell) -> None:
    binary = shell.folder / "binary"
    binary.write_bytes(b"\xff\xfe\x00")
    assert "not UTF-8" in redirected(shell, "append talk", f"< {binary}").stderr
    assert "empty" in redirected(shell, "append talk", "< /dev/null").stderr
    assert redirected(shell, "append talk ''", "").returncode == 2
    assert redirected(shell, "append talk --role tool --call c", "< /dev/null").returncode == 0
    done = subprocess.run([*COMMAND, "append", "talk", os.fsdecode(b"\xff")], env=shell.environment, check=False)
    assert done.returncode == 2


def test_the_version_is_printed(shell: Shell) -> None:
    assert shell("--version") == f"sessiontree {st.__version__}"


def test_the_process_ends_normally_and_keeps_the_collector_as_it_is(shell: Shell) -> None:
    code = (
        "import atexit, gc, sys; before = gc.get_threshold(); sys.argv[1:] = ['ls', '--quiet']\n"
        "atexit.register(lambda: print(gc.get_threshold() == before))\n"
        "from sessiontree.cli import main; main()"
    )
    done = subprocess.run([COMMAND[0], "-c", code], env=shell.environment, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "True"


def test_without_a_command_a_pipe_gets_the_list(shell: Shell) -> None:
    assert shell.run().stdout == shell.run("ls").stdout != ""
