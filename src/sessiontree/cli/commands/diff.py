"""The command diff."""

from __future__ import annotations

from itertools import takewhile
from pathlib import Path

import click

from sessiontree.cli.addresses import Address, entry_or_pick, resolve, thread_or_pick
from sessiontree.cli.context import CliContext
from sessiontree.cli.declare import FilePath, argument, command
from sessiontree.cli.exit_codes import UsageError
from sessiontree.cli.screen.comparison import Side, comparison_lines
from sessiontree.cli.screen.lines import DIM, FAILURE, GOOD, TOOL, Line
from sessiontree.cli.screen.rows import ThreadView, entry_line
from sessiontree.cli.summaries import title
from sessiontree.cli.views import view_of
from sessiontree.model import Entry, Thread
from sessiontree.render.turns import is_bookkeeping

__all__ = ["diff"]


@command(
    "diff",
    examples=[
        "sessiontree diff 3a19 77b1            a thread and its fork",
        "sessiontree diff 3a19 3a19@{-1}       before and after the last move",
        "sessiontree diff 3a19:good @ --full",
        "sessiontree diff 3a19~4 3a19 --files .",
    ],
)
@argument("left", "A branch: a thread, or the entry where it ends.", required=False)
@argument("right", "The other branch.", required=False)
@click.option("--full", is_flag=True, help="Show whole messages, not a few lines each.")
@click.option(
    "--files",
    type=FilePath(),
    metavar="FOLDER",
    help="Compare files instead: the checkpoints of this folder at two entries of a thread.",
)
def diff(cli: CliContext, *, left: str | None, right: str | None, full: bool, files: Path | None) -> None:
    """Compare two branches: where they part, then what each of them did. With --files, compare their files."""
    first = resolve(cli, left if left is not None else thread_or_pick(cli, None, "diff").id)
    sides = [first, resolve(cli, right) if right is not None else _other_side(cli, first)]
    if files is not None:
        _diff_files(cli, sides[0], sides[1], files)
        return
    paths = [_path(cli, side) for side in sides]
    common = sum(1 for _ in takewhile(lambda pair: pair[0].id == pair[1].id, zip(*paths, strict=False)))
    only_left, only_right = paths[0][common:], paths[1][common:]
    if cli.out.is_json:
        cli.out.json(common=[entry.id for entry in paths[0][:common]], left=only_left, right=only_right)
        return
    views = [view_of(cli, side.thread) for side in sides]
    cli.out.draw(_head(cli, sides, views[0], paths[0][common - 1] if common else None))
    both = [
        Side(view=view, entries=tuple(only), name=_name(view, only), sign=sign, active=_active(cli, view.thread))
        for view, only, sign in ((views[0], only_left, "−"), (views[1], only_right, "+"))
    ]
    cli.out.draw(comparison_lines(both[0], both[1], cli.out.width, is_full=full))
    _offer(cli, sides)


def _other_side(cli: CliContext, first: Address) -> Address:
    """The entry that the user picks to compare with."""
    if not cli.can_ask or cli.out.is_dumb:
        name = cli.typed(first.thread.id)
        advice = [Line(("  before the last move:  ", DIM), f"sessiontree diff {name} {name}@{{-1}}")]
        raise UsageError("Compare it with what? Nobody is there to choose.", advice)
    return entry_or_pick(cli, first.thread.id, "diff")


def _head(cli: CliContext, sides: list[Address], view: ThreadView, last: Entry | None) -> list[Line]:
    width = cli.out.width
    names = [cli.threads[side.thread.id] for side in sides]
    is_one = sides[0].thread.id == sides[1].thread.id
    what = f"Two branches of {names[0]}" if is_one else f"{names[0]} and {names[1]}"
    head = Line(what, (f"  {title(cli, sides[0].thread)}", DIM)).cut(width)
    if last is None:
        return [head, Line(("they have nothing in common", DIM)), Line()]
    parted = Line(("they part after ", DIM), (view.ids[last.id], "33"), "  ").extend(
        entry_line(view, last, is_active=True)
    )
    return [head, parted.cut(width), Line()]


def _name(view: ThreadView, entries: list[Entry]) -> Line:
    """The label of a branch, if one of its entries has one, and the id of its last entry."""
    labels = [label for entry in entries for label in view.labels.get(entry.id, ())]
    line = Line((f"[{labels[0][:30]}] ", "35")) if labels else Line()
    return line.add(view.ids[entries[-1].id] if entries else "nothing more", "33" if entries else DIM)


def _offer(cli: CliContext, sides: list[Address]) -> None:
    """Name the command that switches to the side that is not active."""
    for side in sides:
        if side.entry_id is not None and side.entry_id != side.thread.leaf:
            address = cli.typed(side.thread.id, side.entry_id)
            if cli.out.is_terminal:
                cli.out.draw([Line()])
            cli.out.hint(("take the other one:", f"sessiontree rewind {address}"))
            return


def _diff_files(cli: CliContext, left: Address, right: Address, folder: Path) -> None:
    if left.entry_id is None or right.entry_id is None:
        raise UsageError("There are no files before the first entry; name two entries.")
    found = cli.journal.workspace.diff(
        left.thread.id, left.entry_id, folder, other=right.entry_id, other_thread=right.thread.id
    )
    if cli.out.is_json:
        cli.out.json(files=found.files)
        return
    styles = {"+": GOOD, "-": FAILURE, "@": TOOL}
    width = cli.out.width if cli.out.is_terminal else 10_000
    cli.out.draw(Line((line, styles.get(line[:1], ""))).cut(width) for line in found.text.splitlines())


def _active(cli: CliContext, thread: Thread) -> frozenset[str]:
    return frozenset(entry.id for entry in cli.journal.path(thread.id))


def _path(cli: CliContext, side: Address) -> list[Entry]:
    return [entry for entry in cli.journal.path(side.thread.id, side.entry_id) if not is_bookkeeping(entry)]
