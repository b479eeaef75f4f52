"""The commands fork and label."""

from __future__ import annotations

import click

from sessiontree.cli.addresses import Address, address_or_pick, entry_or_pick, last_shown, resolve
from sessiontree.cli.commands.append import check_new_thread, print_thread
from sessiontree.cli.context import CliContext
from sessiontree.cli.declare import argument, command, dry_run_option
from sessiontree.cli.exit_codes import UsageError
from sessiontree.cli.moves import head_line, shown_path
from sessiontree.cli.output import LISTS
from sessiontree.cli.screen.lines import ID, NAME, Line
from sessiontree.cli.screen.rows import entry_line
from sessiontree.cli.typed import typed
from sessiontree.cli.views import view_of
from sessiontree.model import Thread, ThreadFields
from sessiontree.render.cells import cell_width, pad
from sessiontree.render.figures import plural

__all__ = ["fork", "label"]


@command(
    "fork",
    examples=[
        "sessiontree fork @                   share everything up to the head",
        'sessiontree fork 3a19~2 --title "another way"',
        "sessiontree fork 3a19:b21c --before",
    ],
)
@argument("address", "The last entry to share; a thread stands for its head.", required=False)
@click.option("--before", is_flag=True, help="Share everything before the entry, without the entry.")
@click.option("--title", default="", help="The title of the new thread; by default that of the old one.")
@click.option("--id", help="The id of the new thread; generated if omitted.")
@dry_run_option
def fork(cli: CliContext, *, address: str | None, before: bool, title: str, id: str | None, dry_run: bool) -> None:
    """Create a thread that shares the history up to an entry, and print its id. Nothing is copied."""
    found = address_or_pick(cli, address, "fork")
    fields: ThreadFields = {"title": title or found.thread.title}
    if dry_run:
        check_new_thread(cli, id, fields)
        place = cli.entries(found.thread.id)[found.entry_id] if found.entry_id else "the start"
        cli.out.plan(f"would fork {cli.threads[found.thread.id]} {'before' if before else 'at'} {place}")
        return
    if before and found.entry_id is not None:
        created = cli.journal.fork(found.thread.id, before=found.entry_id, new_id=id, **fields)
    else:
        created = cli.journal.fork(found.thread.id, at=found.entry_id, new_id=id, **fields)
    print_thread(cli, created)
    if not cli.out.is_json:
        _explain(cli, found, created)


def _explain(cli: CliContext, found: Address, created: Thread) -> None:
    """Say what the fork shares, where it is, and how to go on."""
    new, old = cli.threads[created.id], cli.threads[found.thread.id]
    shared = plural(len(shown_path(cli.journal, created.id)), "entry", "entries")
    cli.out.done(f"thread {new} shares {shared} with {old}, nothing was copied", below=head_line(cli, created))
    new, old = cli.typed(created.id), cli.typed(found.thread.id)
    cli.out.hint(("  go on:", f'sessiontree append {new} "…"'), ("compare later:", f"sessiontree diff {old} {new}"))


@command(
    "label",
    examples=[
        "sessiontree label @ good-start",
        "sessiontree label 3a19:b21c good-start",
        "sessiontree label 3a19:good-start --remove",
    ],
)
@argument("address", "The entry; a thread stands for its last message.", required=False)
@argument("name", "The label; if omitted, the labels of the thread are listed.", default="")
@click.option("--remove", "-d", is_flag=True, help="Remove the label of the entry.")
@dry_run_option
def label(cli: CliContext, *, address: str | None, name: str, remove: bool, dry_run: bool) -> None:
    """Give an entry a name that can be used in addresses, remove it, or list the labels of a thread."""
    found = entry_or_pick(cli, None, "label") if address is None else resolve(cli, address)
    if address is None and not remove:
        name = cli.asks("A name for it?")
    elif not name and not remove:
        _list_labels(cli, found.thread)
        return
    entry_id = last_shown(cli, found)
    if entry_id is None:
        raise UsageError(f"Thread {cli.threads[found.thread.id]} has no entry to label yet.")
    place = cli.entries(found.thread.id)[entry_id]
    if dry_run:
        cli.out.plan(f"would {'unlabel' if remove else 'label'} {place} {name}")
        return
    entry = cli.journal.label(found.thread.id, entry_id, "" if remove else name)
    if cli.out.is_json:
        cli.out.json(entry=entry)
    else:
        cli.out.done(f"{place} is {'no longer labelled' if remove else f'labelled [{name}]'}")
        if not remove:
            cli.out.hint(("  go there:", f"sessiontree rewind {typed(cli.address(found.thread.id, name))}"))


def _list_labels(cli: CliContext, thread: Thread) -> None:
    labels = cli.journal.labels(thread.id)
    if cli.out.is_json:
        cli.out.json(labels=labels)
        return
    if not cli.out.is_terminal:
        for name, entry_id in sorted(labels.items()):
            cli.out.row((name, entry_id))
        return
    if not labels:
        cli.out.info(f"no entry of {cli.threads[thread.id]} has a label")
        cli.out.hint(("name the last one:", f"sessiontree label {cli.typed(thread.id)} good"))
        return
    view = view_of(cli, thread)
    active = {entry.id for entry in cli.journal.path(thread.id)}
    widest = max(cell_width(f"[{name[:30]}]") for name in labels)
    for name, entry_id in sorted(labels.items()):
        entry = next(entry for entry in view.entries if entry.id == entry_id)
        line = Line((pad(f"[{name[:30]}]", widest) + "  ", NAME), (view.ids[entry_id], ID), "  ")
        cli.out.draw([line.extend(entry_line(view, entry, is_active=entry_id in active)).cut(min(view.width, LISTS))])
