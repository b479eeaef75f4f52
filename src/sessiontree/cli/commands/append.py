"""The commands new and append."""

from __future__ import annotations

import sys

import click
from msgspec import UNSET

from sessiontree.cli.addresses import resolve_entry, thread_or_pick
from sessiontree.cli.context import CliContext
from sessiontree.cli.declare import argument, choice_option, command, dry_run_option, thread_argument
from sessiontree.cli.exit_codes import UsageError
from sessiontree.errors import NotFoundError, StaleLeafError, ThreadExistsError
from sessiontree.journal.opening import open as open_journal
from sessiontree.model import Payload, Thread, ThreadFields
from sessiontree.model.builders import assistant, system, tool_result, user
from sessiontree.model.sanitize import one_line

__all__ = ["append", "check_new_thread", "new", "print_thread"]


@command(
    "new",
    examples=[
        'sessiontree new "Plan the release"',
        'ID=$(sessiontree new --quiet "Nightly run" --tag ci)',
    ],
)
@argument("title", "What the thread is about.", default="")
@click.option("--id", help="The id of the thread; generated if omitted.")
@click.option("tags", "--tag", multiple=True, help="A tag; may be repeated.")
@click.option("--workspace", default="", help="The workspace the thread belongs to.")
@click.option("--model", default="", help="The model used in the thread.")
@dry_run_option
def new(
    cli: CliContext, *, title: str, id: str | None, tags: tuple[str, ...], workspace: str, model: str, dry_run: bool
) -> None:
    """Start a thread and print its id."""
    fields: ThreadFields = {"title": title, "tags": tags, "workspace": workspace, "model": model}
    if dry_run:
        check_new_thread(cli, id, fields)
        cli.out.plan(f"would start a thread{f' “{title}”' if title else ''}")
        return
    created = cli.create_journal().create_thread(id, **fields)
    print_thread(cli, created)
    cli.out.hint(("go on:", f'sessiontree append {cli.typed(created.id)} "…"'))


@command(
    "append",
    examples=[
        'sessiontree append @ "and now in French"',
        "git diff | sessiontree append 3a19 --role user",
        'sessiontree append 3a19 "It is done." --role assistant',
    ],
)
@thread_argument
@argument("text", "The message; read from stdin if omitted or -.", required=False)
@choice_option(
    "--role", ["user", "assistant", "system", "tool"], metavar="ROLE", about="user, assistant, system or tool."
)
@click.option("--call", default="", help="With --role tool: the id of the tool call that is answered.")
@click.option("--expect-leaf", help="Append only if this entry is the head; otherwise exit with code 4.")
@dry_run_option
def append(
    cli: CliContext,
    *,
    thread: str | None,
    text: str | None,
    role: str,
    call: str,
    expect_leaf: str | None,
    dry_run: bool,
) -> None:
    """Add a message to a thread and print the id of the new entry."""
    found = thread_or_pick(cli, thread, "append")
    content = _read_stdin(cli) if text is None or text == "-" else text
    payload = _payload(role, content, call)
    leaf = UNSET if expect_leaf is None else _expected_leaf(cli, found, expect_leaf)
    if dry_run:
        if leaf not in (UNSET, found.leaf):
            raise StaleLeafError(found.id, str(leaf), found.leaf)
        cli.out.plan(f"would append to {cli.threads[found.id]} as {role}: {one_line(content, 60)}")
        return
    entry = cli.journal.append(found.id, payload, expect_leaf=leaf)
    if cli.out.is_json:
        cli.out.json(entry=entry)
    else:
        cli.out.line(entry.id)


def check_new_thread(cli: CliContext, thread_id: str | None, fields: ThreadFields) -> None:
    """Raise what creating this thread would raise, without creating it."""
    with open_journal("memory:") as rehearsal:
        rehearsal.create_thread(thread_id, **fields)
    if thread_id is None:
        return
    try:
        cli.journal.thread(thread_id)
    except NotFoundError:
        return
    raise ThreadExistsError(thread_id)


def print_thread(cli: CliContext, thread: Thread) -> None:
    """Print the id of a thread, or all of it as JSON."""
    if cli.out.is_json:
        cli.out.json(thread=thread)
    else:
        cli.out.line(thread.id)


def _expected_leaf(cli: CliContext, thread: Thread, leaf: str) -> str | None:
    if not leaf:
        raise UsageError("--expect-leaf is empty; name the entry that the message replies to.")
    return resolve_entry(cli, thread, leaf)


def _read_stdin(cli: CliContext) -> str:
    if cli.can_ask:
        cli.out.info("Type the message; Ctrl-D on a line of its own ends it.")
    try:
        return sys.stdin.read().removesuffix("\n")
    except UnicodeDecodeError as error:
        raise UsageError(f"stdin is not UTF-8: {error}; a message must be text") from error


def _payload(role: str, text: str, call: str) -> Payload:
    if not text and role != "tool":
        raise UsageError("The message is empty; nothing was appended.")
    match role:
        case "assistant":
            return assistant(text)
        case "system":
            return system(text)
        case "tool" if call:
            return tool_result(call, text)
        case "tool":
            raise UsageError("A tool result needs --call, the id of the tool call that it answers.")
        case _:
            return user(text)
