"""How commands are declared: a click command with documented arguments, examples and the options all commands share."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from shlex import quote
from typing import Any, TypeVar

import click

from sessiontree.cli.exit_codes import UsageError
from sessiontree.cli.screen.lines import DIM, Line
from sessiontree.cli.suggestions import did_you_mean
from sessiontree.cli.terminal_size import terminal_size
from sessiontree.cli.typed import broken
from sessiontree.model.passwords import address_without_password, without_password

__all__ = [
    "SETTINGS",
    "FilePath",
    "HelpContext",
    "all_entries_option",
    "argument",
    "choice_option",
    "command",
    "count_option",
    "dry_run_option",
    "given_options",
    "no_pager_option",
    "shared_options",
    "store_option",
    "thread_argument",
    "yes_option",
]


F = TypeVar("F", bound=Callable[..., Any])

PROSE = 100
_NARROWEST = 20

SETTINGS = {"help_option_names": ["--help", "-h"], "max_content_width": 100}


class _Argument(click.Argument):
    """An argument with a line of help; click itself has these from 8.5 on."""

    def __init__(self, declarations: Sequence[str], *, about: str, **attributes: Any) -> None:
        super().__init__(declarations, **attributes)
        self.about = about


class _HelpFormatter(click.HelpFormatter):
    """Help that fits the terminal: click itself takes at least 50 columns."""

    def __init__(self, indent_increment: int = 2, width: int | None = None, max_width: int | None = None) -> None:
        fitting = max(_NARROWEST, min(terminal_size().columns, max_width or PROSE) - 1)
        super().__init__(indent_increment, width or fitting, max_width)


class HelpContext(click.Context):
    """The context of a command, with our help."""

    formatter_class = _HelpFormatter


class _Command(click.Command):
    """A command that lists its arguments and examples, and accepts the shared options."""

    context_class = HelpContext

    def __init__(self, *arguments: Any, examples: Sequence[str] = (), **attributes: Any) -> None:
        super().__init__(*arguments, **attributes)
        self.params += shared_options()
        self._examples = examples

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.allow_extra_args = True
        super().parse_args(ctx, args)
        if ctx.args and not ctx.resilient_parsing:
            given = [str(ctx.params[one.name]) for one in self.params if isinstance(one, _Argument) and one.name]
            raise _too_many(ctx.command_path, self.params, given, ctx.args)
        return ctx.args

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows = [
            (parameter.human_readable_name + "..." * (parameter.nargs == -1), parameter.about)
            for parameter in self.params
            if isinstance(parameter, _Argument)
        ]
        if rows:
            with formatter.section("Arguments"):
                formatter.write_dl(rows)
        super().format_options(ctx, formatter)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_epilog(ctx, formatter)
        with formatter.section("Examples"):
            for example in self._examples:
                formatter.write("".join(f"{line}\n" for line in _example_lines(example, formatter.width - 2)))


def _too_many(command: str, params: Sequence[click.Parameter], given: list[str], more: list[str]) -> UsageError:
    """The answer to words that a command has no argument for: those of a sentence, or the entry of a thread."""
    last = next((one.name for one in reversed(params) if isinstance(one, _Argument)), "")
    hidden = [address_without_password(word) for word in more]
    meant = ""
    if last in {"title", "text"}:
        meant = " ".join([*given[-1:], *hidden])
    elif last == "address":
        meant = f"{given[-1]}:{hidden[0]}"
    rows = [" ".join([command, *(quote(without_password(word)) for word in [*given[:-1], meant])])] if meant else []
    advice = did_you_mean([(row, "") for row in rows]) or [Line(("  how it is used: ", DIM), f"{command} --help")]
    return UsageError(f"“{hidden[0]}” is one word too many.", advice)


def _example_lines(example: str, cells: int) -> list[str]:
    """An example as it can be typed: a line that is too long goes on below, without the words about it.

    >>> _example_lines("sessiontree rewind @~2            two entries back", 30)
    ['  sessiontree rewind @~2']
    >>> _example_lines("sessiontree fork 3a19~2 --title 'another way'", 30)
    ['  sessiontree fork 3a19~2 \\\\', "    --title 'another way'"]
    """
    typed = example.split("   ", maxsplit=1)[0]
    if len(example) <= cells or len(typed) <= cells:
        return [f"  {example if len(example) <= cells else typed}"]
    return [f"  {line}" for line in broken(typed, cells)]


class FilePath(click.Path):
    """A path; an empty one is refused, because ``Path("")`` means the current folder."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "" and param is not None and ctx is not None:
            raise UsageError(f"The path for {param.get_error_hint(ctx)} is empty; use . for the current folder.")
        if isinstance(value, str) and _is_address(value) and not os.path.exists(value):  # noqa: PTH110  pathlib is slow
            shown = address_without_password(value)
            advice = [Line(("  a file of that name: ", DIM), f"./{shown}")] if "://" not in value else []
            raise UsageError(f"“{shown}” is the address of a server, but a file or folder is meant here.", advice)
        return super().convert(value, param, ctx)


def _is_address(text: str) -> bool:
    return "://" in text or address_without_password(text) != text


class StoreAddress(click.types.StringParamType):
    """The address of a store; one that names none is refused before anything is done with it."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        from sessiontree.journal.address import parse_url  # noqa: PLC0415  --help does not need it

        parse_url(value)
        return value


def command(name: str, *, examples: Sequence[str], notes: str = "") -> Callable[[Callable[..., None]], click.Command]:
    """Declare a command.

    The function is called with the CliContext and the values of its options; its docstring is the help text.
    ``notes`` stand before the examples, at the end of the help.
    """

    def declare(function: Callable[..., None]) -> click.Command:
        decorate = click.command(name, cls=_Command, examples=examples, epilog=notes, context_settings=SETTINGS)
        return decorate(click.pass_obj(function))

    return declare


def argument(name: str, about: str, **attributes: Any) -> Callable[[F], F]:
    """Declare a positional argument with a line of help."""

    def declare(function: F) -> F:
        # One decorator for each command: before click 8.1.4 a second use of the same one loses its class.
        return click.argument(name, cls=_Argument, about=about, **attributes)(function)

    return declare


def count_option(*names: str, default: int, minimum: int = 1, metavar: str = "N", about: str) -> Callable[[F], F]:
    """Declare an option that takes a number."""
    kind = click.IntRange(min=minimum)
    return click.option(*names, type=kind, default=default, show_default=True, metavar=metavar, help=about)


def choice_option(name: str, choices: Sequence[str], *, metavar: str = "NAME", about: str) -> Callable[[F], F]:
    """Declare an option that takes one of a few words; the first one is the default."""
    kind = click.Choice(choices)
    return click.option(name, type=kind, default=choices[0], show_default=True, metavar=metavar, help=about)


def given_options(*without: str) -> str:
    """Return the options of the running command as they were given, except some, for a command that goes on with it."""
    context = click.get_current_context()
    words: list[str] = []
    for option in context.command.params:
        name = str(option.name)
        is_given = context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE
        if not isinstance(option, click.Option) or not option.expose_value or not is_given or name in without:
            continue
        value = context.params[name]
        values = [None] if option.is_flag else value if option.multiple else [value]
        words += [_typed_option(option, one) for one in values]
    return "".join(words)


def _typed_option(option: click.Option, value: object) -> str:
    if value is None:
        return f" {min(option.opts, key=len)}"
    text = quote(str(value))
    return f" {max(option.opts, key=len)}={text}" if text.startswith("-") else f" {min(option.opts, key=len)} {text}"


thread_argument = argument("thread", "The thread.", required=False)
dry_run_option = click.option("--dry-run", is_flag=True, help="Show what would be done, and change nothing.")
all_entries_option = click.option(
    "everything", "--all", "-a", is_flag=True, help="Include turn markers, usage reports and labels."
)
no_pager_option = click.option("--no-pager", is_flag=True, help="Do not use a pager.")
yes_option = click.option("--yes", "-y", is_flag=True, help="Do not ask for confirmation.")


def store_option() -> click.Option:
    """The option ``--store``, for the program and for every command."""
    about = "The store: a path, or a URL such as sqlite:///file.db."
    return _shared_option("store_flag", "--store", metavar="URL", help=about)


def shared_options() -> list[click.Option]:
    """The options that every command has, and the program itself."""
    return [
        store_option(),
        _shared_option("is_json", "--json", is_flag=True, help="Print JSON with a schema_version."),
        _shared_option("is_quiet", "--quiet", "-q", is_flag=True, help="Print data only: no messages, no progress."),
        _shared_option(
            "is_colourless", "--no-color", is_flag=True, help="Print without colours; NO_COLOR does the same."
        ),
    ]


def _shared_option(*declarations: str, **attributes: Any) -> click.Option:
    return click.Option(declarations, expose_value=False, callback=_remember, **attributes)


def _remember(ctx: click.Context, option: click.Parameter, value: Any) -> None:
    """Store the value of a shared option in the CliContext; ``--store`` may stand before the command, too."""
    if value is not None and value is not False:
        setattr(ctx.obj, str(option.name), value)
