"""The command demo: write, crash, resume, branch, rewind, undo and compact, in a temporary folder.

Run with ``python -m``, this module is the agent of the demo: a process that is killed in the middle of a turn.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from rich.console import Console
from rich.text import Text

import sessiontree as st
from sessiontree.cli.context import CliContext
from sessiontree.cli.declare import command

__all__ = ["demo", "play", "show_compaction", "show_context", "show_tree"]


THREAD = "fix-the-login-test"
OWNER = "demo-agent"
QUESTION = "The login test has been failing since this morning. Find out why and fix it."


@command("demo", examples=["sessiontree demo"])
def demo(cli: CliContext) -> None:
    """Show a turn, a crash, a resume, a fork, a rewind and a compaction, in a temporary folder."""
    play(has_colour=cli.out.has_colour)


def work(store: str) -> None:
    """Run half a turn: request two tools at once, and wait to be killed before the second one answers."""
    with st.open(store) as journal:
        thread = journal.create_thread(id=THREAD, title="Fix the login test", model="demo-model")
        journal.append(thread.id, st.system("You are a careful programmer."))
        journal.append(thread.id, st.user(QUESTION))
        with journal.turn(thread.id, owner=OWNER) as turn:
            turn.append(
                st.assistant("I look at the test first.", calls=[st.call("c1", "read", '{"path":"test_login.py"}')])
            )
            turn.append(st.tool_result("c1", "assert login('ann', 'secret').ok", name="read"))
            turn.save_point("tool_result_batch")
            calls = [st.call("c2", "run", '{"command":"pytest"}'), st.call("c3", "read", '{"path":"login.py"}')]
            turn.append(st.assistant("Now both at once.", calls=calls))
            turn.append(st.tool_result("c2", "1 failed: KeyError 'ann'", name="run"))
            # The demo may have been interrupted, and closed its end of the pipe.
            with suppress(BrokenPipeError):
                os.write(1, b"in the middle of a turn\n")
            sys.stdin.read()


_COLOURS = {"user": "green", "assistant": "cyan", "tool": "yellow", "system": "magenta"}
_WIDTH = 76


def show_tree(console: Console, journal: st.Journal, thread_id: str) -> None:
    """Print every entry that the thread sees; filled dots are on the active path."""
    active = {entry.id for entry in journal.path(thread_id)}
    for depth, entry in _walk(journal.entries(thread_id)):
        is_active = entry.id in active
        line = Text("  " + "│ " * depth + ("● " if is_active else "○ "))
        line.append(_gist(entry), style=_style(entry) if is_active else "dim")
        line.truncate(_WIDTH + 2 * depth, overflow="ellipsis")
        console.print(line)


def show_context(console: Console, context: st.Context) -> None:
    """Print what the model receives."""
    if context.system:
        console.print(Text(f"  system     {context.system}", style="magenta"))
    for message in context.messages:
        for part in message.parts:
            line = Text(f"  {message.role:<10} {_part(part)}", style=_COLOURS[message.role])
            line.truncate(_WIDTH + 8, overflow="ellipsis")
            console.print(line)
    console.print(Text(f"  {len(context.messages)} messages, about {context.tokens} tokens", style="dim"))


def _walk(entries: Sequence[st.Entry]) -> Iterator[tuple[int, st.Entry]]:
    """Entries in tree order: a first child keeps the indentation, later ones are indented."""
    children: dict[str | None, list[st.Entry]] = defaultdict(list)
    for entry in entries:
        children[entry.parent].append(entry)
    stack = [(number, root) for number, root in reversed(list(enumerate(children[None])))]
    while stack:
        depth, entry = stack.pop()
        yield depth, entry
        first, others = children[entry.id][:1], children[entry.id][1:]
        stack += [(depth, child) for child in first]
        stack += [(depth + 1, child) for child in reversed(others)]


def _gist(entry: st.Entry) -> str:
    match entry.payload:
        case st.TurnMarker(status=status):
            return f"turn {status.replace('_', ' ')}"
        case st.RunFailure(error=error):
            return f"failure: {error}"
        case _ if entry.message is not None:
            return f"{entry.message.role}: " + " ".join(_part(part) for part in entry.message.parts)
        case _:
            return entry.type


def _part(part: st.Part) -> str:
    match part:
        case st.TextPart() | st.ReasoningPart():
            return part.text
        case st.ToolCallPart(name=name, arguments=arguments):
            return f"→ {name} {arguments}"
        case st.ToolResultPart(call_id=call_id, parts=parts, is_error=is_error):
            return f"← {call_id}{' error' if is_error else ''}: " + " ".join(_part(inner) for inner in parts)
        case _:
            return f"[{type(part).__name__}]"


def _style(entry: st.Entry) -> str:
    if isinstance(entry.payload, st.RunFailure):
        return "red"
    return _COLOURS[entry.message.role] if entry.message is not None else "blue"


_POLICY = st.CompactionPolicy(window_tokens=8_000, keep_recent_tokens=300, keep_user_tokens=200, summary_tokens=300)
_ROUNDS = 24


def show_compaction(console: Console, journal: st.Journal) -> None:
    """Fill the context window, compact it offline, print what that saved, and revert it."""
    thread = journal.create_thread(title="A long conversation")
    journal.append(thread.id, st.system("You are a careful engineer."))
    journal.append(thread.id, st.user("Port the parser in src/parser.py to the new grammar, file by file."))
    for number in range(_ROUNDS):
        journal.append_many(thread.id, _round(number))
    result = journal.compact(thread.id, policy=_POLICY)
    _figures(console, result)
    show_context(console, journal.context(thread.id))
    journal.uncompact(thread.id)
    whole = journal.context(thread.id)
    console.print(Text(f"  uncompact() restores all {len(whole.messages)} messages", style="dim"))


def _round(number: int) -> list[st.Payload]:
    path = f"src/rule{number}.py"
    return [
        st.assistant("I read the next rule.", calls=[st.call(f"read{number}", "read_file", f'{{"path": "{path}"}}')]),
        st.tool_result(f"read{number}", f"def rule{number}(tokens): ...; " * 30, name="read_file"),
        st.assistant(f"We decided to keep rule {number} as it is. Still to do: its tests."),
    ]


def _figures(console: Console, result: st.CompactionResult) -> None:
    share = 100 * result.tokens_saved // max(1, result.tokens_before)
    lines = (
        f"messages   {result.removed_messages} summarised, {result.kept_messages} kept verbatim",
        f"tokens     {result.tokens_before} before, {result.tokens_after} after: {result.tokens_saved} saved ({share} %)",
        f"files      {len(result.files.read)} read so far, listed in the summary",
    )
    for line in lines:
        console.print(Text(f"  {line}", style="green"))


def play(*, has_colour: bool) -> None:
    """Run the demo and delete its files afterwards."""
    console = Console(color_system="auto" if has_colour else None, highlight=False, soft_wrap=True)
    with tempfile.TemporaryDirectory(prefix="sessiontree-demo-") as folder:
        store = str(Path(folder) / "journal.db")
        _crash(console, store)
        with st.open(store) as journal:
            _recover(console, journal)
            _branch(console, journal)
            _say(console, "A conversation outgrows the context window; compact() replaces its older part with notes.")
            show_compaction(console, journal)
            findings = journal.check()
        _say(console, f"check() finds {len(findings)} problems in the store.")


def _crash(console: Console, store: str) -> None:
    _say(console, "An agent runs in its own process and is killed with SIGKILL in the middle of a turn.")
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


def _recover(console: Console, journal: st.Journal) -> None:
    _say(console, "The store is opened again: every acknowledged entry is still there.")
    show_tree(console, journal, THREAD)
    resumption = journal.resume(THREAD, owner=OWNER)
    _say(
        console,
        f"resume() marks {len(resumption.interrupted)} turn as interrupted; retry() goes back to its save point.",
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
    _say(console, "A fork before the question shares everything up to that point, without copying it.")

    journal.rewind(THREAD, question.id)
    _say(console, "A rewind to the question: nothing is deleted, the other entries stay in the tree (hollow dots).")
    show_tree(console, journal, THREAD)
    journal.undo(THREAD)
    _say(console, "undo() returns to the previous leaf. The tree of the thread:")
    show_tree(console, journal, THREAD)

    _say(console, "What the model sees in the thread:")
    show_context(console, journal.context(THREAD))
    _say(console, "What the model sees in the fork:")
    show_context(console, journal.context(fork.id))
    deleted = journal.delete_thread(fork.id)
    _say(console, f"Deleting the fork removes {deleted.entries_removed} entries; those it shares with the thread stay.")


def _say(console: Console, text: str) -> None:
    console.print(f"\n[bold]{text}[/bold]")


if __name__ == "__main__":
    work(sys.argv[1])  # the agent, in its own process
