"""Output: data to stdout, messages to stderr; tables on a terminal, tab-separated values in a pipe, JSON on request.

Also the standard streams, which may be closed, full, or of an encoding that cannot represent a character.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec

from sessiontree.model import Record
from sessiontree.model.sanitize import for_terminal, one_line

__all__ = ["SCHEMA_VERSION", "Column", "Output", "as_json", "prepare_streams"]


SCHEMA_VERSION = 1
_NARROWEST = 5


class Column(Record, frozen=True, kw_only=True):
    """A column of a table. With ``weight`` 0 it is as wide as its content; the others share the rest of the screen."""

    name: str
    weight: int = 0
    style: str = ""
    is_number: bool = False


class Output:
    """Writes what a command has to say, in the form that the reader can use."""

    def __init__(self, *, is_json: bool, is_quiet: bool, is_colourless: bool, environment: Mapping[str, str]) -> None:
        self.is_json = is_json
        self.is_quiet = is_quiet
        self.is_terminal = sys.stdout.isatty()
        self.is_dumb = environment.get("TERM", "") in {"dumb", "unknown"}
        self.has_colour = (
            self.is_terminal and not is_colourless and not environment.get("NO_COLOR") and not self.is_dumb
        )
        encoding = (getattr(sys.stdout, "encoding", "") or "").lower().replace("-", "")
        self.is_plain_ascii = self.is_dumb or not encoding.startswith("utf")

    @property
    def width(self) -> int:
        """The number of columns of the terminal."""
        from shutil import get_terminal_size  # noqa: PLC0415  slow to load, not needed in a pipe

        return get_terminal_size((100, 24)).columns

    def line(self, text: str = "", style: str = "") -> None:
        """Write one line of data. Text that comes from a conversation must be sanitized first."""
        sys.stdout.write(self.styled(text, style) + "\n")

    def info(self, text: str) -> None:
        """Write a message for the user to stderr, unless --quiet."""
        if not self.is_quiet:
            sys.stderr.write(for_terminal(text) + "\n")

    def plan(self, text: str) -> None:
        """Write what a dry run would have done."""
        if self.is_json:
            self.json(is_dry_run=True, plan=text)
        else:
            self.info(text)

    def warn(self, text: str) -> None:
        """Write a message for the user to stderr, also with --quiet."""
        sys.stderr.write(for_terminal(text) + "\n")

    def styled(self, text: str, style: str) -> str:
        """Return the text with the escape codes of a style, if colours are on."""
        code = _CODES.get(style, "")
        return f"\x1b[{code}m{text}\x1b[0m" if code and self.has_colour and text else text

    def json(self, **data: Any) -> None:
        """Write one JSON object with a schema version."""
        sys.stdout.write(msgspec.json.format(as_json({"schema_version": SCHEMA_VERSION, **data})).decode() + "\n")

    def table(self, columns: Sequence[Column], rows: Iterable[Sequence[str]]) -> None:
        """Write a table: aligned and cut to the screen on a terminal, tab-separated and complete in a pipe."""
        if not self.is_terminal:
            for row in rows:
                self.line("\t".join(_cell(text) for text in row))
            return
        clean = [[one_line(text, 400) for text in row] for row in rows]
        widths = _widths(columns, clean, self.width)
        self.line(self._row(columns, [column.name.upper() for column in columns], widths, "bold"))
        for row in clean:
            self.line(self._row(columns, row, widths, ""))

    def page(self, write: Callable[[], None], *, is_enabled: bool = True) -> None:
        """Call ``write`` with stdout connected to the user's pager, if this is a terminal and there is a pager."""
        if not (is_enabled and self.is_terminal and sys.stdin.isatty()) or self.is_dumb:
            write()
            return
        from shutil import which  # noqa: PLC0415  slow to load, not needed in a pipe

        command = _pager()
        if command in {"", "cat"} or which(command.split()[0]) is None:
            write()
            return
        _write_to_pager(command, write)

    def _row(self, columns: Sequence[Column], cells: Sequence[str], widths: Sequence[int], style: str) -> str:
        parts: list[str] = []
        for at, (column, text, width) in enumerate(zip(columns, cells, widths, strict=True)):
            shown = fit(text, width)
            padding = " " * (width - cell_width(shown))
            is_last = at == len(columns) - 1
            aligned = padding + shown if column.is_number else shown + ("" if is_last else padding)
            parts.append(self.styled(aligned, style or column.style))
        return "  ".join(parts).rstrip()


_CODES = {
    "bold": "1",
    "dim": "2",
    "red": "31",
    "green": "32",
    "yellow": "33",
    "blue": "34",
    "magenta": "35",
    "cyan": "36",
    "match": "1;33",
    "": "",
}


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


def cell_width(text: str) -> int:
    """The number of columns a text occupies: CJK and emoji take two, combining marks none."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len  # noqa: PLC0415  only needed for text that is not ASCII

    return cell_len(text)


def fit(text: str, width: int) -> str:
    """Cut a text to a number of columns; an ellipsis marks the cut."""
    if cell_width(text) <= width:
        return text
    while text and cell_width(text) > width - 1:
        text = text[: -max(1, (cell_width(text) - width) // 2)]
    return text + "…"


def _cell(text: str) -> str:
    return for_terminal(text).replace("\t", " ").replace("\n", " ")


def _widths(columns: Sequence[Column], rows: Sequence[Sequence[str]], screen: int) -> list[int]:
    needed = [max([len(column.name), *(cell_width(row[at]) for row in rows)]) for at, column in enumerate(columns)]
    left = (
        screen - 2 * (len(columns) - 1) - sum(n for n, column in zip(needed, columns, strict=True) if not column.weight)
    )
    total = sum(column.weight for column in columns) or 1
    widths = [
        min(need, max(_NARROWEST, left * column.weight // total)) if column.weight else need
        for need, column in zip(needed, columns, strict=True)
    ]
    excess = sum(widths) + 2 * (len(columns) - 1) - screen
    for at in sorted(range(len(columns)), key=lambda at: -widths[at]):
        if excess <= 0:
            break
        cut = min(excess, max(0, widths[at] - _NARROWEST))
        widths[at] -= cut
        excess -= cut
    return widths


def _pager() -> str:
    """The pager command; as with git, a variable that is set to nothing means no pager."""
    for name in ("SESSIONTREE_PAGER", "PAGER"):
        if name in os.environ:
            return os.environ[name].strip()
    return "less"


@contextmanager
def _interrupts_ignored() -> Iterator[None]:
    """Leave Ctrl-C to the pager: exiting while it is still on the screen would leave two programs on one terminal."""
    import signal  # noqa: PLC0415  slow to load, only needed for a pager

    previous = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)


def _write_to_pager(command: str, write: Callable[[], None]) -> None:
    import subprocess  # noqa: PLC0415  slow to load, only needed for a pager

    environment = {"LESS": "FRX", "LESSSECURE": "1", **os.environ}
    pager = subprocess.Popen(command, shell=True, stdin=subprocess.PIPE, env=environment)  # noqa: S602  PAGER is a command
    assert pager.stdin is not None
    stdout, sys.stdout = sys.stdout, io.TextIOWrapper(pager.stdin, encoding="utf-8", errors="replace")
    with _interrupts_ignored():
        try:
            write()
            sys.stdout.close()
        except BrokenPipeError:
            pass
        finally:
            sys.stdout = stdout
            pager.wait()


def prepare_streams() -> None:
    """Make the standard streams safe to use.

    Files and pipes are read and written as UTF-8; a terminal shows what its encoding can. A closed stream is replaced,
    so that its descriptor is not reused for a file of the store.
    """
    if sys.stdin is None:
        sys.stdin = _opened(os.O_RDONLY, "r")
    if sys.stdout is None:
        # Opened for reading only: writing data to a closed stdout must fail.
        sys.stdout = _opened(os.O_RDONLY, "w")
    if sys.stderr is None:
        sys.stderr = _opened(os.O_WRONLY, "w")
    for stream in (sys.stdin, sys.stdout):
        if isinstance(stream, io.TextIOWrapper):
            if stream.isatty():
                stream.reconfigure(errors="replace")
            else:
                stream.reconfigure(encoding="utf-8", errors="strict")
    sys.stderr = _Messages(io.FileIO(sys.stderr.fileno(), "w", closefd=False), sys.stderr.encoding)


def _opened(flags: int, mode: str) -> io.TextIOWrapper:
    return open(os.open(os.devnull, flags), mode, encoding="utf-8", closefd=False)  # type: ignore[return-value]


class _Messages(io.TextIOWrapper):
    """The stream for messages. One that cannot be written is dropped: the work it reports is done."""

    def __init__(self, raw: io.FileIO, encoding: str) -> None:
        super().__init__(raw, encoding, errors="backslashreplace", write_through=True)

    def write(self, text: str, /) -> int:
        try:
            return super().write(text)
        except OSError:
            return len(text)

    def flush(self) -> None:
        """Do nothing: the stream is not buffered."""
