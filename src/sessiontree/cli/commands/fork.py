"""The commands fork and label."""

from __future__ import annotations

import click

from sessiontree.cli.addresses import resolve, short, thread_or_pick
from sessiontree.cli.commands.append import check_new_thread, print_thread
from sessiontree.cli.context import CliContext
from sessiontree.cli.declare import argument, command, dry_run_option
from sessiontree.cli.exit_codes import UsageError
from sessiontree.model import Thread, ThreadFields
from sessiontree.model.sanitize import one_line

__all__ = ["fork", "label"]


@command(
    "fork",
    examples=[
        "sessiontree fork @                   share everything up to the leaf",
        'sessiontree fork 3fa9c0de~2 --title "another way"',
        "sessiontree fork 3fa9c0de:b21c --before",
    ],
)
@argument("address", "The last entry to share; a thread stands for its leaf.", required=False)
@click.option("--before", is_flag=True, help="Share everything before the entry, without the entry.")
@click.option("--title", default="", help="The title of the new thread; by default that of the old one.")
@click.option("--id", help="The id of the new thread; generated if omitted.")
@dry_run_option
def fork(cli: CliContext, *, address: str | None, before: bool, title: str, id: str | None, dry_run: bool) -> None:
    """Create a thread that shares the history up to an entry, and print its id. Nothing is copied."""
    found = resolve(cli.journal, address or thread_or_pick(cli, None).id)
    fields: ThreadFields = {"title": title or found.thread.title}
    if dry_run:
        check_new_thread(cli, id, fields)
        cli.out.plan(
            f"would fork {short(found.thread.id)} {'before' if before else 'at'} {short(found.entry_id or 'the start')}"
        )
        return
    if before and found.entry_id is not None:
        created = cli.journal.fork(found.thread.id, before=found.entry_id, new_id=id, **fields)
    else:
        created = cli.journal.fork(found.thread.id, at=found.entry_id, new_id=id, **fields)
    print_thread(cli, created)


@command(
    "label",
    examples=[
        "sessiontree label @ good-start",
        "sessiontree label 3fa9c0de:b21c good-start",
        "sessiontree label 3fa9c0de:good-start --remove",
    ],
)
@argument("address", "The entry; a thread stands for its last message.")
@argument("name", "The label; if omitted, the labels of the thread are listed.", default="")
@click.option("--remove", "-d", is_flag=True, help="Remove the label of the entry.")
@dry_run_option
def label(cli: CliContext, *, address: str, name: str, remove: bool, dry_run: bool) -> None:
    """Give an entry a name that can be used in addresses, remove it, or list the labels of a thread."""
    found = resolve(cli.journal, address)
    if not name and not remove:
        _list_labels(cli, found.thread)
        return
    # ~0 skips turn markers and the like behind the last message.
    found = resolve(cli.journal, f"{found.thread.id}:{found.entry_id}~0") if found.entry_id else found
    if found.entry_id is None:
        raise UsageError(f"thread {short(found.thread.id)} has no entry to label yet")
    if dry_run:
        cli.out.plan(f"would {'unlabel' if remove else 'label'} {short(found.entry_id)} {name}")
        return
    entry = cli.journal.label(found.thread.id, found.entry_id, "" if remove else name)
    if cli.out.is_json:
        cli.out.json(entry=entry)
    else:
        cli.out.info(f"{short(found.entry_id)} is {'no longer labelled' if remove else f'labelled {name}'}")


def _list_labels(cli: CliContext, thread: Thread) -> None:
    labels = cli.journal.labels(thread.id)
    if cli.out.is_json:
        cli.out.json(labels=labels)
        return
    for name, entry_id in sorted(labels.items()):
        cli.out.line(f"{one_line(name, 200)}\t{one_line(entry_id, 200)}")
