"""The program: the table of commands, loaded one at a time, and errors as exit codes."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from keyword import iskeyword
from typing import Any, NoReturn

import click

from sessiontree.cli import exit_codes
from sessiontree.cli.context import COMPLETION_VARIABLE, CliContext
from sessiontree.cli.declare import SETTINGS, HelpContext, shared_options
from sessiontree.cli.exit_codes import SwitchVerb
from sessiontree.cli.screen.lines import DIM, Line
from sessiontree.cli.suggestions import did_you_mean, similar
from sessiontree.errors import NothingToRedoError, NothingToUncompactError, NothingToUndoError, SessionTreeError
from sessiontree.model.passwords import address_without_password

__all__ = ["COMMANDS", "program", "run"]


_GROUPS: dict[str, dict[str, tuple[str, str]]] = {
    "Read": {
        "ls": ("ls", "List threads, most recently changed first."),
        "show": ("show", "Show a conversation."),
        "tree": ("tree", "Draw all branches of a thread."),
        "log": ("tree", "List the entries of a thread, newest first; --graph draws branches."),
        "search": ("search", "Search the text of all entries."),
        "diff": ("diff", "Compare two branches."),
        "stats": ("stats", "Count messages, tokens, cost and tool calls."),
        "tail": ("tail", "Follow a thread as entries are added."),
        "web": ("web", "Show the store in the browser."),
        "context": ("show", "Print exactly what a model receives."),
    },
    "Write and branch": {
        "new": ("append", "Start a thread."),
        "append": ("append", "Add a message to a thread."),
        "fork": ("fork", "Create a thread that shares the history up to an entry."),
        "rewind": ("rewind", "Move a thread back to an entry; nothing is deleted."),
        "undo": ("rewind", "Undo the last move of the head."),
        "redo": ("rewind", "Redo the last move that was undone."),
        "label": ("fork", "Name an entry, or remove its name."),
        "compact": ("compact", "Shorten the context with a summary; nothing is deleted."),
        "uncompact": ("compact", "Revert the last compaction."),
        "archive": ("archive", "Archive a thread, or bring it back."),
        "rm": ("rm", "Delete threads permanently."),
    },
    "Other programs": {
        "import": ("import_", "Import sessions from other programs."),
        "export": ("export", "Write a conversation as HTML, Markdown, JSON, JSONL or in another program's format."),
        "continue": ("continue_", "Go on with a conversation in another agent."),
        "mcp": ("mcp", "Let AI agents search and read your conversations, as an MCP server."),
    },
    "The store": {
        "doctor": ("doctor", "Check the store, and repair what can be repaired."),
        "backup": ("backup", "Back up the store into a folder, while it is being used."),
        "restore": ("backup", "Make a store of a backup again."),
        "copy": ("copy", "Copy the whole store into another store of any kind."),
        "prune": ("prune", "Delete archived threads that have not changed for a while."),
        "secrets": ("secrets", "Find keys and passwords in conversations, and erase them."),
        "lease": ("lease", "Show, acquire or release the lease of a thread."),
        "postgres": ("postgres", "Spread a PostgreSQL store over the nodes of a cluster."),
    },
    "This program": {
        "config": ("config", "Show which store is used, and why."),
        "completion": ("config", "Print the completion script for your shell."),
        "demo": ("demo", "Show the main features at work, in a temporary folder."),
    },
}
"""The commands as ``sessiontree --help`` groups them: the module of each in ``cli/commands``, and its line there."""

COMMANDS = {name: row for group in _GROUPS.values() for name, row in group.items()}

_HELP = """Durable conversation trees for LLM agents: search, read, branch and export them.

Threads and entries are addressed as in git: any unambiguous part of an id of at least four characters, its start or its
end, @ for the head of the thread that changed last, THREAD~3, THREAD@{-1}, THREAD:LABEL, THREAD:ENTRY. Without a command,
the last threads and what to do next are shown.
"""

_EPILOG = """Exit codes: 0 success, 1 not found, 2 usage error, 3 damaged data, 4 conflict, 5 store error.

The store is the first of: --store, SESSIONTREE_STORE, the nearest .sessiontree.toml, the platform's data folder.
"""


class _Program(click.Group):
    """Loads the module of a command when that command is used."""

    context_class = HelpContext

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS and ctx.resilient_parsing:
            return None
        if cmd_name not in COMMANDS:
            rows = [(name, COMMANDS[name][1].rstrip(".")) for name in similar(cmd_name, COMMANDS)]
            advice = did_you_mean(rows) or [Line(("  all verbs: ", DIM), "sessiontree --help")]
            raise exit_codes.UsageError(f"There is no verb “{address_without_password(cmd_name)}”.", advice)
        module = import_module(f"sessiontree.cli.commands.{COMMANDS[cmd_name][0]}")
        found: click.Command = getattr(module, f"{cmd_name}_" if iskeyword(cmd_name) else cmd_name)
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        widest = max(map(len, COMMANDS))
        for heading, commands in _GROUPS.items():
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(widest), about) for name, (_, about) in commands.items()])


def _print_version(ctx: click.Context, _option: click.Parameter, is_given: Any) -> None:
    if is_given and not ctx.resilient_parsing:
        from sessiontree import __version__  # noqa: PLC0415

        click.echo(f"sessiontree {__version__}")
        ctx.exit()


def _start(ctx: click.Context) -> None:
    if ctx.invoked_subcommand is None:
        from sessiontree.cli.home import show_home  # noqa: PLC0415  commands do not need it

        show_home(ctx.obj)


program = _Program(
    "sessiontree",
    callback=click.pass_context(_start),
    invoke_without_command=True,
    subcommand_metavar="COMMAND [ARGS]...",
    help=_HELP,
    epilog=_EPILOG,
    context_settings=SETTINGS,
    params=[
        *shared_options(),
        click.Option(
            ["--version"],
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=_print_version,
            help="Print the version.",
        ),
    ],
)


def run(arguments: list[str] | None = None) -> NoReturn:
    """Run the program and exit with its code."""
    cli = CliContext()
    code = exit_codes.OK
    try:
        code = _invoke(cli, sys.argv[1:] if arguments is None else arguments)
        sys.stdout.flush()
    except SessionTreeError as error:
        cli.out.fail(_in_short(cli, error), exit_codes.advice_of(error))
        code = exit_codes.code_for(error)
    except BrokenPipeError:
        code = exit_codes.BROKEN_PIPE
    except OSError as error:
        cli.out.fail(str(error))
        code = exit_codes.STORE
    except KeyboardInterrupt:
        cli.out.fail("Interrupted.")
        code = exit_codes.INTERRUPTED
    finally:
        cli.close()
    _exit(code)


def _invoke(cli: CliContext, arguments: list[str]) -> int:
    """Run without ``Command.main``, which would turn a broken pipe into exit code 1."""
    if COMPLETION_VARIABLE in os.environ:
        return _complete(cli, os.environ[COMPLETION_VARIABLE])
    try:
        with program.make_context("sessiontree", arguments, obj=cli) as ctx:
            program.invoke(ctx)
    except click.exceptions.Exit as end:
        return end.exit_code
    except SwitchVerb as switch:
        return _invoke(cli, switch.arguments)
    except click.ClickException as error:
        cli.out.fail(_without_passwords(_sentence(error), arguments), _advice(error))
        return error.exit_code
    return exit_codes.OK


def _in_short(cli: CliContext, error: SessionTreeError) -> str:
    """What an error says, with the id of a thread as it is typed."""
    match error:
        case NothingToUndoError(thread_id=name):
            return f"There is nothing to undo in {cli.threads[name]}: no move of its head is left."
        case NothingToRedoError(thread_id=name):
            return f"There is nothing to redo in {cli.threads[name]}: its last change was not an undo."
        case NothingToUncompactError(thread_id=name):
            return f"There is no compaction to take back in {cli.threads[name]}."
        case _:
            return str(error)


def _sentence(error: click.ClickException) -> str:
    """What is wrong, in one sentence that names it in quotes."""
    from sessiontree.cli.bad_values import sentence_about  # noqa: PLC0415  only needed after a mistake

    match error:
        case click.NoSuchOption(option_name=name):
            return f"There is no option “{name}”."
        case click.MissingParameter(param=click.Argument() as argument):
            return f"{argument.human_readable_name} is missing."
        case click.BadParameter() if sentence := sentence_about(error):
            return sentence
        case _:
            text = error.format_message()
            return text if text.endswith((".", "?")) else f"{text}."


def _without_passwords(text: str, arguments: list[str]) -> str:
    """What is wrong with an argument, which it repeats: an address without a scheme can only be known as a whole."""
    for word in arguments:
        text = text.replace(word, address_without_password(word)) if word else text
    return text


def _advice(error: click.ClickException) -> list[Line]:
    from sessiontree.cli.bad_values import meant_by  # noqa: PLC0415  only needed after a mistake

    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "sessiontree"
    lines: list[Line] = []
    if isinstance(error, click.NoSuchOption):
        known = [name for option in context.command.params for name in option.opts] if context is not None else []
        lines += did_you_mean([(name, "") for name in similar(error.option_name, known)])
        if not error.option_name.startswith("--"):
            lines.append(Line(("  an id that starts with a dash: ", DIM), f"{command} -- {error.option_name}"))
    elif isinstance(error, click.BadParameter):
        lines += did_you_mean([(name, "") for name in meant_by(error)])
    return [*lines, Line(("  how it is used: ", DIM), f"{command} --help")]


def _complete(cli: CliContext, instruction: str) -> int:
    from click.shell_completion import shell_complete  # noqa: PLC0415  only needed when a shell asks

    return shell_complete(program, {"obj": cli}, "sessiontree", COMPLETION_VARIABLE, instruction)


def _exit(code: int) -> NoReturn:
    """Exit; output that can no longer be written is dropped, so that the interpreter does not complain about it."""
    try:
        sys.stdout.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = exit_codes.BROKEN_PIPE if isinstance(error, BrokenPipeError) else exit_codes.STORE
    sys.exit(code)
