"""The commands compact and uncompact."""

from __future__ import annotations

import click

from sessiontree.cli.addresses import thread_or_pick
from sessiontree.cli.context import CliContext
from sessiontree.cli.declare import choice_option, command, count_option, dry_run_option, thread_argument
from sessiontree.cli.output import PROSE
from sessiontree.cli.screen.conversation import compaction_rule, summary_lines
from sessiontree.compaction import CompactionPolicy, CompactionResult, Strategy
from sessiontree.context import window_of
from sessiontree.errors import NothingToUncompactError
from sessiontree.model.sanitize import for_terminal
from sessiontree.render.figures import count, plural

__all__ = ["compact", "uncompact"]


@command(
    "compact",
    examples=[
        "sessiontree compact @",
        'sessiontree compact 3a19 --keep-recent 4000 --instructions "keep every file name"',
        "sessiontree compact 3a19 --strategy truncate",
    ],
)
@thread_argument
@count_option(
    "--keep-recent", default=20_000, minimum=0, metavar="TOKENS", about="How many tokens at the end to keep unchanged."
)
@choice_option("--strategy", ["summarize", "truncate", "hybrid"], about="summarize, truncate or hybrid.")
@click.option("--instructions", default="", help="What the summary must preserve.")
@click.option("--force", is_flag=True, help="Install the summary even if it saves nothing.")
@dry_run_option
def compact(
    cli: CliContext,
    *,
    thread: str | None,
    keep_recent: int,
    strategy: Strategy,
    instructions: str,
    force: bool,
    dry_run: bool,
) -> None:
    """Shorten the context with a summary of its older part. Nothing is deleted, and `uncompact` reverts it.

    The summary consists of sentences of the conversation; no model and no network is used. Programs can pass their own
    summariser to `journal.compact`.
    """
    found = thread_or_pick(cli, thread, "compact")
    policy = CompactionPolicy(keep_recent_tokens=keep_recent, strategy=strategy)
    with cli.progress("summarising messages") as progress:
        result = cli.journal.compact(
            found.id, policy=policy, instructions=instructions, force=force, progress=progress, dry_run=dry_run
        )
    if dry_run:
        cli.out.plan(_plan(cli, result, found.tokens))
    elif cli.out.is_json:
        cli.out.json(compaction=result)
    else:
        _print(cli, result, found.tokens)


@command("uncompact", examples=["sessiontree uncompact @"])
@thread_argument
@dry_run_option
def uncompact(cli: CliContext, *, thread: str | None, dry_run: bool) -> None:
    """Revert the last compaction: the model receives the full context again."""
    found = thread_or_pick(cli, thread, "uncompact")
    if dry_run:
        if window_of(cli.journal.path(found.id)).boundary is None:
            raise NothingToUncompactError(found.id)
        cli.out.plan(f"would revert the last compaction of {cli.threads[found.id]}")
        return
    entry = cli.journal.uncompact(found.id)
    if cli.out.is_json:
        cli.out.json(entry=entry)
    else:
        cli.out.done(f"{cli.threads[found.id]} has ~{count(cli.journal.thread(found.id).tokens)} tokens again")


def _plan(cli: CliContext, result: CompactionResult, before: int) -> str:
    if result.status != "planned":
        return f"nothing would be changed: {_reason(result)}"
    return f"would compact {cli.threads[result.thread_id]}: {_figures(result, before)}"


def _print(cli: CliContext, result: CompactionResult, before: int) -> None:
    if not result.is_installed:
        cli.out.info(f"nothing was changed: {_reason(result)}")
        return
    if cli.out.is_terminal:
        width = min(cli.out.width, PROSE)
        cli.out.draw([compaction_rule(f"compacted, {_sizes(result, before)}", width)])
        cli.out.draw(summary_lines(result.summary, width - 2, is_full=True))
        cli.out.done(_messages(result))
    else:
        cli.out.line(for_terminal(result.summary))
        cli.out.done(_figures(result, before))
    cli.out.hint(("  back again:", f"sessiontree uncompact {cli.typed(result.thread_id)}"))


def _reason(result: CompactionResult) -> str:
    return result.status.replace("_", " ") + _note(result)


def _figures(result: CompactionResult, before: int) -> str:
    return f"{_sizes(result, before)}, {_messages(result)}"


def _sizes(result: CompactionResult, before: int) -> str:
    return f"~{count(before)} → ~{count(result.tokens_after)} tokens"


def _messages(result: CompactionResult) -> str:
    return f"{plural(result.removed_messages, 'message')} summarised, {count(result.kept_messages)} kept{_note(result)}"


def _note(result: CompactionResult) -> str:
    return f"; {result.note}" if result.note else ""
