"""The command diff."""

from __future__ import annotations

from itertools import takewhile
from pathlib import Path

import click

from sessiontree.cli.addresses import Address, resolve, short
from sessiontree.cli.context import CliContext
from sessiontree.cli.declare import FilePath, argument, command
from sessiontree.cli.exit_codes import UsageError
from sessiontree.cli.render.text import gist, is_bookkeeping, role_of
from sessiontree.model import Entry
from sessiontree.model.sanitize import for_terminal

__all__ = ["diff"]


@command(
    "diff",
    examples=[
        "sessiontree diff 3fa9c0de 77b1e2aa            a thread and its fork",
        "sessiontree diff 3fa9c0de 3fa9c0de@{-1}       before and after the last move",
        "sessiontree diff 3fa9c0de:good @ --full",
        "sessiontree diff 3fa9c0de~4 3fa9c0de --files .",
    ],
)
@argument("left", "A branch: a thread, or the entry where it ends.")
@argument("right", "The other branch.")
@click.option("--full", is_flag=True, help="Show whole messages, not one line each.")
@click.option(
    "--files",
    type=FilePath(),
    metavar="FOLDER",
    help="Compare files instead: the checkpoints of this folder at two entries of a thread.",
)
def diff(cli: CliContext, *, left: str, right: str, full: bool, files: Path | None) -> None:
    """Compare two branches: what they share, then what only one of them has. With --files, compare their files."""
    sides = [resolve(cli.journal, address) for address in (left, right)]
    if files is not None:
        _diff_files(cli, sides[0], sides[1], files)
        return
    paths = [_path(cli, side) for side in sides]
    common = sum(1 for _ in takewhile(lambda pair: pair[0].id == pair[1].id, zip(*paths, strict=False)))
    only_left, only_right = paths[0][common:], paths[1][common:]
    if cli.out.is_json:
        cli.out.json(common=[entry.id for entry in paths[0][:common]], left=only_left, right=only_right)
        return
    fork_point = f", up to {short(paths[0][common - 1].id)}" if common else ""
    cli.out.line(cli.out.styled(f"  {common} entries in common{fork_point}", "dim"))
    for sign, style, side, entries in (("-", "red", sides[0], only_left), ("+", "green", sides[1], only_right)):
        tokens = sum(len(gist(entry, 100_000)) for entry in entries) // 3
        name = f"{short(side.thread.id)}:{short(side.entry_id or 'start')}"
        cli.out.line(cli.out.styled(f"{sign * 3} {name}  {len(entries)} entries, about {tokens} tokens", "bold"))
        for entry in entries:
            _print(cli, entry, sign, style, is_full=full)


def _diff_files(cli: CliContext, left: Address, right: Address, folder: Path) -> None:
    if left.entry_id is None or right.entry_id is None:
        raise UsageError("there are no files before the first entry; name two entries")
    found = cli.journal.workspace.diff(left.thread.id, left.entry_id, folder, other=right.entry_id)
    if cli.out.is_json:
        cli.out.json(files=found.files)
        return
    styles = {"+": "green", "-": "red", "@": "cyan"}
    for line in for_terminal(found.text).splitlines():
        cli.out.line(cli.out.styled(line, styles.get(line[:1], "")))


def _path(cli: CliContext, side: Address) -> list[Entry]:
    return [entry for entry in cli.journal.path(side.thread.id, side.entry_id) if not is_bookkeeping(entry)]


def _print(cli: CliContext, entry: Entry, sign: str, style: str, *, is_full: bool) -> None:
    lead = f"{sign} {short(entry.id)} {role_of(entry):<9} "
    if not is_full:
        width = cli.out.width if cli.out.is_terminal else 200
        cli.out.line(cli.out.styled(lead + gist(entry, max(16, width - len(lead))), style))
        return
    text = entry.message.text if entry.message is not None and entry.message.text else gist(entry, 100_000)
    cli.out.line(cli.out.styled(lead, style))
    for line in for_terminal(text).splitlines():
        cli.out.line(cli.out.styled(f"{sign}   {line}", style))
