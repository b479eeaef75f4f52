"""The command: verbs that are loaded when they are asked for, flags that all of them share, errors as exit codes."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Annotated, Any, get_type_hints

import typer
from typer.core import TyperGroup
from typer.main import get_command

from sessiontree.cli import exit_codes
from sessiontree.cli.context import CliContext
from sessiontree.cli.exit_codes import UsageError
from sessiontree.errors import SessionTreeError
from sessiontree.model.sanitize import for_terminal

__all__ = ["VERBS", "command", "run"]


VERBS: dict[str, tuple[str, str]] = {
    "new": ("append", "Start a thread."),
    "ls": ("ls", "List threads, the one that changed last first."),
    "show": ("show", "Read a conversation."),
    "tree": ("tree", "Draw all branches of a thread."),
    "log": ("tree", "List the entries of a thread, newest first; --graph draws branches."),
    "search": ("search", "Find entries by what they say."),
    "append": ("append", "Add a message to a thread."),
    "fork": ("fork", "Make a new thread that shares everything up to an entry."),
    "rewind": ("rewind", "Go back to an entry; nothing is deleted."),
    "undo": ("rewind", "Take the last move of the leaf back."),
    "redo": ("rewind", "Take the last undo back."),
    "label": ("fork", "Give an entry a name, or take it away."),
    "diff": ("diff", "Compare two branches."),
    "compact": ("compact", "Shorten what a model sees by a summary; nothing is deleted."),
    "uncompact": ("compact", "Take the last compaction back."),
    "context": ("show", "Print exactly what a model would get."),
    "tail": ("tail", "Follow a thread live."),
    "stats": ("stats", "Count messages, tokens, cost and tools, with plots."),
    "export": ("export", "Write a conversation as HTML, Markdown, JSON, JSONL or as another program keeps it."),
    "import": ("import_", "Bring sessions of other programs in."),
    "copy": ("copy", "Copy the whole store into another one of any kind."),
    "lease": ("lease", "Show, take or give back the right to run a turn."),
    "archive": ("archive", "Put a thread away, or bring it back."),
    "rm": ("rm", "Delete threads for good."),
    "prune": ("prune", "Delete archived threads that nobody touched for a while."),
    "doctor": ("doctor", "Check the store, and repair what can be repaired."),
    "config": ("config", "Show which store is used, and why."),
    "completion": ("config", "Print the completion script for your shell."),
    "demo": ("demo", "See the main job done, in a temporary folder."),
}

_HELP = """Durable conversation trees for LLM agents: find, see, branch and carry away.

Threads and entries are named as in git: any part of an id that is enough, @ for the leaf of the thread that changed
last, THREAD~3, THREAD@{-1}, THREAD:LABEL, THREAD:ENTRY.
"""

_EPILOG = """Exit codes: 0 ok, 1 not found, 2 usage, 3 damaged data, 4 conflict, 5 the store cannot work.

The store is the first of: --store, SESSIONTREE_STORE, the nearest .sessiontree.toml, the platform's data folder.
"""


_COMPLETION = "_SESSIONTREE_COMPLETE"
_SETTINGS = {"help_option_names": ["--help", "-h"], "max_content_width": 100}

_SHARED: dict[str, tuple[Any, Any]] = {
    "store_flag": (
        Annotated[
            str | None,
            typer.Option("--store", metavar="URL", help="The store: a path or an address such as sqlite:///file.db."),
        ],
        None,
    ),
    "is_json": (Annotated[bool, typer.Option("--json", help="Print JSON with a schema_version.")], False),
    "is_quiet": (
        Annotated[bool, typer.Option("--quiet", "-q", help="Print data only: no remarks, no progress.")],
        False,
    ),
    "is_colourless": (
        Annotated[bool, typer.Option("--no-color", help="Print without colours; NO_COLOR does the same.")],
        False,
    ),
}


class _Verbs(TyperGroup):
    """Loads a verb's module when the verb is asked for."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in VERBS:
            return None
        module = import_module(f"sessiontree.cli.commands.{VERBS[cmd_name][0]}")
        verb = typer.Typer(add_completion=False, rich_markup_mode=None)
        function = getattr(module, "import_" if cmd_name == "import" else cmd_name)
        epilog = getattr(module, "EXAMPLES", {}).get(cmd_name)
        verb.command(cmd_name, epilog=epilog, context_settings=_SETTINGS)(_with_shared_flags(function))
        return _without_empty_paths(get_command(verb))

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Verbs"):
            formatter.write_dl([(name, text) for name, (_, text) in VERBS.items()])


def _without_empty_paths(verb: Any) -> Any:
    """An empty path is a variable that was not set; Python would take it for the folder one happens to be in."""
    for parameter in verb.params:
        if parameter.type.name == "path":
            parameter.type.convert = _refusing_empty(parameter.type.convert)
    return verb


def _refusing_empty(convert: Callable[..., Any]) -> Callable[..., Any]:
    def converted(value: Any, param: Any, ctx: Any) -> Any:
        if value == "":
            raise UsageError(f"the path for {param.get_error_hint(ctx)} is empty; for this folder say .")
        return convert(value, param, ctx)

    return converted


def _with_shared_flags(function: Callable[..., Any]) -> Callable[..., Any]:
    """The verb with the flags that every verb has; they go to the World, not to the verb."""
    hints = get_type_hints(function, include_extras=True)
    own = [
        parameter.replace(annotation=hints[name]) for name, parameter in inspect.signature(function).parameters.items()
    ]
    shared = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hint)
        for name, (hint, default) in _SHARED.items()
    ]

    def verb(*, ctx: typer.Context, **values: Any) -> Any:
        world: CliContext = ctx.obj
        for name in _SHARED:
            given = values.pop(name)
            if given not in (None, False):
                setattr(world, name, given)
        return function(ctx, **values)

    verb.__signature__ = inspect.Signature([*own, *shared])  # type: ignore[attr-defined]
    verb.__annotations__ = {parameter.name: parameter.annotation for parameter in (*own, *shared)}
    verb.__doc__ = function.__doc__
    return verb


def command() -> Any:
    """The whole command, for the entry point, for tests and for the reference page."""
    app = typer.Typer(
        cls=_Verbs,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        help=_HELP,
        epilog=_EPILOG,
        no_args_is_help=True,
        context_settings=_SETTINGS,
    )

    @app.callback()
    def shared(
        ctx: typer.Context,
        store: str | None = typer.Option(
            None, metavar="URL", help="The store: a path or an address such as sqlite:///file.db."
        ),
        version: bool = typer.Option(  # noqa: ARG001  answered before the verb is looked for
            False, "--version", help="Print the version.", is_eager=True, callback=_print_version
        ),
    ) -> None:
        ctx.obj.store_flag = store

    return get_command(app)


def _print_version(is_asked: bool) -> None:
    if is_asked:
        from sessiontree import __version__  # noqa: PLC0415

        sys.stdout.write(f"sessiontree {__version__}\n")
        raise typer.Exit


def run(arguments: list[str] | None = None) -> None:
    """Run the command and end the process with its exit code."""
    world = CliContext()
    code = exit_codes.OK
    try:
        code = _invoke(world, arguments)
        sys.stdout.flush()
    except SessionTreeError as error:
        sys.stderr.write(f"sessiontree: {for_terminal(str(error))}\n")
        code = exit_codes.code_for(error)
    except BrokenPipeError:
        code = exit_codes.BROKEN_PIPE
    except OSError as error:
        sys.stderr.write(f"sessiontree: {for_terminal(str(error))}\n")
        code = exit_codes.STORE
    except KeyboardInterrupt:
        sys.stderr.write("sessiontree: interrupted\n")
        code = exit_codes.INTERRUPTED
    finally:
        world.close()
    _leave(code)


def _invoke(world: CliContext, arguments: list[str] | None) -> int:
    if _COMPLETION in os.environ:
        from typer import completion  # noqa: PLC0415  only while a shell asks

        completion.completion_init()  # type: ignore[attr-defined]
    try:
        result = command().main(args=arguments, prog_name="sessiontree", standalone_mode=False, obj=world)
    except SystemExit as left:
        # Typer and Rich end a broken pipe by themselves, with a 1; whoever reads the exit code should learn of it.
        if left.code == 1:
            return exit_codes.BROKEN_PIPE
        raise
    except Exception as error:
        shown = getattr(error, "show", None)
        if type(error).__name__ == "Abort":
            sys.stderr.write("sessiontree: interrupted\n")
            return exit_codes.INTERRUPTED
        if shown is None or not hasattr(error, "exit_code"):
            raise
        shown()
        if type(error).__name__ == "NoSuchOption":
            sys.stderr.write(
                "What begins with a dash and is no option goes behind --, as in: sessiontree show -- -id\n"
            )
        return int(error.exit_code)
    return result if isinstance(result, int) else exit_codes.OK


def _leave(code: int) -> None:
    """The reader may be gone: then what is still buffered must not make a noise on the way out."""
    try:
        sys.stdout.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = exit_codes.BROKEN_PIPE if isinstance(error, BrokenPipeError) else exit_codes.STORE
    sys.exit(code)
