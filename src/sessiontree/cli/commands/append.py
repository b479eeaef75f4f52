"""new, append, fork, label."""

from __future__ import annotations

import sys
from typing import Annotated

import typer
from msgspec import UNSET

from sessiontree.cli.addresses import place_of, short, thread_for
from sessiontree.cli.context import CliContext
from sessiontree.cli.exit_codes import UsageError
from sessiontree.errors import StaleLeafError, ThreadExistsError, ThreadNotFoundError
from sessiontree.journal.operations.entries import checked_id
from sessiontree.model import Payload, Thread
from sessiontree.model.builders import assistant, system, tool_result, user
from sessiontree.model.sanitize import one_line
from sessiontree.model.thread import ThreadFields

__all__ = ["EXAMPLES", "append", "new"]


EXAMPLES = {
    "new": """Examples:

\b
  sessiontree new "Plan the release"
  ID=$(sessiontree new --quiet "Nightly run" --tag ci)""",
    "append": """Examples:

\b
  sessiontree append @ "and now in French"
  git diff | sessiontree append 3fa9c0de --role user
  sessiontree append 3fa9c0de "It is done." --role assistant""",
}

DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what would be done, and do nothing.")]


def new(
    ctx: typer.Context,
    title: Annotated[str, typer.Argument(help="What it is about.")] = "",
    id: Annotated[str | None, typer.Option("--id", help="An id of your own.")] = None,
    tag: Annotated[list[str] | None, typer.Option(help="A tag; may be repeated.")] = None,
    workspace: Annotated[str, typer.Option(help="The workspace that it belongs to.")] = "",
    model: Annotated[str, typer.Option(help="The model that it is held with.")] = "",
    dry_run: DryRun = False,
) -> None:
    """Start a thread and print its id."""
    world: CliContext = ctx.obj
    if dry_run:
        _refuse_taken(world, id)
        world.out.plan(f"would start a thread {title!r}")
        return
    fields: ThreadFields = {"title": title, "tags": tuple(tag or ()), "workspace": workspace, "model": model}
    thread = world.journal.create_thread(id, **fields)
    _tell(world, thread)


def append(
    ctx: typer.Context,
    thread: Annotated[str | None, typer.Argument(help="The thread.", metavar="THREAD")] = None,
    text: Annotated[str | None, typer.Argument(help="The message; read from stdin when left out or -.")] = None,
    role: Annotated[str, typer.Option(help="user, assistant, system or tool.")] = "user",
    call: Annotated[str, typer.Option(help="For --role tool: the id of the call that is answered.")] = "",
    expect_leaf: Annotated[
        str | None, typer.Option(help="Append only if this entry is the leaf; exit code 4 if not.")
    ] = None,
    dry_run: DryRun = False,
) -> None:
    """Add a message to a thread and print the id of the new entry."""
    world: CliContext = ctx.obj
    found = thread_for(world, thread)
    said = _from_stdin() if text is None or text == "-" else text
    payload = _payload(role, said, call)
    leaf = UNSET if expect_leaf is None else _expected(world, found, expect_leaf)
    if dry_run:
        if leaf not in (UNSET, found.leaf):
            raise StaleLeafError(found.id, str(leaf), found.leaf)
        world.out.plan(f"would append to {short(found.id)} as {role}: {one_line(said, 60)}")
        return
    entry = world.journal.append(found.id, payload, expect_leaf=leaf)
    if world.out.is_json:
        world.out.json(entry=entry)
    else:
        world.out.line(entry.id)


def _expected(world: CliContext, thread: Thread, leaf: str) -> str | None:
    if not leaf:
        raise UsageError("--expect-leaf is empty; name the entry that the message is an answer to")
    return place_of(world.journal, f"{thread.id}:{leaf}").entry_id


def _refuse_taken(world: CliContext, thread_id: str | None) -> None:
    """What a thread of that id would be told when it is really made."""
    if thread_id is None:
        return
    try:
        world.journal.thread(checked_id(thread_id, "thread id"))
    except ThreadNotFoundError:
        return
    raise ThreadExistsError(thread_id)


def _from_stdin() -> str:
    try:
        return sys.stdin.read().removesuffix("\n")
    except UnicodeDecodeError as error:
        raise UsageError(f"stdin is not UTF-8: {error}; a message is text") from error


def _payload(role: str, text: str, call: str) -> Payload:
    if not text and role != "tool":
        raise UsageError("the message is empty; nothing was appended")
    match role:
        case "user":
            return user(text)
        case "assistant":
            return assistant(text)
        case "system":
            return system(text)
        case "tool" if call:
            return tool_result(call, text)
        case "tool":
            raise UsageError("a tool's answer needs --call, the id of the call that it answers")
        case _:
            raise UsageError(f"there is no role {role!r}; use user, assistant, system or tool")


def _tell(world: CliContext, thread: Thread) -> None:
    if world.out.is_json:
        world.out.json(thread=thread)
    else:
        world.out.line(thread.id)
