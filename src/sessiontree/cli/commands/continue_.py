"""The command continue."""

from __future__ import annotations

import os
import shlex
import shutil
from pathlib import Path

import click

from sessiontree.cli.addresses import address_or_pick
from sessiontree.cli.context import CliContext
from sessiontree.cli.declare import command, dry_run_option, thread_argument
from sessiontree.cli.exit_codes import UsageError
from sessiontree.render.threads import home_path

__all__ = ["continue_"]


_TOOLS = ("claude-code", "codex", "gemini", "opencode", "pi", "goose")


@command(
    "continue",
    examples=[
        "sessiontree continue @ --in codex",
        "sessiontree continue 3a19 --in claude-code --run",
    ],
)
@thread_argument
@click.option(
    "tool", "--in", type=click.Choice(_TOOLS), required=True, metavar="TOOL", help=f"One of {', '.join(_TOOLS)}."
)
@click.option("is_run", "--run", is_flag=True, help="Start the tool; otherwise its command is printed.")
@dry_run_option
def continue_(cli: CliContext, *, thread: str | None, tool: str, is_run: bool, dry_run: bool) -> None:
    """Go on with a conversation in another agent: write it as a new session of that tool, and print how to resume it.

    What the model sees of the thread is written, with new ids and never over an existing file; it is read back and
    compared before the command is printed. THREAD:ENTRY goes on from an earlier entry or another branch. Reasoning stays
    here: its signatures are only valid where they were made.
    """
    from sessiontree.transfer.native import continue_in, native_session  # noqa: PLC0415  slow to load

    found = address_or_pick(cli, thread, "continue")
    if dry_run:
        session = native_session(cli.journal, found.thread.id, tool, at=found.entry_id)
        cli.out.plan(f"would write {', '.join(session.files)} and run: {shlex.join(session.command)}")
        return
    session = continue_in(
        cli.journal, found.thread.id, tool, at=found.entry_id, environment=os.environ, home=Path.home()
    )
    folder = session.workspace if session.workspace and Path(session.workspace).is_dir() else ""
    line = " && ".join([*([f"cd {shlex.quote(folder)}"] if folder else []), shlex.join(session.command)])
    if cli.out.is_json:
        cli.out.json(
            tool=tool,
            session=session.id,
            files=list(session.files),
            command=session.command,
            folder=folder,
            losses=session.losses,
        )
    else:
        if session.losses:
            cli.out.warn(f"{tool} does not get {', '.join(session.losses)}; the thread here still has it")
        home = str(Path.home())
        for name in session.files:
            cli.out.done(f"wrote {home_path(name, home)}")
        cli.out.line(line)
    if is_run:
        _run(cli, session.command, folder)


def _run(cli: CliContext, words: tuple[str, ...], folder: str) -> None:
    """Become the other program."""
    if shutil.which(words[0]) is None:
        raise UsageError(f"{words[0]} is not installed here; the session is written, and the command above resumes it")
    cli.close()
    if folder:
        os.chdir(folder)
    os.execvp(words[0], words)  # noqa: S606  no shell is needed
