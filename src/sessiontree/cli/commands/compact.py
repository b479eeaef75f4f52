"""The commands compact and uncompact."""

from __future__ import annotations

import click

from sessiontree.cli.addresses import thread_or_pick
from sessiontree.cli.context import CliContext
from sessiontree.cli.declare import choice_option, command, count_option, dry_run_option, thread_argument
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
    if dry_run:
        cli.out.plan(
            f"would compact {cli.threads[found.id]}, now about {found.tokens} tokens, keeping the last {keep_recent}"
        )
        return
    policy = CompactionPolicy(keep_recent_tokens=keep_recent, strategy=strategy)
    with cli.progress("summarising messages") as progress:
        result = cli.journal.compact(found.id, policy=policy, instructions=instructions, force=force, progress=progress)
    if cli.out.is_json:
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


def _print(cli: CliContext, result: CompactionResult, before: int) -> None:
    note = f"; {result.note}" if result.note else ""
    if not result.is_installed:
        cli.out.info(f"nothing was changed: {result.status.replace('_', ' ')}{note}")
        return
    after = cli.journal.thread(result.thread_id).tokens
    cli.out.line(for_terminal(result.summary))
    cli.out.done(
        f"~{count(before)} → ~{count(after)} tokens, {plural(result.removed_messages, 'message')} summarised, "
        f"{count(result.kept_messages)} kept{note}"
    )
    cli.out.hint(("  back again:", f"sessiontree uncompact {cli.threads[result.thread_id]}"))
