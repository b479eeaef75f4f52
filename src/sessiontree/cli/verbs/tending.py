"""doctor, config, completion, demo."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from sessiontree.cli.exits import DAMAGED, UsageError
from sessiontree.cli.verbs.writing import DryRun
from sessiontree.cli.world import World
from sessiontree.harmless import one_line
from sessiontree.queries import Finding

__all__ = ["EXAMPLES", "completion", "config", "demo", "doctor"]

EXAMPLES = {
    "doctor": """Examples:

\b
  sessiontree doctor
  sessiontree doctor --repair --dry-run
  sessiontree doctor --json""",
    "config": """Examples:

\b
  sessiontree config show
  SESSIONTREE_STORE=work.db sessiontree config show""",
    "completion": """Examples:

\b
  sessiontree completion bash > ~/.local/share/bash-completion/completions/sessiontree
  sessiontree completion zsh > ~/.zfunc/_sessiontree
  sessiontree completion fish > ~/.config/fish/completions/sessiontree.fish""",
    "demo": """Examples:

\b
  sessiontree demo""",
}


def doctor(
    ctx: typer.Context,
    repair: Annotated[
        bool, typer.Option("--repair", help="Mend what can be mended; what is cut is kept aside.")
    ] = False,
    dry_run: DryRun = False,
) -> None:
    """Check the whole store: checksums, chains, counters, reflogs. Exit code 3 if something is not as it should be.

    --repair cuts torn lines out of JSONL files and keeps them aside, makes indexes, ids and heads of SQLite files anew,
    and throws the index of the search away, which the next search fills again. What else is damaged stays as it is:
    `copy` brings what is readable into a new store.
    """
    world: World = ctx.obj
    findings = _check(world)
    if repair and not dry_run:
        with world.progress("repairing the store"):
            _repair(world, is_needed=bool(findings))
        findings = _check(world) if findings else []
    if world.out.is_json:
        world.out.json(store=world.location.url, findings=findings)
    else:
        _print(world, findings, repair=repair and dry_run)
    if findings:
        raise typer.Exit(DAMAGED)


def config(
    ctx: typer.Context,
    action: Annotated[str, typer.Argument(help="show is the only one.")] = "show",
) -> None:
    """Show which store is used, and why that one."""
    world: World = ctx.obj
    if action != "show":
        raise UsageError(f"config has no {action!r}; use: sessiontree config show")
    location = world.location
    if world.out.is_json:
        world.out.json(store=location.url, reason=location.reason)
        return
    world.out.line(one_line(location.url, 4000))
    world.out.remark(location.reason)


def completion(
    ctx: typer.Context,
    shell: Annotated[str, typer.Argument(help="bash, zsh, fish or powershell.")],
) -> None:
    """Print the completion script for your shell."""
    from typer import completion as scripts  # noqa: PLC0415  only here

    if shell not in {"bash", "zsh", "fish", "powershell"}:
        raise UsageError(f"no completion for {shell!r}; there is bash, zsh, fish and powershell")
    world: World = ctx.obj
    script = scripts.get_completion_script(  # type: ignore[attr-defined]
        prog_name="sessiontree", complete_var="_SESSIONTREE_COMPLETE", shell=shell
    )
    world.out.line(script)


def demo(ctx: typer.Context) -> None:
    """See the main job done in a temporary folder: a turn, a crash, a resume, a fork, a rewind, and all of it undone."""
    from sessiontree.demo import run  # noqa: PLC0415  it brings Rich

    world: World = ctx.obj
    run(has_colour=world.out.has_colour)


def _check(world: World) -> list[Finding]:
    with world.progress("checking the store") as progress:
        return world.journal.check(progress=progress)


def _repair(world: World, *, is_needed: bool) -> None:
    backend: Any = getattr(world.journal.store, "backend", None)
    if not hasattr(backend, "repair"):
        if is_needed:
            world.out.warn(
                "this kind of store cannot be repaired in place; `sessiontree copy` what is readable into a new one"
            )
        return
    for mended in backend.repair():
        world.out.remark(f"mended: {mended.place} at byte {mended.offset}: {mended.problem}")


def _print(world: World, findings: list[Finding], *, repair: bool) -> None:
    for finding in findings:
        where = f"{finding.place}:{finding.offset}" if finding.offset else finding.place
        about = " ".join(filter(None, (finding.thread_id, finding.entry_id)))
        can = "repairable" if finding.is_repairable else "not repairable"
        cells = (finding.kind, where, about, finding.problem, can)
        world.out.line("\t".join(one_line(cell, 500) for cell in cells))
    if findings:
        world.out.remark(f"{len(findings)} findings" + ("; --repair would mend what is repairable" if repair else ""))
    else:
        world.out.remark("everything is as it should be")
