"""new, append, fork, label."""

from __future__ import annotations

import sys
from typing import Annotated

import typer
from msgspec import UNSET

from sessiontree.cli.addresses import place_of, short
from sessiontree.cli.exits import UsageError
from sessiontree.cli.picking import thread_for
from sessiontree.cli.world import World
from sessiontree.errors import StaleLeafError, ThreadExistsError, ThreadNotFoundError
from sessiontree.harmless import one_line
from sessiontree.messages import assistant, system, tool_result, user
from sessiontree.model import Payload, Thread
from sessiontree.model.thread import ThreadFields
from sessiontree.operations.inputs import checked_id

__all__ = ["EXAMPLES", "append", "fork", "label", "new"]

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
    "fork": """Examples:

\b
  sessiontree fork @                   share everything up to the leaf
  sessiontree fork 3fa9c0de~2 --title "another way"
  sessiontree fork 3fa9c0de:b21c --before""",
    "label": """Examples:

\b
  sessiontree label @ good-start
  sessiontree label 3fa9c0de:b21c good-start
  sessiontree label 3fa9c0de:good-start --remove""",
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
    world: World = ctx.obj
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
    world: World = ctx.obj
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


def fork(
    ctx: typer.Context,
    address: Annotated[str | None, typer.Argument(help="Where to fork; without an entry: at the leaf.")] = None,
    before: Annotated[bool, typer.Option("--before", help="Share everything before the entry, not the entry.")] = False,
    title: Annotated[str, typer.Option(help="What the new thread is about.")] = "",
    id: Annotated[str | None, typer.Option("--id", help="An id of your own.")] = None,
    dry_run: DryRun = False,
) -> None:
    """Make a new thread that shares everything up to an entry, and print its id. Costs the same at any length."""
    world: World = ctx.obj
    place = place_of(world.journal, address or thread_for(world, None).id)
    if dry_run:
        _refuse_taken(world, id)
        world.out.plan(
            f"would fork {short(place.thread.id)} {'before' if before else 'at'} {short(place.entry_id or 'the start')}"
        )
        return
    fields: ThreadFields = {"title": title or place.thread.title}
    if before and place.entry_id is not None:
        made = world.journal.fork(place.thread.id, before=place.entry_id, new_id=id, **fields)
    else:
        made = world.journal.fork(place.thread.id, at=place.entry_id, new_id=id, **fields)
    _tell(world, made)


def label(
    ctx: typer.Context,
    address: Annotated[str, typer.Argument(help="The entry.")],
    name: Annotated[str, typer.Argument(help="The name; without one the labels of the thread are listed.")] = "",
    remove: Annotated[bool, typer.Option("--remove", "-d", help="Take the entry's label away.")] = False,
    dry_run: DryRun = False,
) -> None:
    """Give an entry a name that works in addresses, take it away, or list the names of a thread."""
    world: World = ctx.obj
    place = place_of(world.journal, address)
    if not name and not remove:
        _list_labels(world, place.thread)
        return
    place = place_of(world.journal, f"{place.thread.id}:{place.entry_id}~0") if place.entry_id else place
    if place.entry_id is None:
        raise UsageError(f"thread {short(place.thread.id)} has no entry to label yet")
    if dry_run:
        world.out.plan(f"would {'unlabel' if remove else 'label'} {short(place.entry_id)} {name}")
        return
    entry = world.journal.label(place.thread.id, place.entry_id, "" if remove else name)
    if world.out.is_json:
        world.out.json(entry=entry)
    else:
        world.out.remark(f"{short(place.entry_id)} is {'no longer labelled' if remove else name}")


def _expected(world: World, thread: Thread, leaf: str) -> str | None:
    if not leaf:
        raise UsageError("--expect-leaf is empty; name the entry that the message is an answer to")
    return place_of(world.journal, f"{thread.id}:{leaf}").entry_id


def _refuse_taken(world: World, thread_id: str | None) -> None:
    """What a thread of that id would be told when it is really made."""
    if thread_id is None:
        return
    try:
        world.journal.thread(checked_id(thread_id, "thread id"))
    except ThreadNotFoundError:
        return
    raise ThreadExistsError(thread_id)


def _list_labels(world: World, thread: Thread) -> None:
    labels = world.journal.labels(thread.id)
    if world.out.is_json:
        world.out.json(labels=labels)
        return
    for name, entry_id in sorted(labels.items()):
        world.out.line(f"{one_line(name, 200)}\t{one_line(entry_id, 200)}")


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


def _tell(world: World, thread: Thread) -> None:
    if world.out.is_json:
        world.out.json(thread=thread)
    else:
        world.out.line(thread.id)
