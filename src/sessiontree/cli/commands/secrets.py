"""The command secrets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from sessiontree.cli.addresses import thread_or_pick
from sessiontree.cli.context import CliContext
from sessiontree.cli.declare import argument, command, dry_run_option, yes_option
from sessiontree.cli.exit_codes import UsageError
from sessiontree.cli.output import LISTS
from sessiontree.cli.screen.lines import ATTENTION, DIM, ID, Line
from sessiontree.render.cells import cell_width, pad
from sessiontree.render.figures import plural

if TYPE_CHECKING:
    from sessiontree.transfer.secrets import StoredSecret

__all__ = ["secrets"]


@command(
    "secrets",
    examples=[
        "sessiontree secrets scan",
        "sessiontree secrets scan 3a19 --json",
        "sessiontree secrets scan 3a19 --erase",
        "sessiontree export 3a19 --redact -o talk.html    hand out a conversation without its secrets",
    ],
)
@argument("action", "What to do: scan.", type=click.Choice(["scan"]))
@argument("thread", "The thread; all threads if omitted.", required=False)
@click.option(
    "is_erasing", "--erase", is_flag=True, help="Erase the contents of the entries that have secrets, for good."
)
@yes_option
@dry_run_option
def secrets(cli: CliContext, *, action: str, thread: str | None, is_erasing: bool, yes: bool, dry_run: bool) -> None:
    """Find keys, tokens and passwords in what is stored. Only the first characters of a secret are shown."""
    from sessiontree.transfer.secrets import scan  # noqa: PLC0415  slow to load

    assert action == "scan"
    chosen = [thread_or_pick(cli, thread, "secrets").id] if thread else None
    names = chosen or [one.id for one in cli.journal.iter_threads(is_archived=None, limit=1000)]
    with cli.progress("scanning threads") as progress:
        found: list[StoredSecret] = []
        for number, name in enumerate(names):
            found += scan(cli.journal, name)
            progress(number + 1, len(names))
    if cli.out.is_json:
        cli.out.json(secrets=found)
    else:
        _print(cli, found, len(names))
    if found and not (is_erasing or cli.out.is_json):
        place = cli.threads[found[0].thread_id]
        cli.out.hint(("erase what holds them:", f"sessiontree secrets scan {place} --erase"))
    if is_erasing and found:
        entries = {(one.thread_id, one.entry_id): None for one in found}
        _erase(cli, list(entries), yes=yes, dry_run=dry_run)


def _print(cli: CliContext, found: Sequence[StoredSecret], threads: int) -> None:
    """List the secrets; a terminal gets the address of each entry, so that it can be typed."""
    if not cli.out.is_terminal:
        for one in found:
            cli.out.row((one.rule, one.thread_id, one.entry_id, one.shown))
    else:
        ids = {name: cli.entries(name) for name in {one.thread_id for one in found}}
        places = [cli.address(one.thread_id, ids[one.thread_id][one.entry_id]) for one in found]
        widest = max(map(cell_width, places), default=0)
        for place, one in zip(places, found, strict=True):
            line = Line(("! ", ATTENTION), (pad(place, widest), ID), f"  {one.rule}", (f"  {one.shown}", DIM))
            cli.out.draw([line.cut(min(cli.out.width, LISTS))])
    cli.out.info(f"{plural(len(found), 'secret')} in {plural(threads, 'thread')}")


def _erase(cli: CliContext, entries: list[tuple[str, str]], *, yes: bool, dry_run: bool) -> None:
    what = plural(len(entries), "entry", "entries")
    if dry_run:
        cli.out.plan(f"would erase the contents of {what}")
        return
    if not yes:
        if not cli.can_ask:
            raise UsageError(f"Add --yes to erase the contents of {what} for good.")
        if not cli.confirms(f"Erase {what} for good?", default=False):
            cli.declined("Nothing was erased.")
    by_thread: dict[str, list[str]] = {}
    for thread_id, entry_id in entries:
        by_thread.setdefault(thread_id, []).append(entry_id)
    for thread_id, entry_ids in by_thread.items():
        cli.journal.erase(thread_id, entry_ids)
    cli.out.done(f"erased the contents of {what}")
