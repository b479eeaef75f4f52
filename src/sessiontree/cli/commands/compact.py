"""compact, uncompact."""

from __future__ import annotations

from typing import Annotated

import typer

from sessiontree.cli.addresses import short, thread_for
from sessiontree.cli.commands.append import DryRun
from sessiontree.cli.context import CliContext
from sessiontree.cli.exit_codes import UsageError
from sessiontree.compaction import CompactionPolicy, CompactionResult
from sessiontree.context import window_of
from sessiontree.errors import NothingToUncompactError
from sessiontree.model.sanitize import for_terminal

__all__ = ["EXAMPLES", "compact", "uncompact"]


EXAMPLES = {
    "compact": """Examples:

\b
  sessiontree compact @
  sessiontree compact 3fa9c0de --keep-recent 4000 --instructions "keep every file name"
  sessiontree compact 3fa9c0de --strategy truncate""",
    "uncompact": """Examples:

\b
  sessiontree uncompact @""",
}


def compact(
    ctx: typer.Context,
    thread: Annotated[str | None, typer.Argument(help="The thread.", metavar="THREAD")] = None,
    keep_recent: Annotated[int, typer.Option(min=0, help="How many tokens at the end stay as they are.")] = 20_000,
    strategy: Annotated[str, typer.Option(help="summarize, truncate or hybrid.")] = "summarize",
    instructions: Annotated[str, typer.Option(help="What the summary must not lose.")] = "",
    force: Annotated[bool, typer.Option("--force", help="Install it even if it saves nothing.")] = False,
    dry_run: DryRun = False,
) -> None:
    """Shorten what a model sees by a summary of the older part. Nothing is deleted, and `uncompact` takes it back.

    The summary is drawn from the text itself, without a model and without a network. Programs pass their own
    summariser to `journal.compact`.
    """
    world: CliContext = ctx.obj
    if strategy not in {"summarize", "truncate", "hybrid"}:
        raise UsageError(f"there is no strategy {strategy!r}; use summarize, truncate or hybrid")
    found = thread_for(world, thread)
    if dry_run:
        tokens = world.journal.context(found.id).tokens
        world.out.plan(f"would compact {short(found.id)}, now about {tokens} tokens, keeping the last {keep_recent}")
        return
    policy = CompactionPolicy(keep_recent_tokens=keep_recent, strategy=strategy)  # type: ignore[arg-type]
    with world.progress("summing up messages") as progress:
        result = world.journal.compact(
            found.id, policy=policy, instructions=instructions, force=force, progress=progress
        )
    if world.out.is_json:
        world.out.json(compaction=result)
        return
    _tell(world, result)


def uncompact(
    ctx: typer.Context,
    thread: Annotated[str | None, typer.Argument(help="The thread.", metavar="THREAD")] = None,
    dry_run: DryRun = False,
) -> None:
    """Give a model the context back that was there before the last compaction."""
    world: CliContext = ctx.obj
    found = thread_for(world, thread)
    if dry_run:
        if window_of(world.journal.path(found.id)).boundary is None:
            raise NothingToUncompactError(found.id)
        world.out.plan(f"would take the last compaction of {short(found.id)} back")
        return
    entry = world.journal.uncompact(found.id)
    if world.out.is_json:
        world.out.json(entry=entry)
        return
    world.out.remark(f"{short(found.id)} has about {world.journal.context(found.id).tokens} tokens again")


def _tell(world: CliContext, result: CompactionResult) -> None:
    if not result.is_installed:
        world.out.remark(f"nothing was changed: {result.status.replace('_', ' ')}")
        return
    world.out.line(for_terminal(result.summary))
    world.out.remark(
        f"{result.tokens_before} → {result.tokens_after} tokens, {result.removed_messages} messages summed up, "
        f"{result.kept_messages} kept; `sessiontree uncompact` takes it back"
    )
