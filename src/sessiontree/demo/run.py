"""The demo, step by step."""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console

import sessiontree as st
from sessiontree.demo.agent import OWNER, THREAD
from sessiontree.demo.long_talk import show_compaction
from sessiontree.demo.show import show_context, show_tree

__all__ = ["play"]


def play(*, has_colour: bool) -> None:
    """Write, crash, resume, fork, rewind, undo, compact; everything is gone from the disk afterwards."""
    console = Console(color_system="auto" if has_colour else None, highlight=False, soft_wrap=True)
    with tempfile.TemporaryDirectory(prefix="sessiontree-demo-") as folder:
        store = str(Path(folder) / "journal.db")
        _crash(console, store)
        with st.open(store) as journal:
            _recover(console, journal)
            _branch(console, journal)
            _say(console, "A conversation outgrows its window; compact() puts notes in the place of its older part.")
            show_compaction(console, journal)
            findings = journal.check()
        _say(console, f"The store is sound: {len(findings)} findings.")


def _crash(console: Console, store: str) -> None:
    _say(console, "An agent works in its own process, and is killed with SIGKILL in the middle of a turn.")
    command = [sys.executable, "-m", "sessiontree.demo.agent", store]
    # In a session of its own: Ctrl-C is for the demo, which ends the agent either way.
    with subprocess.Popen(  # noqa: S603  our own program
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as agent:
        assert agent.stdout is not None
        try:
            line = agent.stdout.readline()
        finally:
            agent.send_signal(signal.SIGKILL)
    if line.strip() != "in the middle of a turn":
        raise SystemExit("the demo agent did not get to the middle of its turn")


def _recover(console: Console, journal: st.Journal) -> None:
    _say(console, "The store is opened again: every acknowledged entry is there.")
    show_tree(console, journal, THREAD)
    resumption = journal.resume(THREAD, owner=OWNER)
    _say(
        console,
        f"resume() closes {len(resumption.interrupted)} turn as interrupted; retry() goes back to its save point.",
    )
    journal.retry(THREAD)
    with journal.turn(THREAD, owner=OWNER) as turn:
        turn.append(st.assistant("I read the code again.", calls=[st.call("c4", "read", '{"path":"login.py"}')]))
        turn.append(st.tool_result("c4", "users = {}", name="read"))
        turn.append(st.assistant("The users are never loaded. I load them before the test."))


def _branch(console: Console, journal: st.Journal) -> None:
    question = next(entry for entry in journal.path(THREAD) if isinstance(entry.payload, st.UserMessage))
    fork = journal.fork(THREAD, before=question.id, title="Fix the login test, another way")
    journal.append(fork.id, st.user("Write a new login test instead."))
    journal.append(fork.id, st.assistant("A new test, then. Here it is."))
    _say(console, "A fork before the question shares everything up to there, without a copy.")

    journal.rewind(THREAD, question.id)
    _say(console, "A rewind to the question: nothing is deleted, the rest of the tree stays (hollow dots).")
    show_tree(console, journal, THREAD)
    journal.undo(THREAD)
    _say(console, "undo() brings it back. The tree of the thread:")
    show_tree(console, journal, THREAD)

    _say(console, "What the model sees in the thread:")
    show_context(console, journal.context(THREAD))
    _say(console, "What the model sees in the fork:")
    show_context(console, journal.context(fork.id))
    deleted = journal.delete_thread(fork.id)
    _say(console, f"The fork is undone: {deleted.entries_removed} entries go, what the thread shows stays.")


def _say(console: Console, text: str) -> None:
    console.print(f"\n[bold]{text}[/bold]")
