"""The command demo: an agent is killed; then resume, branch, fork, rewind, undo and compact, in a temporary folder.

Run with ``python -m``, this module is the agent of the demo: a process that is killed in the middle of a turn.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from shlex import quote

import click

import sessiontree as st
from sessiontree.cli.context import CliContext
from sessiontree.cli.declare import command
from sessiontree.cli.moves import head_line, shown_path, waiting_line
from sessiontree.cli.screen.graph import log_lines
from sessiontree.cli.screen.lines import BOLD, DIM, FAILURE, GOOD, TOOL, Line, paragraph
from sessiontree.cli.screen.tree import tree_lines
from sessiontree.cli.views import view_of
from sessiontree.errors import InvalidInputError
from sessiontree.render.cells import pad
from sessiontree.render.figures import bar, count, duration, plural

__all__ = ["demo"]


THREAD = "fix-login"
OWNER = "demo-agent"
QUESTION = "The login test fails since this morning. Find out why."

_WIDEST = 100
_NARROW = 60
_MOST_LINES = 5
_POLICY = st.CompactionPolicy(window_tokens=8_000, keep_recent_tokens=300, keep_user_tokens=200, summary_tokens=300)
_ROUNDS = 24


@command("demo", examples=["sessiontree demo", "sessiontree demo --keep demo    to see it in the browser afterwards"])
@click.option("--keep", metavar="FOLDER", help="Keep the store in this folder, to look at it afterwards.")
def demo(cli: CliContext, *, keep: str | None) -> None:
    """Show a killed agent, a resume, a branch, a fork, a rewind and a compaction, in a temporary folder."""
    started = time.monotonic()
    with _kept(Path(keep)) if keep else _temporary() as folder:
        inner = CliContext()
        inner.store_flag = str(folder / "journal.db")
        inner.is_colourless = cli.is_colourless
        try:
            _Demo(cli, inner, is_kept=keep is not None).play(started)
        finally:
            inner.close()


@contextmanager
def _temporary() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="sessiontree-demo-") as folder:
        yield Path(folder)


@contextmanager
def _kept(folder: Path) -> Iterator[Path]:
    if (folder / "journal.db").exists():
        raise InvalidInputError(f"{folder} has a store already; name another folder")
    folder.mkdir(parents=True, exist_ok=True)
    yield folder


def work(store: str) -> None:
    """Run half a turn: ask for a third tool, and wait to be killed before it answers."""
    with st.open(store) as journal:
        journal.create_thread(id=THREAD, title="Fix the login test", model="demo-model")
        journal.append(THREAD, st.user(QUESTION))
        with journal.turn(THREAD, owner=OWNER) as turn:
            turn.append(st.assistant("", calls=[st.call("c1", "read", '{"path": "tests/test_login.py"}')]))
            turn.append(
                st.tool_result("c1", "def test_login():\n    assert login('ann', 'secret')\n# end", name="read")
            )
            turn.append(st.assistant("", calls=[st.call("c2", "bash", '{"command": "pytest"}')]))
            turn.append(st.tool_result("c2", "KeyError: 'ann'", name="bash", is_error=True))
            turn.save_point("tool_result_batch")
            turn.append(st.assistant("", calls=[st.call("c3", "edit", '{"path": "src/login.py"}')]))
            # The demo may have been interrupted, and closed its end of the pipe.
            with suppress(BrokenPipeError):
                os.write(1, b"in the middle of a turn\n")
            sys.stdin.read()


class _Demo:
    """The six steps. ``inner`` has the store of the demo, ``outer`` the screen."""

    def __init__(self, outer: CliContext, inner: CliContext, *, is_kept: bool = False) -> None:
        self._is_kept = is_kept
        self._out = outer.out
        self._width = min(outer.out.width, _WIDEST)
        self._inner = inner
        self._number = 0

    def play(self, started: float) -> None:
        head = Line(("sessiontree demo", BOLD))
        where = "  a store that is kept" if self._is_kept else "  a store in a temporary folder"
        self._draw([head.add(where if self._width >= _NARROW else "", DIM)], indent=0)
        for step in (self._kill, self._reopen, self._branch, self._fork, self._rewind, self._compact):
            step()
        findings = self._inner.journal.check()
        if findings:
            raise SystemExit(f"sessiontree: the demo found {len(findings)} problems in its own store")
        self._draw([Line()], indent=0)
        took = f"  every checksum and every chain checked, {duration(time.monotonic() - started)}"
        self._draw([Line(("✓ ", GOOD), "The store is sound.").add(took if self._width >= _NARROW else "", DIM), Line()])
        kept = f" --store {quote(str(self._inner.store_flag))}" if self._is_kept else ""
        self._draw(_next_steps(f"sessiontree web{kept}", self._width - 3))

    def _kill(self) -> None:
        self._say("An agent is killed in the middle of its work")
        process = _killed_agent(str(self._inner.location.url))
        self._draw(self._log())
        self._draw([Line(("✗ ", FAILURE), ("SIGKILL", FAILURE), (f"  process {process} is gone", DIM))])

    def _reopen(self) -> None:
        self._say("Another process opens the store")
        journal = self._inner.journal
        said = [entry for entry in journal.path(THREAD) if entry.message is not None]
        closed = journal.resume(THREAD, owner=OWNER).interrupted
        journal.retry(THREAD)
        self._good(f"all {len(said)} acknowledged entries are there")
        self._good(f"{plural(len(closed), 'open turn')} closed as cut off")
        self._good("retry goes back to its last save point")

    def _branch(self) -> None:
        self._say("The retry finds another way: a branch")
        with self._inner.journal.turn(THREAD, owner=OWNER) as turn:
            turn.append(st.assistant("", calls=[st.call("c4", "read", '{"path": "src/login.py"}')]))
            turn.append(st.tool_result("c4", "users = {}", name="read"))
            turn.append(st.assistant("The users are never loaded. Now they are.", model="demo-model"))
        view = view_of(self._inner, self._inner.journal.thread(THREAD), width=self._width - 3)
        self._draw(tree_lines(view))

    def _fork(self) -> None:
        self._say("A fork asks something else, and shares the past")
        journal = self._inner.journal
        fork = journal.fork(
            THREAD, at=shown_path(journal, THREAD)[2].id, new_id="another-test", title="Another login test"
        )
        shared = plural(len(shown_path(journal, fork.id)), "entry", "entries")
        journal.append(fork.id, st.user("Write a new login test instead."))
        self._inner.__dict__.pop("threads", None)
        self._good(f"{fork.id} shares {shared} with {THREAD}, nothing was copied")
        self._draw(self._head(fork.id))

    def _rewind(self) -> None:
        self._say("Rewind, then undo: nothing is ever lost")
        journal = self._inner.journal
        before = journal.thread(THREAD)
        after = journal.rewind(THREAD, next(entry.id for entry in journal.path(THREAD) if entry.message is not None))
        self._draw([*self._head(THREAD), *(_moved(line) for line in waiting_line(self._inner, before, after))])
        journal.undo(THREAD)
        self._good("undo: the head is where it was")

    def _compact(self) -> None:
        self._say("A long talk shrinks, and grows back")
        journal = self._inner.journal
        thread = journal.create_thread("long-talk", title="A long conversation")
        journal.append(thread.id, st.user("Port the parser in src/parser.py to the new grammar, file by file."))
        for number in range(_ROUNDS):
            journal.append_many(thread.id, _round(number))
        before = journal.thread(thread.id).tokens
        journal.compact(thread.id, policy=_POLICY)
        after = journal.thread(thread.id).tokens
        cells = 24 if self._width >= _NARROW else 12
        self._draw(_bar_line(name, tokens, before, cells) for name, tokens in (("before", before), ("after", after)))
        journal.uncompact(thread.id)
        whole = len(journal.context(thread.id).messages)
        self._good(f"uncompact gives all {whole} messages back")

    def _log(self) -> list[Line]:
        """The last entries of the path, oldest first; the call that has no answer yet says so."""
        view = view_of(self._inner, self._inner.journal.thread(THREAD), width=self._width - 3)
        path = shown_path(self._inner.journal, THREAD)
        return list(log_lines(view, path))[::-1]

    def _head(self, thread_id: str) -> list[Line]:
        lines = head_line(self._inner, self._inner.journal.thread(thread_id), self._width - 1)
        return [_moved(line) for line in lines]

    def _good(self, words: str) -> None:
        lines = list(paragraph(words, self._width - 3, lead="  "))
        self._draw(
            [Line(("✓ " if number == 0 else "  ", GOOD), line.plain.strip()) for number, line in enumerate(lines)]
        )

    def _say(self, sentence: str) -> None:
        self._number += 1
        self._draw([Line()], indent=0)
        lead = f"{self._number}  "
        self._draw(
            (Line(*((span.text, BOLD) for span in line.spans)) for line in paragraph(sentence, self._width, lead=lead)),
            indent=0,
        )

    def _draw(self, lines: Sequence[Line] | Iterator[Line], indent: int = 3) -> None:
        for number, line in enumerate(lines):
            if indent and number >= _MOST_LINES + 1:
                break
            self._out.draw([Line(" " * indent).extend(line).cut(self._width)])
        sys.stdout.flush()


def _moved(line: Line) -> Line:
    """A line without the indentation that verbs give it."""
    moved = Line()
    moved.spans = line.spans[1:] if line.spans and not line.spans[0].text.strip() else list(line.spans)
    if moved.spans:
        moved.spans[0] = moved.spans[0]._replace(text=moved.spans[0].text.lstrip())
    return moved


def _bar_line(name: str, tokens: int, most: int, cells: int) -> Line:
    return Line(
        (f"{name:<6}  ", DIM),
        (pad(bar(tokens, most, cells), cells), TOOL),
        (f"  {count(tokens, is_estimate=True):>6} tokens", DIM),
    )


def _next_steps(viewer: str, width: int) -> list[Line]:
    rows = (
        ("sessiontree import FOLDER", "bring in your own sessions"),
        (viewer, "trees, transcripts and costs in the browser"),
        ("docs/tutorial/first-journal.md", "20 lines of Python to do this yourself"),
    )
    widest = max(len(name) for name, _ in rows)
    if width < _NARROW:
        return [Line(name) for name, _ in rows]
    return [Line(pad(name, widest), (f"  {words}", DIM)) for name, words in rows]


def _round(number: int) -> list[st.Payload]:
    path = f"src/rule{number}.py"
    return [
        st.assistant("I read the next rule.", calls=[st.call(f"read{number}", "read_file", f'{{"path": "{path}"}}')]),
        st.tool_result(f"read{number}", f"def rule{number}(tokens): ...; " * 30, name="read_file"),
        st.assistant(f"We decided to keep rule {number} as it is. Still to do: its tests."),
    ]


def _killed_agent(store: str) -> int:
    """Start the agent, wait until it is in the middle of its turn, kill it; return the number of its process."""
    command = [sys.executable, "-m", "sessiontree.cli.commands.demo", store]
    # In its own session: Ctrl-C goes to the demo, which kills the agent in any case.
    with subprocess.Popen(  # noqa: S603  our own program
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as agent:
        assert agent.stdout is not None
        try:
            line = agent.stdout.readline()
        finally:
            agent.send_signal(signal.SIGKILL)
    if line.strip() != "in the middle of a turn":
        raise SystemExit("sessiontree: the demo agent ended before the middle of its turn")
    return agent.pid


if __name__ == "__main__":
    work(sys.argv[1])  # the agent, in its own process
