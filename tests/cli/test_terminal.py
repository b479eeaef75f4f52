"""On a real terminal: colours, widths, resizing, interrupts, pagers, and content that would like to take over."""

import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pexpect
import pytest

import sessiontree as st
from cli_shell import COMMAND, Shell, heed_interrupts, screen, without_colour

HOSTILE = (
    "red \x1b[31malert\x1b[0m \x1b]8;;http://evil.example\x07link\x1b]8;;\x07 \x1b]52;c;cGFzcw==\x07 "
    "\x9b2J \x1b[2J\x1b[H \x1bP1$r\x1b\\ \u202egnp.exe\u2066 bell\x07 <script>alert(1)</script>"
)


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    shell = Shell(tmp_path)
    with st.open(tmp_path / "j.db") as journal:
        journal.create_thread("talk", title="A title that is long enough to be cut on a narrow screen, surely")
        journal.append("talk", st.user("hello **world**, this is a message of some length for the tree"))
        journal.append("talk", st.assistant("- one\n- two\n\n```python\nprint(1)\n```"))
    return shell


def test_a_table_has_a_heading_and_colour_on_a_terminal(shell: Shell) -> None:
    shown = screen(shell.terminal("ls"))
    assert "title" in shown
    assert "\x1b[33mtalk" in shown


@pytest.mark.parametrize("environment", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
@pytest.mark.parametrize("verb", ["ls", "tree", "show", "log"])
def test_no_color_and_dumb_terminals_get_no_escape_at_all(shell: Shell, environment: dict[str, str], verb: str) -> None:
    arguments = [verb] if verb == "ls" else [verb, "talk"]
    shell.environment |= environment
    shown = screen(shell.terminal(*arguments))
    assert "\x1b" not in shown
    assert shown.strip()


def test_a_dumb_terminal_gets_a_tree_of_plain_characters(shell: Shell) -> None:
    shown = screen(shell.terminal("tree", "talk", TERM="dumb"))
    assert re.search(r"^\w{4}  > hello", shown, re.MULTILINE)
    assert "< head" in shown
    assert shown.isascii()


@pytest.mark.parametrize("arguments", [("ls",), ("tree", "talk"), ("log", "talk"), ("show", "talk"), ("stats",)])
def test_nothing_is_wider_than_a_screen_of_forty_columns(shell: Shell, arguments: tuple[str, ...]) -> None:
    shown = without_colour(screen(shell.terminal(*arguments, columns=40)))
    assert max(len(line) for line in shown.splitlines()) <= 40


def test_the_width_follows_the_window(shell: Shell) -> None:
    """A follower that is resized cuts its next line to the new width."""
    child = shell.terminal("tail", "talk", columns=100)
    child.expect("hello")
    child.setwinsize(24, 40)
    with st.open(shell.folder / "j.db") as journal:
        journal.append("talk", st.user("x" * 300))
    child.expect("x…")
    assert child.before.count("x") < 40
    child.sendintr()
    child.expect(pexpect.EOF)


def test_ctrl_c_ends_a_follower_with_130_and_without_a_trace(shell: Shell) -> None:
    child = shell.terminal("tail", "talk")
    child.expect("hello")
    child.sendintr()
    assert "Traceback" not in screen(child)
    assert child.exitstatus == 130


def test_ctrl_c_is_the_way_to_stop_the_viewer_and_no_failure(shell: Shell) -> None:
    child = shell.terminal("web", "--no-open")
    child.expect("Ctrl-C stops the viewer")
    child.sendintr()
    said = screen(child)
    assert ("stopped the viewer" in said, "✗" in said, child.exitstatus) == (True, False, 0), said


def test_ctrl_c_in_the_middle_of_writing_leaves_whole_messages(shell: Shell) -> None:
    """A loop of appends is interrupted again and again; the store stays sound, and what was acknowledged is there."""
    acknowledged: list[str] = []
    for _ in range(4):
        child = subprocess.Popen(
            [*COMMAND, "append", "talk", "an interrupted message"],
            env=shell.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        try:
            child.wait(0.15 + 0.1 * len(acknowledged))
        except subprocess.TimeoutExpired:
            child.send_signal(signal.SIGINT)
        out, _ = child.communicate(timeout=30)
        acknowledged += out.split()
    with st.open(shell.folder / "j.db") as journal:
        assert journal.check() == []
        stored = {entry.id for entry in journal.path("talk")}
        assert set(acknowledged) <= stored


INTERRUPTED_WHILE_LOADING = """
import os, signal, sys

class Interrupt:
    def find_spec(self, name, *rest):
        if name == "{module}":
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupt())
from sessiontree.cli import main
main()
"""


@pytest.mark.parametrize(
    "module", ["click", "sessiontree.cli.app", "sessiontree.journal", "sessiontree.cli.commands.ls"]
)
def test_ctrl_c_while_the_command_is_loading_leaves_no_trace(shell: Shell, module: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_WHILE_LOADING.format(module=module), "ls"],
        env=shell.environment, capture_output=True, text=True, check=False, preexec_fn=heed_interrupts,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr in {"", "✗ Interrupted.\n"}


def test_the_demo_is_coloured_on_a_terminal_only_and_ends_its_agent_on_ctrl_c(shell: Shell) -> None:
    assert "\x1b" not in shell("demo")
    assert "\x1b" not in screen(shell.terminal("demo", "--no-color"))
    child = shell.terminal("demo")
    child.expect("An agent is killed")
    child.sendintr()
    shown = screen(child)
    assert child.exitstatus == 130
    assert "Traceback" not in shown


def test_a_reader_that_leaves_early_makes_no_noise(shell: Shell) -> None:
    with st.open(shell.folder / "j.db") as journal:
        journal.append_many("talk", [st.user(f"line {number} " + "x" * 200) for number in range(3000)])
    command = " ".join([*COMMAND, "log", "talk", "-n", "3000"])
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command} | head -n 2"],
        env=shell.environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert len(done.stdout.splitlines()) == 2
    assert done.stderr == ""
    assert done.returncode in {0, 141}


def test_a_pager_is_used_when_a_person_reads(shell: Shell) -> None:
    shown = screen(shell.terminal("show", "talk", SESSIONTREE_PAGER="sed s/hello/PAGED/"))
    assert "PAGED" in shown
    assert "PAGED" not in screen(shell.terminal("show", "talk", "--no-pager", SESSIONTREE_PAGER="sed s/hello/PAGED/"))


def test_a_person_without_an_id_picks_by_letters_or_number(shell: Shell) -> None:
    with st.open(shell.folder / "j.db") as journal:
        journal.create_thread("other", title="Budget of March")
        journal.append("other", st.user("one pound"))
    child = shell.terminal("log")
    child.expect("leave")
    child.send("attlelong\r")
    assert "hello" in screen(child).rpartition("\x1b[?1049l")[2]
    child = shell.terminal("log")
    child.expect("leave")
    child.send("\x1b[B\r")
    assert "hello" in screen(child).rpartition("\x1b[?1049l")[2]
    child = shell.terminal("log")
    child.expect("leave")
    child.send("\x1b")
    assert (screen(child).rpartition("\x1b[?1049l")[2], child.exitstatus) == ("", 130)


def test_a_row_of_the_picker_that_a_terminal_finds_too_wide_moves_no_other_row(shell: Shell) -> None:
    child = shell.terminal("log", columns=40)
    child.expect("leave")
    child.send("\x1b")
    drawn, _, after = (child.before + screen(child)).partition("\x1b[?7l")[2].partition("\x1b[?7h")
    assert "A title" in drawn
    assert after.startswith("\x1b[?25h")
    assert not re.search(r"[^H\n]\x1b\[[JK]", drawn), "the last cell of a full line is erased"


def test_a_person_without_an_entry_picks_one_of_any_branch(shell: Shell) -> None:
    child = shell.terminal("rewind")
    child.expect("leave")
    child.send("\r")
    child.expect("rewind talk ›")
    child.send("hello\r")
    assert "◀ head" in screen(child).rpartition("\x1b[?1049l")[2]
    child = shell.terminal("diff", "talk")
    child.expect("diff talk ›")
    child.send("one\r")
    assert "they part after" in screen(child).rpartition("\x1b[?1049l")[2]
    child = shell.terminal("label")
    child.expect("leave")
    child.send("\r")
    child.expect("label talk ›")
    child.send("hello\r")
    child.expect("A name for it")
    child.sendline("start")
    assert "labelled [start]" in screen(child)
    assert shell("label", "talk").startswith("start\t")


def test_deleting_asks_a_person_and_takes_no_for_an_answer(shell: Shell) -> None:
    child = shell.terminal("rm", "talk")
    child.expect(r"\[y/N\]")
    child.sendline("n")
    assert "Nothing was deleted" in screen(child)
    assert shell("ls")
    child = shell.terminal("rm", "talk")
    child.expect(r"\[y/N\]")
    child.sendline("y")
    screen(child)
    assert shell("ls") == ""


@pytest.mark.parametrize("is_terminal", [True, False])
@pytest.mark.parametrize("verb", ["ls", "show", "tree", "log", "search", "tail", "diff", "context", "label", "stats"])
def test_hostile_content_is_shown_and_not_obeyed(tmp_path: Path, verb: str, is_terminal: bool) -> None:
    shell = Shell(tmp_path)
    with st.open(tmp_path / "j.db") as journal:
        journal.create_thread("evil", title=HOSTILE)
        entry = journal.append("evil", st.user(HOSTILE + "\n\n[click](javascript:alert(1)) ![x](http://evil/x.png)"))
        call = st.assistant(HOSTILE, calls=[st.call("c", HOSTILE, HOSTILE)], reasoning=HOSTILE, model=HOSTILE)
        journal.append("evil", call)
        journal.append("evil", st.tool_result("c", HOSTILE, name=HOSTILE))
        journal.label("evil", entry.id, HOSTILE)
    arguments = {
        "ls": ["ls"], "search": ["search", "alert"], "diff": ["diff", "evil", "evil~2", "--full"], "stats": ["stats"],
        "tail": ["tail", "evil", "--for", "0.1"], "show": ["show", "evil", "--full"], "tree": ["tree", "evil", "-a"],
    }.get(verb, [verb, "evil"])  # fmt: skip
    shown = screen(shell.terminal(*arguments)) if is_terminal else shell.run(*arguments).stdout
    left = re.sub(r"\x1b\[[0-9;]*m", "", shown)
    assert not re.search("[\x00-\x08\x0b-\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", left)
    if verb != "search":  # a snippet may begin inside a sequence: then its rest is plain text
        assert "evil.example" not in left
        assert "cGFzcw" not in left


def test_a_line_of_a_megabyte_is_shown_without_delay_or_flood(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    with st.open(tmp_path / "j.db") as journal:
        journal.create_thread("long", title="y" * 1_000_000)
        journal.append("long", st.user("x" * 1_000_000 + " needle"))
    for arguments in (("ls",), ("tree", "long"), ("show", "long"), ("search", "needle")):
        started = time.monotonic()
        shown = screen(shell.terminal(*arguments))
        assert len(shown) < 60_000
        assert time.monotonic() - started < 20


@pytest.mark.parametrize("is_terminal", [True, False])
def test_all_of_a_message_of_megabytes_is_shown_as_it_is(tmp_path: Path, is_terminal: bool) -> None:
    shell = Shell(tmp_path)
    diff = "diff --git a/x b/x\n" + "+added\n-gone\n" * 5_000
    with st.open(tmp_path / "j.db") as journal:
        journal.create_thread("long")
        journal.append("long", st.user("\x1b[31m" + "x" * 400_000 + " end-of-line"))
        journal.append("long", st.assistant("*" * 100_000 + " end-of-stars", calls=[st.call("c", "bash", "{}")]))
        journal.append("long", st.tool_result("c", diff + "end-of-diff"))
    arguments = ("show", "long", "--full")
    shown = screen(shell.terminal(*arguments, PAGER="cat")) if is_terminal else shell.run(*arguments).stdout
    joined = re.sub(r"\s*\n\s*", "", without_colour(shown))
    assert all(f"end-of-{what}" in joined for what in ("line", "stars", "diff"))
    assert ("\x1b[32m+added" in shown) is is_terminal
    assert "\x1b[31mx" not in shown


def test_an_interrupted_prompt_is_not_an_answer(shell: Shell) -> None:
    child = shell.terminal("rm", "talk")
    child.expect(r"\[y/N\]")
    is_there = True
    while is_there:
        # One that comes just before the prompt begins to read is noticed with the next one only.
        child.sendintr()
        is_there = child.expect([pexpect.EOF, pexpect.TIMEOUT], timeout=2) == 1
    child.close()
    assert child.exitstatus == 130
    assert shell("ls")


def test_output_to_a_full_device_is_an_error_not_a_trace(shell: Shell) -> None:
    device = Path("/dev/full")
    if not device.exists():
        pytest.skip("no /dev/full here")
    with device.open("w") as full:
        done = subprocess.run(
            [*COMMAND, "ls"], env=shell.environment, stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 5
    assert "Traceback" not in done.stderr


def test_an_interrupt_inside_the_pager_leaves_the_command_waiting_for_it(shell: Shell) -> None:
    child = shell.terminal("show", "talk", PAGER="less", LESS="R")
    child.expect("END")
    child.sendintr()
    child.send("G")
    child.expect("END")
    assert child.isalive()
    child.send("q")
    assert "interrupted" not in screen(child)
    assert child.exitstatus == 0


@pytest.mark.parametrize("options", ["", "-i", "M"])
def test_options_of_less_that_say_nothing_of_colours_keep_the_colours(shell: Shell, options: str) -> None:
    child = shell.terminal("show", "talk", PAGER="less", LESS=options)
    child.expect("END")
    assert "ESC" not in child.before
    child.send("q")
    screen(child)
    assert child.exitstatus == 0


def test_a_pager_that_is_left_early_is_not_a_failure(shell: Shell) -> None:
    with st.open(shell.folder / "j.db") as journal:
        journal.append_many("talk", [st.user(f"line {number} " + "word " * 60) for number in range(800)])
    for verb in ("show", "tree"):
        child = shell.terminal(verb, "talk", "--all", PAGER="head -n 1")
        screen(child)
        assert child.exitstatus == 0


@pytest.mark.parametrize("pager", ["", " ", "cat", "no-such-pager", "no-such-pager --flag"])
def test_without_a_pager_the_text_goes_straight_to_the_screen(shell: Shell, pager: str) -> None:
    assert "hello" in screen(shell.terminal("show", "talk", PAGER=pager))


def test_a_follower_says_when_the_thread_went_back(shell: Shell) -> None:
    with st.open(shell.folder / "j.db") as journal:
        first = journal.path("talk")[0].id
        child = shell.terminal("tail", "talk", TERM="dumb")
        child.expect("one - two")
        journal.append("talk", st.user("straight on"))
        child.expect("straight on")
        assert "back to" not in child.before
        journal.rewind("talk", first)
        journal.append("talk", st.user("another way"))
        child.expect(r"-- back to \w{4}")
        child.expect("another way")
        child.sendintr()
        screen(child)


def test_prune_keeps_a_thread_that_is_used_while_it_asks(shell: Shell) -> None:
    with st.open(shell.folder / "j.db") as journal:
        for name in ("old", "used"):
            journal.create_thread(name, created_ns=1_000)
        terminal = shell.terminal("prune", "--older-than", "1d", "--all")
        terminal.expect(r"Delete 2 threads\?.* \[y/N\]")
        journal.append("used", st.user("again"))
        terminal.sendline("y")
        terminal.expect(pexpect.EOF)
        assert "deleted 1 thread" in terminal.before
        assert "kept 1 thread that changed meanwhile: used" in terminal.before
        assert {thread.id for thread in journal.list_threads()} == {"talk", "used"}
