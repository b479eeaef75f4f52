"""The commands rewind, undo and redo."""

from __future__ import annotations

from pathlib import Path

import click

from sessiontree.cli.addresses import entry_or_pick, thread_or_pick
from sessiontree.cli.context import CliContext
from sessiontree.cli.declare import FilePath, argument, choice_option, command, dry_run_option, thread_argument
from sessiontree.cli.moves import head_line, waiting_line
from sessiontree.model import NextMove, Thread
from sessiontree.render.entries import role_of, words_of
from sessiontree.render.turns import is_bookkeeping
from sessiontree.workspace import Conflicts

__all__ = ["redo", "rewind", "undo"]


@command(
    "rewind",
    examples=[
        "sessiontree rewind @~2            two entries back",
        "sessiontree rewind 3a19:good",
        "sessiontree rewind 3a19:good --files . --dry-run",
        "sessiontree undo @                come back",
    ],
)
@argument("address", "The entry that becomes the head.", required=False)
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
def rewind(cli: CliContext, *, address: str | None, files: Path | None, conflicts: Conflicts, dry_run: bool) -> None:
    """Move the head back to an entry: the next message follows it. Nothing is deleted, and `undo` reverses it."""
    found = entry_or_pick(cli, address, "rewind")
    if files is not None and found.entry_id is not None:
        _rewind_files(cli, found.thread, found.entry_id, files, conflicts, is_dry_run=dry_run)
        return
    if dry_run:
        cli.out.plan(
            f"would move the head of {cli.threads[found.thread.id]} to {_place(cli, found.thread, found.entry_id)}"
        )
        return
    if found.entry_id is None:
        moved = cli.journal.reset(found.thread.id)
    else:
        moved = cli.journal.rewind(found.thread.id, found.entry_id)
    _print(cli, moved, found.thread, f"head moved to {_place(cli, moved, moved.leaf)}", "undo")


@command("undo", examples=["sessiontree undo @", "sessiontree undo 3a19 --dry-run"])
@thread_argument
@dry_run_option
def undo(cli: CliContext, *, thread: str | None, dry_run: bool) -> None:
    """Undo the last move of the head: a rewind, a reset or a retry. Appended entries are never undone."""
    before = thread_or_pick(cli, thread, "undo")
    if dry_run:
        _plan(cli, before, cli.journal.undo(before.id, dry_run=True))
        return
    move = cli.journal.undo(before.id, dry_run=True).move
    words = f"took back: {move.reason} to {_place(cli, before, move.to_entry)}"
    _print(cli, cli.journal.undo(before.id), before, words, "redo")


@command("redo", examples=["sessiontree redo @"])
@thread_argument
@dry_run_option
def redo(cli: CliContext, *, thread: str | None, dry_run: bool) -> None:
    """Redo the last move that was undone."""
    before = thread_or_pick(cli, thread, "redo")
    if dry_run:
        _plan(cli, before, cli.journal.redo(before.id, dry_run=True))
        return
    _print(cli, cli.journal.redo(before.id), before, "moved the head again", "undo")


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
        moved = cli.journal.rewind(thread.id, entry_id, files=folder, conflicts=conflicts)
        _print(cli, moved, thread, f"head and files moved to {_place(cli, moved, moved.leaf)}", "undo")


def _plan(cli: CliContext, thread: Thread, found: NextMove) -> None:
    """Print where an undo or a redo would move the leaf, and which folder it would restore."""
    text = f"would reverse the {found.move.reason} of {cli.threads[thread.id]}: "
    if found.move.from_entry is None:
        cli.out.plan(f"{text}its head would be before the first entry")
        return
    entry = cli.journal.entry(thread.id, found.move.from_entry)
    files = f", and the files of {found.checkpoint.root} would be restored" if found.checkpoint else ""
    place = _place(cli, thread, entry.id)
    cli.out.plan(f"{text}its head would be {place} ({role_of(entry)}: {words_of(entry, length=50)}){files}")


def _place(cli: CliContext, thread: Thread, entry_id: str | None) -> str:
    """An entry by its short id and its labels; one that is not shown, such as a label, by the one that is shown before it."""
    path = (
        [] if entry_id is None else [one.id for one in cli.journal.path(thread.id, entry_id) if not is_bookkeeping(one)]
    )
    if not path:
        return "the start"
    names = [f" [{name}]" for name, target in cli.journal.labels(thread.id).items() if target == path[-1]]
    return cli.entries(thread.id)[path[-1]] + "".join(names)


def _print(cli: CliContext, after: Thread, before: Thread, words: str, back: str) -> None:
    """Say what happened, where the head is now, what waits elsewhere, and the way back."""
    if cli.out.is_json:
        cli.out.json(thread=after)
        return
    cli.out.done(words, below=[*head_line(cli, after), *waiting_line(cli, before, after)])
    cli.out.hint(("  back again:", f"sessiontree {back} {cli.typed(after.id)}"))
