"""new, append, fork, label."""

from __future__ import annotations

from typing import Annotated

import typer

from sessiontree.cli.addresses import place_of, short, thread_for
from sessiontree.cli.commands.append import DryRun, _refuse_taken, _tell
from sessiontree.cli.context import CliContext
from sessiontree.cli.exit_codes import UsageError
from sessiontree.model import Thread
from sessiontree.model.sanitize import one_line
from sessiontree.model.thread import ThreadFields

__all__ = ["EXAMPLES", "fork", "label"]


EXAMPLES = {
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


def fork(
    ctx: typer.Context,
    address: Annotated[str | None, typer.Argument(help="Where to fork; without an entry: at the leaf.")] = None,
    before: Annotated[bool, typer.Option("--before", help="Share everything before the entry, not the entry.")] = False,
    title: Annotated[str, typer.Option(help="What the new thread is about.")] = "",
    id: Annotated[str | None, typer.Option("--id", help="An id of your own.")] = None,
    dry_run: DryRun = False,
) -> None:
    """Make a new thread that shares everything up to an entry, and print its id. Costs the same at any length."""
    world: CliContext = ctx.obj
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
    world: CliContext = ctx.obj
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


def _list_labels(world: CliContext, thread: Thread) -> None:
    labels = world.journal.labels(thread.id)
    if world.out.is_json:
        world.out.json(labels=labels)
        return
    for name, entry_id in sorted(labels.items()):
        world.out.line(f"{one_line(name, 200)}\t{one_line(entry_id, 200)}")
