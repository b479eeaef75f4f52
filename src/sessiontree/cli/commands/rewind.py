"""The commands rewind, undo and redo."""

from __future__ import annotations

from pathlib import Path

import click

from sessiontree.cli.addresses import resolve, short, thread_or_pick
from sessiontree.cli.context import CliContext
from sessiontree.cli.declare import FilePath, argument, choice_option, command, dry_run_option, thread_argument
from sessiontree.cli.render.text import gist, role_of
from sessiontree.model import NextMove, Thread
from sessiontree.workspace import Conflicts

__all__ = ["redo", "rewind", "undo"]


@command(
    "rewind",
    examples=[
        "sessiontree rewind @~2            two entries back",
        "sessiontree rewind 3fa9c0de:good",
        "sessiontree rewind 3fa9c0de:good --files . --dry-run",
        "sessiontree undo @                come back",
    ],
)
@argument("address", "The entry that becomes the leaf.")
@click.option(
    "--files",
    type=FilePath(),
    metavar="FOLDER",
    help="Also restore this folder from the checkpoint of the entry; both happen, or neither.",
)
@choice_option(
    "--conflicts",
    ["stop", "force", "keep_mine"],
    about="With --files, about files changed since: stop, force or keep_mine.",
)
@dry_run_option
def rewind(cli: CliContext, *, address: str, files: Path | None, conflicts: Conflicts, dry_run: bool) -> None:
    """Move the leaf back to an entry: the next message follows it. Nothing is deleted, and `undo` reverses it."""
    found = resolve(cli.journal, address)
    if files is not None and found.entry_id is not None:
        _rewind_files(cli, found.thread, found.entry_id, files, conflicts, is_dry_run=dry_run)
        return
    if dry_run:
        cli.out.plan(f"would move the leaf of {short(found.thread.id)} to {short(found.entry_id or 'the start')}")
        return
    if found.entry_id is None:
        moved = cli.journal.reset(found.thread.id)
    else:
        moved = cli.journal.rewind(found.thread.id, found.entry_id)
    _print(cli, moved, found.thread)


@command("undo", examples=["sessiontree undo @", "sessiontree undo 3fa9c0de --dry-run"])
@thread_argument
@dry_run_option
def undo(cli: CliContext, *, thread: str | None, dry_run: bool) -> None:
    """Undo the last move of the leaf: a rewind, a reset or a retry. Appended entries are never undone."""
    before = thread_or_pick(cli, thread)
    if dry_run:
        _plan(cli, before, cli.journal.undo(before.id, dry_run=True))
        return
    _print(cli, cli.journal.undo(before.id), before)


@command("redo", examples=["sessiontree redo @"])
@thread_argument
@dry_run_option
def redo(cli: CliContext, *, thread: str | None, dry_run: bool) -> None:
    """Redo the last move that was undone."""
    before = thread_or_pick(cli, thread)
    if dry_run:
        _plan(cli, before, cli.journal.redo(before.id, dry_run=True))
        return
    _print(cli, cli.journal.redo(before.id), before)


def _rewind_files(
    cli: CliContext, thread: Thread, entry_id: str, folder: Path, conflicts: Conflicts, *, is_dry_run: bool
) -> None:
    plan = cli.journal.workspace.plan(thread.id, entry_id, folder, conflicts=conflicts)
    if cli.out.is_json and is_dry_run:
        cli.out.json(plan=plan)
        return
    for step in plan.steps:
        cli.out.info(f"{step.kind} {step.path}")
    if not is_dry_run:
        _print(cli, cli.journal.rewind(thread.id, entry_id, files=folder, conflicts=conflicts), thread)


def _plan(cli: CliContext, thread: Thread, found: NextMove) -> None:
    """Print where an undo or a redo would move the leaf, and which folder it would restore."""
    text = f"would reverse the {found.move.reason} of {short(thread.id)}: "
    if found.move.from_entry is None:
        cli.out.plan(f"{text}its leaf would be before the first entry")
        return
    entry = cli.journal.entry(thread.id, found.move.from_entry)
    files = f", and the files of {found.checkpoint.root} would be restored" if found.checkpoint else ""
    cli.out.plan(f"{text}its leaf would be {short(entry.id)} ({role_of(entry)}: {gist(entry, 50)}){files}")


def _print(cli: CliContext, after: Thread, before: Thread) -> None:
    if cli.out.is_json:
        cli.out.json(thread=after)
        return
    if after.leaf is None:
        cli.out.info(f"{short(after.id)} is at its beginning")
        return
    entry = cli.journal.entry(after.id, after.leaf)
    cli.out.info(f"{short(after.id)} is at {short(entry.id)} ({role_of(entry)}: {gist(entry, 50)})")
    if before.leaf:
        cli.out.info(f"the previous leaf is {short(after.id)}:{short(before.leaf)}; undo returns to it")
