"""diff."""

from __future__ import annotations

from itertools import takewhile
from pathlib import Path
from typing import Annotated

import typer

from sessiontree.cli.addresses import Address, place_of, short
from sessiontree.cli.context import CliContext
from sessiontree.cli.exit_codes import UsageError
from sessiontree.cli.render.text import gist, is_bookkeeping, role_of
from sessiontree.model import Entry
from sessiontree.model.sanitize import for_terminal

__all__ = ["EXAMPLES", "diff"]


EXAMPLES = {
    "diff": """Examples:

\b
  sessiontree diff 3fa9c0de 77b1e2aa            a thread and its fork
  sessiontree diff 3fa9c0de 3fa9c0de@{-1}       before and after the last move
  sessiontree diff 3fa9c0de:good @ --full
  sessiontree diff 3fa9c0de~4 3fa9c0de --files ."""
}


def diff(
    ctx: typer.Context,
    left: Annotated[str, typer.Argument(help="A branch: a thread, or the entry where it ends.")],
    right: Annotated[str, typer.Argument(help="The other branch.")],
    full: Annotated[bool, typer.Option("--full", help="Messages in full, not a line each.")] = False,
    files: Annotated[
        Path | None, typer.Option(help="The files instead: the checkpoints of this folder at two entries of a thread.")
    ] = None,
) -> None:
    """Compare two branches: what they share, then what only the one and only the other has; or their files."""
    world: CliContext = ctx.obj
    sides = [place_of(world.journal, address) for address in (left, right)]
    if files is not None:
        _diff_files(world, sides[0], sides[1], files)
        return
    paths = [_path(world, place) for place in sides]
    common = sum(1 for _ in takewhile(lambda pair: pair[0].id == pair[1].id, zip(*paths, strict=False)))
    only_left, only_right = paths[0][common:], paths[1][common:]
    if world.out.is_json:
        world.out.json(common=[entry.id for entry in paths[0][:common]], left=only_left, right=only_right)
        return
    fork_point = f", up to {short(paths[0][common - 1].id)}" if common else ""
    world.out.line(world.out.styled(f"  {common} entries in common{fork_point}", "dim"))
    for sign, style, place, entries in (("-", "red", sides[0], only_left), ("+", "green", sides[1], only_right)):
        tokens = sum(len(gist(entry, 100_000)) for entry in entries) // 3
        name = f"{short(place.thread.id)}:{short(place.entry_id or 'start')}"
        world.out.line(world.out.styled(f"{sign * 3} {name}  {len(entries)} entries, about {tokens} tokens", "bold"))
        for entry in entries:
            _print(world, entry, sign, style, is_full=full)


def _diff_files(world: CliContext, left: Address, right: Address, folder: Path) -> None:
    if left.entry_id is None or right.entry_id is None:
        raise UsageError("there are no files before the first entry; name two entries")
    found = world.journal.workspace.diff(left.thread.id, left.entry_id, folder, other=right.entry_id)
    if world.out.is_json:
        world.out.json(files=found.files)
        return
    styles = {"+": "green", "-": "red", "@": "cyan"}
    for line in for_terminal(found.text).splitlines():
        world.out.line(world.out.styled(line, styles.get(line[:1], "")))


def _path(world: CliContext, place: Address) -> list[Entry]:
    return [entry for entry in world.journal.path(place.thread.id, place.entry_id) if not is_bookkeeping(entry)]


def _print(world: CliContext, entry: Entry, sign: str, style: str, *, is_full: bool) -> None:
    lead = f"{sign} {short(entry.id)} {role_of(entry):<9} "
    if not is_full:
        room = world.out.width if world.out.is_terminal else 200
        world.out.line(world.out.styled(lead + gist(entry, max(16, room - len(lead))), style))
        return
    text = entry.message.text if entry.message is not None and entry.message.text else gist(entry, 100_000)
    world.out.line(world.out.styled(lead, style))
    for line in for_terminal(text).splitlines():
        world.out.line(world.out.styled(f"{sign}   {line}", style))
