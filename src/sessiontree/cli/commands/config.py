"""The commands config and completion."""

from __future__ import annotations

import click

from sessiontree.cli.context import COMPLETION_VARIABLE, CliContext
from sessiontree.cli.declare import argument, command
from sessiontree.cli.exit_codes import UsageError
from sessiontree.model.sanitize import one_line
from sessiontree.render.cells import chop

__all__ = ["completion", "config"]


@command(
    "config",
    examples=["sessiontree config show", "SESSIONTREE_STORE=work.db sessiontree config show"],
)
@argument("action", "The only action is show.", type=click.Choice(["show"]), default="show")
def config(cli: CliContext, *, action: str) -> None:  # noqa: ARG001  there is only one
    """Show which store is used, and why."""
    location = cli.location
    if cli.out.is_json:
        cli.out.json(store=location.shown, reason=location.reason)
        return
    shown = one_line(location.shown, 4000)
    for part in chop(shown, cli.out.width) if cli.out.is_terminal else [shown]:
        cli.out.line(part)
    cli.out.info(location.reason)


@command(
    "completion",
    examples=[
        "sessiontree completion bash > ~/.local/share/bash-completion/completions/sessiontree",
        "sessiontree completion zsh > ~/.zfunc/_sessiontree",
        "sessiontree completion fish > ~/.config/fish/completions/sessiontree.fish",
    ],
)
@argument("shell", "bash, zsh or fish; with click 8.5 or later also powershell.")
def completion(cli: CliContext, *, shell: str) -> None:
    """Print the completion script for your shell."""
    from click.shell_completion import get_completion_class  # noqa: PLC0415  only needed here

    script = get_completion_class(shell)
    if script is None:
        raise UsageError(f"There is no completion script for “{shell}”; use bash, zsh or fish.")
    program = click.get_current_context().find_root().command
    cli.out.line(script(program, {}, "sessiontree", COMPLETION_VARIABLE).source())
