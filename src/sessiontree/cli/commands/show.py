"""The commands show and context."""

from __future__ import annotations

import click
import msgspec

from sessiontree.cli.addresses import resolve, thread_or_pick
from sessiontree.cli.context import CliContext
from sessiontree.cli.declare import all_entries_option, argument, command, count_option, no_pager_option
from sessiontree.cli.exit_codes import UsageError
from sessiontree.cli.output import as_json
from sessiontree.cli.render.text import is_bookkeeping

__all__ = ["context", "show"]


@command(
    "show",
    examples=[
        "sessiontree show @",
        "sessiontree show 3fa9c0de -n 4        the last four entries",
        "sessiontree show 3fa9c0de:b21c --full",
        "sessiontree show @ --raw | less",
    ],
)
@argument("address", "A thread, or the entry to show last.", required=False)
@count_option("--last", "-n", default=0, minimum=0, about="Show only the last N entries; 0 shows all.")
@click.option("--full", is_flag=True, help="Show tool calls, results and thinking in full.")
@click.option("--raw", is_flag=True, help="Do not render Markdown.")
@all_entries_option
@no_pager_option
def show(
    cli: CliContext, *, address: str | None, last: int, full: bool, raw: bool, everything: bool, no_pager: bool
) -> None:
    """Show a conversation: Markdown rendered, tool calls folded to one line, diffs coloured."""
    found = resolve(cli.journal, address or thread_or_pick(cli, None).id)
    path = cli.journal.path(found.thread.id, found.entry_id)
    shown = [entry for entry in path if everything or not is_bookkeeping(entry)]
    shown = shown[-last:] if last else shown
    if cli.out.is_json:
        cli.out.json(thread=found.thread, entries=shown)
        return
    from sessiontree.cli.render.conversation import Conversation  # noqa: PLC0415  Rich is slow to load

    conversation = Conversation(cli.out, is_full=full, is_raw=raw)
    cli.out.page(lambda: conversation.write(found.thread, shown), is_enabled=not no_pager)


@command(
    "context",
    examples=[
        "sessiontree context @",
        "sessiontree context @ --dialect anthropic | jq .messages",
        "sessiontree context 3fa9c0de~4 --dialect openai-chat",
    ],
)
@argument("address", "A thread, or the entry to stop at.", required=False)
@click.option(
    "--dialect",
    default="",
    metavar="NAME",
    help="Print the request for openai-chat, openai-responses, anthropic or gemini, as JSON.",
)
@no_pager_option
def context(cli: CliContext, *, address: str | None, dialect: str, no_pager: bool) -> None:
    """Print exactly what a model receives: compactions applied, calls and results paired."""
    found = resolve(cli.journal, address or thread_or_pick(cli, None).id)
    built = cli.journal.context(found.thread.id, leaf=found.entry_id)
    if dialect:
        from sessiontree.context.dialects import DIALECTS  # noqa: PLC0415  slow to load

        name = dialect.replace("_", "-")
        if name not in DIALECTS:
            raise UsageError(f"unknown dialect {dialect!r}; use one of {', '.join(DIALECTS)}")
        request = DIALECTS[name].to_request(built)
        cli.out.line(msgspec.json.format(as_json(request)).decode())
        return
    if cli.out.is_json:
        cli.out.json(context=built)
        return
    from sessiontree.cli.render.conversation import Conversation  # noqa: PLC0415  Rich is slow to load

    conversation = Conversation(cli.out, is_full=True, is_raw=True)
    cli.out.page(lambda: conversation.write_context(built), is_enabled=not no_pager)
    cli.out.info(f"{len(built.messages)} messages, about {built.tokens} tokens")
