"""The way out: data to stdout, remarks to stderr; a table for people, TSV for pipes, JSON for programs.

The three streams, whatever they were started with: closed, full, or of an encoding that lacks a letter.
"""

from __future__ import annotations

import io
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec

from sessiontree.model._base import Record
from sessiontree.model.sanitize import for_terminal, one_line

__all__ = ["SCHEMA_VERSION", "Column", "Output", "as_json", "prepare_streams"]


SCHEMA_VERSION = 1
_NARROWEST = 5


class Column(Record, frozen=True, kw_only=True):
    """``weight`` 0 keeps the width that the content needs; others share what is left of the screen."""

    name: str
    weight: int = 0
    style: str = ""
    is_number: bool = False


class Output:
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
        return shutil.get_terminal_size((100, 24)).columns

    def line(self, text: str = "", style: str = "") -> None:
        """One line of data; foreign text in it must have been made harmless."""
        sys.stdout.write(self.styled(text, style) + "\n")

    def remark(self, text: str) -> None:
        """Something for the person, not for the next program."""
        if not self.is_quiet:
            sys.stderr.write(for_terminal(text) + "\n")

    def plan(self, text: str) -> None:
        """What a dry run would have done."""
        if self.is_json:
            self.json(is_dry_run=True, plan=text)
        else:
            self.remark(text)

    def warn(self, text: str) -> None:
        """Said even when quiet."""
        sys.stderr.write(for_terminal(text) + "\n")

    def styled(self, text: str, style: str) -> str:
        code = _CODES.get(style, "")
        return f"\x1b[{code}m{text}\x1b[0m" if code and self.has_colour and text else text

    def json(self, **data: Any) -> None:
        sys.stdout.write(msgspec.json.format(as_json({"schema_version": SCHEMA_VERSION, **data})).decode() + "\n")

    def table(self, columns: Sequence[Column], rows: Iterable[Sequence[str]]) -> None:
        """Aligned and cut to the screen on a terminal, tab-separated with nothing cut in a pipe."""
        if not self.is_terminal:
            for row in rows:
                self.line("\t".join(_cell(text) for text in row))
            return
        clean = [[one_line(text, 400) for text in row] for row in rows]
        widths = _widths(columns, clean, self.width)
        self.line(self._row(columns, [column.name.upper() for column in columns], widths, "bold"))
        for row in clean:
            self.line(self._row(columns, row, widths, ""))

    def page(self, write: Callable[[], None], *, is_wanted: bool = True) -> None:
        """Run ``write`` with its lines in a pager, where there is a person and a pager."""
        if not (is_wanted and self.is_terminal and sys.stdin.isatty()) or self.is_dumb:
            write()
            return
        command = _pager()
        if command in {"", "cat"} or shutil.which(command.split()[0]) is None:
            write()
            return
        _through(command, write)

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
    """JSON with every field of a record, also those at their default: scripts can rely on them."""
    return msgspec.json.encode(_plain(value))


def _plain(value: Any) -> Any:
    match value:
        case msgspec.Struct():
            tag = value.__struct_config__.tag
            fields = {name: _plain(getattr(value, name)) for name in value.__struct_fields__}
            return {value.__struct_config__.tag_field or "type": tag, **fields} if tag else fields
        case dict():
            return {str(name): _plain(item) for name, item in value.items()}
        case list() | tuple():
            return [_plain(item) for item in value]
        case bytes():
            return value.decode("utf-8", "replace")
        case _:
            return value


def cell_width(text: str) -> int:
    """How many columns a text takes: CJK and emoji take two, combining marks none."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len  # noqa: PLC0415  only where it is needed

    return cell_len(text)


def fit(text: str, width: int) -> str:
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
    """As with git: a name that is set to nothing means no pager."""
    for name in ("SESSIONTREE_PAGER", "PAGER"):
        if name in os.environ:
            return os.environ[name].strip()
    return "less"


@contextmanager
def _interrupts_left_to_the_pager() -> Iterator[None]:
    """Ctrl-C belongs to the pager, which stays on the screen: it must not be left alone there."""
    kept = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, kept)


def _through(command: str, write: Callable[[], None]) -> None:
    environment = {"LESS": "FRX", "LESSSECURE": "1", **os.environ}
    pager = subprocess.Popen(command, shell=True, stdin=subprocess.PIPE, env=environment)  # noqa: S602  PAGER is a command
    assert pager.stdin is not None
    kept, sys.stdout = sys.stdout, _text(pager.stdin)
    with _interrupts_left_to_the_pager():
        try:
            write()
            sys.stdout.close()
        except BrokenPipeError:
            pass
        finally:
            sys.stdout = kept
            pager.wait()


def _text(stream: Any) -> Any:
    import io  # noqa: PLC0415

    return io.TextIOWrapper(stream, encoding="utf-8", errors="replace")


def prepare_streams() -> None:
    """Data in files and pipes is UTF-8, a terminal shows what its encoding can; a closed stream never hands its number
    to a file of the store."""
    if sys.stdin is None:
        sys.stdin = _opened(os.O_RDONLY, "r")
    if sys.stdout is None:
        # Open for reading alone: whoever wanted the data learns that it could not be written.
        sys.stdout = _opened(os.O_RDONLY, "w")
    if sys.stderr is None:
        sys.stderr = _opened(os.O_WRONLY, "w")
    for stream in (sys.stdin, sys.stdout):
        if isinstance(stream, io.TextIOWrapper):
            if stream.isatty():
                stream.reconfigure(errors="replace")
            else:
                stream.reconfigure(encoding="utf-8", errors="strict")
    sys.stderr = _Remarks(io.FileIO(sys.stderr.fileno(), "w", closefd=False), sys.stderr.encoding)


def _opened(flags: int, mode: str) -> io.TextIOWrapper:
    return open(os.open(os.devnull, flags), mode, encoding="utf-8", closefd=False)  # type: ignore[return-value]


class _Remarks(io.TextIOWrapper):
    """A remark that nobody can take is no reason to fail: the work it speaks of is done."""

    def __init__(self, raw: io.FileIO, encoding: str) -> None:
        super().__init__(raw, encoding, errors="backslashreplace", write_through=True)

    def write(self, text: str, /) -> int:
        try:
            return super().write(text)
        except OSError:
            return len(text)

    def flush(self) -> None:
        """Nothing is held back."""
