"""show, context."""

from __future__ import annotations

from typing import Annotated

import msgspec
import typer

from sessiontree.cli.addresses import place_of, thread_for
from sessiontree.cli.commands.tree import NoPager
from sessiontree.cli.context import CliContext
from sessiontree.cli.exit_codes import UsageError
from sessiontree.cli.output import as_json
from sessiontree.cli.render.text import is_bookkeeping

__all__ = ["EXAMPLES", "context", "show"]


EXAMPLES = {
    "show": """Examples:

\b
  sessiontree show @
  sessiontree show 3fa9c0de -n 4        the last four entries
  sessiontree show 3fa9c0de:b21c --full
  sessiontree show @ --raw | less""",
    "context": """Examples:

\b
  sessiontree context @
  sessiontree context @ --dialect anthropic | jq .messages
  sessiontree context 3fa9c0de~4 --dialect openai-chat""",
}


def show(
    ctx: typer.Context,
    address: Annotated[str | None, typer.Argument(help="A thread, or the entry to read up to.")] = None,
    last: Annotated[int, typer.Option("--last", "-n", min=0, help="Only so many entries from the end; 0 is all.")] = 0,
    full: Annotated[bool, typer.Option("--full", help="Tool calls, results and thinking in full.")] = False,
    raw: Annotated[bool, typer.Option("--raw", help="Markdown as it was written.")] = False,
    everything: Annotated[bool, typer.Option("--all", "-a", help="Turn markers, usage and labels as well.")] = False,
    no_pager: NoPager = False,
) -> None:
    """Read a conversation: Markdown rendered, tool calls folded to a line, diffs coloured."""
    world: CliContext = ctx.obj
    place = place_of(world.journal, address or thread_for(world, None).id)
    path = world.journal.path(place.thread.id, place.entry_id)
    shown = [entry for entry in path if everything or not is_bookkeeping(entry)]
    shown = shown[-last:] if last else shown
    if world.out.is_json:
        world.out.json(thread=place.thread, entries=shown)
        return
    from sessiontree.cli.render.conversation import Conversation  # noqa: PLC0415  Rich is slow to load

    drawing = Conversation(world.out, is_full=full, is_raw=raw)
    world.out.page(lambda: drawing.write(place.thread, shown), is_wanted=not no_pager)


def context(
    ctx: typer.Context,
    address: Annotated[str | None, typer.Argument(help="A thread, or the entry to go up to.")] = None,
    dialect: Annotated[
        str, typer.Option(help="The request as openai-chat, openai-responses, anthropic or gemini takes it, as JSON.")
    ] = "",
    no_pager: NoPager = False,
) -> None:
    """Print exactly what a model would get: compactions applied, calls and results paired."""
    world: CliContext = ctx.obj
    place = place_of(world.journal, address or thread_for(world, None).id)
    found = world.journal.context(place.thread.id, leaf=place.entry_id)
    if dialect:
        from sessiontree.context.dialects import DIALECTS  # noqa: PLC0415  only here

        name = dialect.replace("_", "-")
        if name not in DIALECTS:
            raise UsageError(f"there is no dialect {dialect!r}; there are {', '.join(DIALECTS)}")
        request = DIALECTS[name].to_request(found)
        world.out.line(msgspec.json.format(as_json(request)).decode())
        return
    if world.out.is_json:
        world.out.json(context=found)
        return
    from sessiontree.cli.render.conversation import Conversation  # noqa: PLC0415  Rich is slow to load

    drawing = Conversation(world.out, is_full=True, is_raw=True)
    world.out.page(lambda: drawing.write_context(found), is_wanted=not no_pager)
    world.out.remark(f"{len(found.messages)} messages, about {found.tokens} tokens")
