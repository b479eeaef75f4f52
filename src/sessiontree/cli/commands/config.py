"""doctor, config, completion, demo."""

from __future__ import annotations

from typing import Annotated

import typer

from sessiontree.cli.context import CliContext
from sessiontree.cli.exit_codes import UsageError
from sessiontree.model.sanitize import one_line

__all__ = ["EXAMPLES", "completion", "config"]


EXAMPLES = {
    "config": """Examples:

\b
  sessiontree config show
  SESSIONTREE_STORE=work.db sessiontree config show""",
    "completion": """Examples:

\b
  sessiontree completion bash > ~/.local/share/bash-completion/completions/sessiontree
  sessiontree completion zsh > ~/.zfunc/_sessiontree
  sessiontree completion fish > ~/.config/fish/completions/sessiontree.fish""",
}


def config(
    ctx: typer.Context,
    action: Annotated[str, typer.Argument(help="show is the only one.")] = "show",
) -> None:
    """Show which store is used, and why that one."""
    world: CliContext = ctx.obj
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
    world: CliContext = ctx.obj
    script = scripts.get_completion_script(  # type: ignore[attr-defined]
        prog_name="sessiontree", complete_var="_SESSIONTREE_COMPLETE", shell=shell
    )
    world.out.line(script)
