"""Output: data to stdout, messages to stderr; drawn on a terminal, tab-separated values in a pipe, JSON on request."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TextIO

import msgspec

from sessiontree.cli.screen.hints import fitting, for_store, hint_lines
from sessiontree.cli.screen.lines import ATTENTION, FAILURE, GOOD, Line, in_ascii, paragraph
from sessiontree.cli.terminal_size import terminal_size
from sessiontree.cli.typed import with_store
from sessiontree.model.passwords import without_password
from sessiontree.model.sanitize import for_terminal

__all__ = ["LISTS", "PROSE", "SCHEMA_VERSION", "Output", "as_json"]


SCHEMA_VERSION = 1

PROSE = 100
"""Text is not wider than this: the eye loses the line."""

LISTS = 132
"""Lists and trees are not wider than this: the eye loses the row."""

_NARROWEST = 20
_ONE_LINE = 1_000_000
_ASCII_LOCALES = {"C", "POSIX"}


class Output:
    """Writes what a command has to say, in the form that the reader can use."""

    def __init__(
        self, *, is_json: bool, is_quiet: bool, is_colourless: bool, environment: Mapping[str, str], store: str = ""
    ) -> None:
        self.is_json = is_json
        self.is_quiet = is_quiet
        self._store = store
        self.is_terminal = sys.stdout.isatty()
        self.is_dumb = environment.get("TERM", "") in {"dumb", "unknown"}
        self._allows_colour = not (is_colourless or environment.get("NO_COLOR") or self.is_dumb)
        self.has_colour = self.is_terminal and self._allows_colour
        self._is_ascii = self.is_dumb or _is_ascii_locale(environment)
        self.is_plain_ascii = self._is_ascii or not _is_utf(sys.stdout)

    @property
    def width(self) -> int:
        """The number of columns of the terminal; 80 in a pipe, unless COLUMNS says otherwise."""
        return max(_NARROWEST, terminal_size().columns)

    @property
    def height(self) -> int:
        """The number of rows of the terminal."""
        return terminal_size().lines

    def line(self, text: str = "") -> None:
        """Write one line of data. Text that comes from a conversation must be sanitized first."""
        sys.stdout.write(text + "\n")

    def draw(self, lines: Iterable[Line]) -> None:
        """Write lines to stdout."""
        for line in lines:
            sys.stdout.write(self._painted(line, has_colour=self.has_colour, is_ascii=self.is_plain_ascii) + "\n")

    def row(self, cells: Sequence[object]) -> None:
        """Write a row of tab-separated values, complete."""
        sys.stdout.write("\t".join(_cell(str(cell)) for cell in cells) + "\n")

    def info(self, text: str) -> None:
        """Write a message for the user to stderr, unless --quiet."""
        if not self.is_quiet:
            for line in for_terminal(text).split("\n"):
                self.say(self._sentence(line, lead=""))

    def done(self, text: str, *, below: Iterable[Line] = ()) -> None:
        """Say on stderr that something was done, unless --quiet."""
        if not self.is_quiet:
            self.say([*self._sentence(text), *below], mark=("✓", GOOD))

    def say(self, lines: Sequence[Line], mark: tuple[str, str] | None = None) -> None:
        """Write lines to stderr, the first one with a mark in its first cell. Passwords in addresses are not shown."""
        has_colour = sys.stderr.isatty() and self._allows_colour
        is_ascii = self._is_ascii or not _is_utf(sys.stderr)
        for number, line in enumerate(lines):
            shown = line
            if number == 0 and mark is not None:
                shown = Line(mark, " ", (line.plain.strip(), line.spans[-1].style if len(line.spans) else ""))
            hidden = Line(*((without_password(text), style) for text, style in shown.spans))
            sys.stderr.write(self._painted(hidden, has_colour=has_colour, is_ascii=is_ascii) + "\n")

    def ask(self, line: Line) -> None:
        """Write a question to stderr, and leave the cursor behind it."""
        has_colour = sys.stderr.isatty() and self._allows_colour
        text = self._painted(line, has_colour=has_colour, is_ascii=self._is_ascii or not _is_utf(sys.stderr))
        sys.stderr.write(text + " ")
        sys.stderr.flush()

    def hint(self, *pieces: tuple[str, str]) -> None:
        """Write what to type next, if a person is reading: pairs of a few words and a command."""
        if self.is_quiet or not (self.is_terminal and sys.stderr.isatty()):
            return
        shown = [(words, self.command(command)) for words, command in pieces]
        self.say(hint_lines(shown, min(self.width, LISTS)))

    def command(self, text: str) -> str:
        """Return a command as it must be typed for the store of this run."""
        return with_store(text, self._store)

    def plan(self, text: str) -> None:
        """Write what a dry run would have done."""
        if self.is_json:
            self.json(is_dry_run=True, plan=without_password(text))
        else:
            self.info(text)

    def warn(self, text: str) -> None:
        """Write a message for the user to stderr, also with --quiet."""
        self.say(self._sentence(text), mark=("!", ATTENTION))

    def fail(self, text: str, advice: Sequence[Line] = ()) -> None:
        """Write an error to stderr: one sentence, then what helps."""
        below = [shown for line in advice for shown in fitting(for_store(line, self._store), self.width)]
        self.say([*self._sentence(text), *below], mark=("✗", FAILURE))

    def json(self, **data: Any) -> None:
        """Write one JSON object with a schema version."""
        sys.stdout.write(msgspec.json.format(as_json({"schema_version": SCHEMA_VERSION, **data})).decode() + "\n")

    def page(self, write: Callable[[], None], *, is_enabled: bool = True) -> None:
        """Call ``write`` with stdout connected to the user's pager, if this is a terminal and there is a pager."""
        if not (is_enabled and self.is_terminal and sys.stdin.isatty()) or self.is_dumb:
            write()
            return
        from sessiontree.cli.pager import through_pager  # noqa: PLC0415  slow to load, not needed in a pipe

        through_pager(write)

    def draw_paged(self, lines: Iterable[Line], *, is_enabled: bool = True) -> None:
        """Write lines to stdout, through the pager if there is one."""
        self.page(lambda: self.draw(lines), is_enabled=is_enabled)

    def _sentence(self, text: str, lead: str = "  ") -> list[Line]:
        """A message, wrapped for a terminal; on one line where a program reads it. A password must not be torn apart."""
        return list(paragraph(without_password(text), self._message_width, lead=lead))

    @property
    def _message_width(self) -> int:
        return self.width if sys.stderr.isatty() else _ONE_LINE

    def _painted(self, line: Line, *, has_colour: bool, is_ascii: bool) -> str:
        text = line.painted(has_colour=has_colour)
        return in_ascii(text) if is_ascii else text


def _is_ascii_locale(environment: Mapping[str, str]) -> bool:
    """Whether the user asked for the C locale. Python then uses UTF-8 itself, and sets LC_CTYPE to C.UTF-8 for others."""
    language = environment.get("LANG", "")
    kind = environment.get("LC_CTYPE", "")
    if kind == "C.UTF-8" and sys.flags.utf8_mode:
        kind = _first_ctype()
    return (environment.get("LC_ALL") or kind or language) in _ASCII_LOCALES


def _first_ctype() -> str:
    """LC_CTYPE before Python changed it; only Linux tells. Elsewhere LANG decides."""
    try:
        with open("/proc/self/environ", "rb") as file:  # noqa: PTH123  pathlib is slow to import
            found = [value for value in file.read().split(b"\0") if value.startswith(b"LC_CTYPE=")]
    except OSError:
        return ""
    return found[-1].decode("utf-8", "replace").removeprefix("LC_CTYPE=") if found else ""


def _is_utf(stream: TextIO) -> bool:
    return (getattr(stream, "encoding", "") or "").lower().replace("-", "").startswith("utf")


def as_json(value: Any) -> bytes:
    """Encode a value with all fields of its records, including those at their default, so that scripts can rely on them."""
    return msgspec.json.encode(_jsonable(value))


def _jsonable(value: Any) -> Any:
    match value:
        case msgspec.Struct():
            tag = value.__struct_config__.tag
            fields = {name: _jsonable(getattr(value, name)) for name in value.__struct_fields__}
            return {value.__struct_config__.tag_field or "type": tag, **fields} if tag else fields
        case dict():
            return {str(name): _jsonable(item) for name, item in value.items()}
        case list() | tuple():
            return [_jsonable(item) for item in value]
        case bytes():
            return value.decode("utf-8", "replace")
        case _:
            return value


def _cell(text: str) -> str:
    return for_terminal(text).replace("\t", " ").replace("\n", " ")
