"""The commands show and context."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

import click
import msgspec

from sessiontree.cli.addresses import Address, address_or_pick
from sessiontree.cli.context import CliContext
from sessiontree.cli.declare import all_entries_option, argument, command, count_option, no_pager_option
from sessiontree.cli.exit_codes import UsageError
from sessiontree.cli.output import as_json
from sessiontree.cli.screen.lines import Line
from sessiontree.cli.suggestions import did_you_mean, similar
from sessiontree.cli.summaries import title
from sessiontree.context import Context
from sessiontree.model import Entry, Message, OpaquePart, ReasoningPart, ToolResultPart
from sessiontree.model.sanitize import for_terminal
from sessiontree.render.cells import chop
from sessiontree.render.entries import role_of, text_of
from sessiontree.render.figures import count, plural
from sessiontree.render.gists import gist_of
from sessiontree.render.outcomes import result_text
from sessiontree.render.times import iso
from sessiontree.render.turns import Turn, is_bookkeeping, turns_of

__all__ = ["context", "show"]


@command(
    "show",
    examples=[
        "sessiontree show @",
        "sessiontree show 3a19 -n 4        the last four entries",
        "sessiontree show 3a19:b21c        the turn of one entry",
        "sessiontree show @ --full | less",
    ],
)
@argument("address", "A thread, or an entry: then its turn is shown.", required=False)
@count_option("--last", "-n", default=0, minimum=0, about="Show only the last N entries; 0 shows all.")
@click.option("--full", is_flag=True, help="Cut nothing: calls, results and thoughts in full.")
@click.option("--thinking", is_flag=True, help="Open the thoughts.")
@click.option("--raw", is_flag=True, help="Do not render Markdown.")
@all_entries_option
@no_pager_option
def show(
    cli: CliContext,
    *,
    address: str | None,
    last: int,
    full: bool,
    thinking: bool,
    raw: bool,
    everything: bool,
    no_pager: bool,
) -> None:
    """Show a conversation: what was said, the steps with their outcomes, edits as diffs.

    In a pipe it is Markdown, with whole ids.
    """
    found = address_or_pick(cli, address, "show")
    shown = _entries(cli, found, last, everything=everything)
    if cli.out.is_json:
        cli.out.json(thread=found.thread, entries=shown)
        return
    if not cli.out.is_terminal:
        _print_markdown(cli, found, shown, is_full=full)
        return
    from sessiontree.cli.screen.conversation import Reading, conversation_lines  # noqa: PLC0415  slow to load
    from sessiontree.cli.views import head_of, view_of  # noqa: PLC0415  slow to load

    view = view_of(cli, found.thread)
    command = cli.out.command(f"sessiontree uncompact {cli.typed(found.thread.id)}")
    reading = Reading(is_full=full, has_thinking=thinking, is_raw=raw, uncompact=command)
    lines = chain(head_of(cli, view), conversation_lines(view, shown, reading))
    cli.out.draw_paged(lines, is_enabled=not no_pager)


def _entries(cli: CliContext, found: Address, last: int, *, everything: bool) -> list[Entry]:
    """The entries to show: the path; of an entry that is not the leaf, its turn on the branch that it is on."""
    path = cli.journal.path(found.thread.id, found.entry_id)
    if found.entry_id is not None and found.entry_id != found.thread.leaf and not last:
        path = _turn_around(cli, found, path)
    shown = [entry for entry in path if everything or not is_bookkeeping(entry)]
    return shown[-last:] if last else shown


def _turn_around(cli: CliContext, found: Address, path: list[Entry]) -> list[Entry]:
    """The turn that an entry belongs to: up to the message of the user, and on to the next one."""
    turn: Turn = turns_of(path)[-1]
    whole = list(turn.all_entries)
    active = {entry.id for entry in cli.journal.path(found.thread.id)}
    while True:
        below = cli.journal.children(found.thread.id, whole[-1].id)
        following = next((entry for entry in below if entry.id in active), below[-1] if below else None)
        if following is None or len(turns_of([*whole, following])) > 1:
            return whole
        whole.append(following)


def _print_markdown(cli: CliContext, found: Address, entries: Sequence[Entry], *, is_full: bool) -> None:
    cli.out.line(f"# {' '.join(for_terminal(title(cli, found.thread)).split())}")
    results = {result.call_id: result for entry in entries if entry.message for result in entry.message.tool_results}
    called = {call.id for entry in entries if entry.message for call in entry.message.tool_calls}
    for entry in entries:
        message = entry.message
        if _is_told_before(entry, called):
            continue
        cli.out.line(f"\n## {role_of(entry)} · {for_terminal(entry.id)} · {iso(entry.created_at)}\n")
        if is_full:
            _print_thoughts(cli, message)
        if message is None or message.text.strip() or not message.tool_calls:
            words = _whole_text(entry) if is_full else ""
            cli.out.line(for_terminal(words or text_of(entry, found.thread.workspace)))
        if is_full and message is not None and message.text.strip():
            _print_blocks(cli, message)
        for call in message.tool_calls if message is not None else ():
            gist = gist_of(call, results.get(call.id), found.thread.workspace)
            mark = "✗ " if gist.is_failed else ""
            cli.out.line(f"- {gist.name} `{gist.object}` {mark}{gist.outcome}".rstrip())
            if is_full:
                _print_fences(cli, call.arguments, results.get(call.id))
        if is_full and message is not None:
            for result in message.tool_results:
                _print_fences(cli, "", result if result.call_id not in called else None)


def _print_thoughts(cli: CliContext, message: Message | None) -> None:
    for part in message.parts if message is not None else ():
        if isinstance(part, ReasoningPart) and part.text.strip():
            cli.out.line(for_terminal(part.text.strip()).replace("\n", "\n> ").join(["> ", "\n"]))


def _print_blocks(cli: CliContext, message: Message) -> None:
    """Print the words of blocks of an unknown type."""
    for part in message.parts:
        if isinstance(part, OpaquePart) and part.words:
            cli.out.line(for_terminal("\n".join([f"\n[{part.provider} block]", *part.words])))


def _whole_text(entry: Entry) -> str:
    """All words of an entry that is no message, such as the summary of a compaction; empty if it has none."""
    if entry.message is not None:
        return ""
    from sessiontree.search.matching import searchable  # noqa: PLC0415  slow to load

    found = searchable(entry.payload)
    return found.text if found is not None else ""


def _is_told_before(entry: Entry, called: set[str]) -> bool:
    """Whether an entry holds only results, which were told together with their calls."""
    message = entry.message
    if message is None or not message.tool_results or message.text.strip():
        return False
    return all(result.call_id in called for result in message.tool_results)


def _print_fences(cli: CliContext, arguments: str, result: ToolResultPart | None) -> None:
    for text in (arguments, result_text(result) if result is not None else ""):
        if text:
            fence = "`" * max(3, 1 + max((len(run) for run in _runs_of_ticks(text)), default=0))
            cli.out.line(f"\n{fence}\n{for_terminal(text)}\n{fence}")


def _runs_of_ticks(text: str) -> list[str]:
    import re  # noqa: PLC0415

    return re.findall(r"`{3,}", text)


@command(
    "context",
    examples=[
        "sessiontree context @",
        "sessiontree context @ --dialect anthropic | jq .messages",
        "sessiontree context 3a19~4 --dialect openai-chat",
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
    found = address_or_pick(cli, address, "context")
    built = cli.journal.context(found.thread.id, leaf=found.entry_id)
    if dialect:
        from sessiontree.context.dialects import DIALECTS  # noqa: PLC0415  slow to load

        name = dialect.replace("_", "-")
        if name not in DIALECTS:
            advice = did_you_mean([(one, "") for one in similar(name, DIALECTS) or DIALECTS])
            raise UsageError(f"There is no dialect “{dialect}”.", advice)
        request = DIALECTS[name].to_request(built)
        text = msgspec.json.format(as_json(request)).decode()
        _print_exactly(cli, text)
        return
    if cli.out.is_json:
        cli.out.json(context=built)
        return
    cli.out.page(lambda: _print_context(cli, built), is_enabled=not no_pager)
    cli.out.info(f"{plural(len(built.messages), 'message')}, {count(built.tokens, is_estimate=True)} tokens")


def _print_context(cli: CliContext, built: Context) -> None:
    """Print the context as Markdown."""
    for text in _context_texts(built):
        _print_exactly(cli, for_terminal(text))


def _print_exactly(cli: CliContext, text: str) -> None:
    """Print a text; on a terminal long lines are broken, and nothing else is changed."""
    if not cli.out.is_terminal:
        cli.out.line(text)
        return
    for line in for_terminal(text).expandtabs(4).split("\n"):
        cli.out.draw([Line(part) for part in chop(line, cli.out.width)] or [Line()])


def _context_texts(built: Context) -> Iterator[str]:
    if built.system:
        yield f"## system\n\n{built.system}\n"
    for message in built.messages:
        yield f"## {message.role}\n"
        if message.text.strip():
            yield f"{message.text}\n"
        for call in message.tool_calls:
            yield f"- calls {call.name} {call.arguments}\n"
        for result in message.tool_results:
            yield f"- result of {result.call_id}{' failed' if result.is_error else ''}:\n{result_text(result)}\n"
