"""Let a person choose a thread or an entry: type to filter, move with the arrows, see a preview."""

from __future__ import annotations

import base64
import os
import select
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType

import click
from msgspec.structs import replace

from sessiontree.cli.context import CliContext
from sessiontree.cli.exit_codes import INTERRUPTED, SwitchVerb, UsageError
from sessiontree.cli.screen.lines import Line, in_ascii
from sessiontree.cli.screen.picker import (
    PickerRow,
    PickerState,
    entry_rows,
    matching,
    picker_lines,
    preview_width,
    thread_rows,
)
from sessiontree.cli.screen.threads import NARROW, head_lines
from sessiontree.cli.screen.tree import path_lines
from sessiontree.cli.summaries import summaries, titles
from sessiontree.cli.terminal_size import terminal_size
from sessiontree.cli.views import build_view, view_of
from sessiontree.errors import SessionTreeError
from sessiontree.model import Record, Thread, ToolResultPart

__all__ = ["pick_entry", "pick_thread"]


NO_RESULTS: Mapping[str, ToolResultPart] = MappingProxyType({})
_CONSIDERED = 1000
_PREVIEWED = 200
_FURTHER = 20
_UP, _DOWN = {b"\x1b[A", b"\x1bOA", b"\x10"}, {b"\x1b[B", b"\x1bOB", b"\x0e"}
_PAGE_UP, _PAGE_DOWN = {b"\x1b[5~"}, {b"\x1b[6~"}
_ENTER = {b"\r", b"\n"}
_LEAVE = {b"\x1b", b"\x03", b"\x04"}
_ERASE = {b"\x7f", b"\x08"}
_COPY = b"\x19"
_SWITCHES = {b"\t": "tree", b"\x06": "fork", b"\x12": "rewind"}


class Choice(Record, frozen=True, kw_only=True):
    """What there is to choose from: rows, the preview of one, rows that fit a query by more than their words."""

    verb: str
    rows: Sequence[PickerRow]
    preview: Callable[[str, int], list[Line]]
    further: Callable[[str], set[str]] = lambda _query: set()
    keys: tuple[tuple[str, str], ...] = ()
    switches: dict[bytes, str] = {}


def pick_thread(cli: CliContext, verb: str) -> Thread:
    """Let the user choose a thread. Leaving exits with code 130; another verb is raised as SwitchVerb."""
    threads = cli.journal.list_threads(limit=_CONSIDERED, is_empty=False).threads
    if not threads:
        raise UsageError("There are no threads to choose from; start one with: sessiontree new.")
    known = {thread.id: thread for thread in threads}
    is_narrow = terminal_size().columns < NARROW
    choice = Choice(
        verb=verb,
        rows=thread_rows(titles(cli, threads), cli.threads, cli.now, is_narrow=is_narrow),
        preview=lambda name, width: thread_preview(cli, known[name], None, width),
        further=lambda query: _said(cli, query),
        keys=(("tab", "tree"), ("^f", "fork"), ("^r", "rewind"), ("^y", "copy id")),
        switches=_SWITCHES,
    )
    return known[_choose(cli, choice)]


def pick_entry(cli: CliContext, thread: Thread, verb: str) -> str:
    """Let the user choose an entry of a thread, on any branch; the preview ends with it. Returns its id."""
    view = view_of(cli, thread)
    rows = entry_rows(view)
    if not rows:
        raise UsageError(f"Thread {cli.threads[thread.id]} has no entries to choose from.")
    choice = Choice(
        verb=f"{verb} {cli.threads[thread.id]}",
        rows=rows,
        preview=lambda name, width: thread_preview(cli, thread, name, width, results=view.results),
        keys=(("^y", "copy id"),),
    )
    return _choose(cli, choice)


def thread_preview(
    cli: CliContext,
    thread: Thread,
    entry_id: str | None,
    width: int,
    results: Mapping[str, ToolResultPart] = NO_RESULTS,
) -> list[Line]:
    """Draw the end of a thread, or of its path to an entry, below its head of three lines.

    ``results`` are those of calls at the end of the path, which come after it.
    """
    shown = thread if entry_id is None else replace(thread, leaf=entry_id)
    path = cli.journal.path(thread.id, shown.leaf, limit=_PREVIEWED)
    home = os.path.expanduser("~")  # noqa: PTH111  as everywhere, a string is enough
    head = head_lines(summaries(cli, [thread])[0], cli.threads, cli.now, width, home)
    view = build_view(cli, shown, path, width=width)
    return [*head, *path_lines(replace(view, results={**results, **view.results}), width)]


def _said(cli: CliContext, query: str) -> set[str]:
    """Threads in which a user said it, or with a label of that name."""
    if len(query.strip()) < 3:
        return set()
    try:
        return {hit.thread_id for hit in cli.journal.search(f"{query} role:user", limit=_FURTHER).hits}
    except SessionTreeError:
        return set()  # half of a phrase, or a filter that is not finished yet


def _choose(cli: CliContext, choice: Choice) -> str:
    picker = _Picker(cli, choice)
    with _raw_screen() as keys:
        return picker.run(keys)


class _Picker:
    def __init__(self, cli: CliContext, choice: Choice) -> None:
        self._cli = cli
        self._choice = choice
        rows = tuple(choice.rows)
        self._state = PickerState(verb=choice.verb, query="", rows=rows, total=len(rows), keys=choice.keys)
        self._previews: dict[tuple[str, int], list[Line]] = {}

    def run(self, keys: Iterator[bytes]) -> str:
        self._draw()
        for key in keys:
            chosen = self._pressed(key)
            if chosen is not None:
                return chosen
            self._draw()
        raise click.exceptions.Exit(INTERRUPTED)

    def _pressed(self, key: bytes) -> str | None:
        """Do what a key says; return the id of a row once it is chosen."""
        state = self._state
        if key in _LEAVE:
            raise click.exceptions.Exit(INTERRUPTED)
        if state.rows:
            name = state.rows[state.chosen].id
            if key in _ENTER:
                return name
            if key in self._choice.switches:
                raise SwitchVerb(self._choice.switches[key], name)
            if key == _COPY:
                _copy(name)
        self._state = self._moved(key) or self._typed(key) or state
        return None

    def _moved(self, key: bytes) -> PickerState | None:
        state = self._state
        page = max(1, terminal_size().lines - 6)
        steps = ((_UP, -1), (_DOWN, 1), (_PAGE_UP, -page), (_PAGE_DOWN, page))
        step = next((by for names, by in steps if key in names), 0)
        if not step:
            return None
        return replace(state, chosen=max(0, min(len(state.rows) - 1, state.chosen + step)))

    def _typed(self, key: bytes) -> PickerState | None:
        query = self._state.query
        if key in _ERASE:
            query = query[:-1]
        elif key == b"\x15":
            query = ""
        else:
            text = key.decode("utf-8", "ignore")
            if not text.isprintable():
                return None
            query += text
        found = matching(query, self._choice.rows)
        further = self._choice.further(query) - {row.id for row in found}
        found += [row for row in self._choice.rows if row.id in further]
        return replace(self._state, query=query, rows=tuple(found), chosen=0)

    def _preview(self, width: int) -> list[Line]:
        if not self._state.rows:
            return []
        key = (self._state.rows[self._state.chosen].id, width)
        if key not in self._previews:
            self._previews[key] = self._choice.preview(*key)
        return self._previews[key]

    def _draw(self) -> None:
        width, height = terminal_size()
        lines = picker_lines(self._state, self._preview(preview_width(width)), width, height)
        out = self._cli.out
        texts = [line.cut(width).painted(has_colour=out.has_colour) for line in lines[:height]]
        below = "\r\n\x1b[J" if len(texts) < height else ""
        text = "\x1b[H" + "\r\n".join(f"\x1b[K{one}" for one in texts) + below
        sys.stderr.write(in_ascii(text) if out.is_plain_ascii else text)
        sys.stderr.flush()


def _copy(text: str) -> None:
    """Put a text into the clipboard, with the sequence that terminals have for it."""
    sys.stderr.write(f"\x1b]52;c;{base64.b64encode(text.encode()).decode()}\x07")


@contextmanager
def _raw_screen() -> Iterator[Iterator[bytes]]:
    """A screen of its own, with every key as it is pressed; both are given back at the end.

    Lines do not wrap: terminals disagree about the width of joined emoji, and one row too many would move all others. The
    cursor then stays on the last cell of a full line, so a line is erased before it is written, never after.
    """
    import termios  # noqa: PLC0415  not on every system
    import tty  # noqa: PLC0415

    terminal = sys.stdin.fileno()
    before = termios.tcgetattr(terminal)
    sys.stderr.write("\x1b[?1049h\x1b[?25l\x1b[?7l")
    try:
        tty.setraw(terminal)
        yield _keys(terminal)
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)
        sys.stderr.write("\x1b[?7h\x1b[?25h\x1b[?1049l")
        sys.stderr.flush()


def _keys(terminal: int) -> Iterator[bytes]:
    """The keys: one sequence or text at a time. An empty one says that the size may have changed."""
    size = terminal_size()
    while True:
        ready, _, _ = select.select([terminal], [], [], 0.25)
        if ready:
            data = os.read(terminal, 1024)
            if not data:
                return
            yield from _split(data)
        elif terminal_size() != size:
            size = terminal_size()
            yield b""


def _split(data: bytes) -> Iterator[bytes]:
    """Split what was read: an escape sequence is one key, so is every control character; text stays together."""
    at = 0
    while at < len(data):
        end = at + 1
        if data[at] == 0x1B and data[at + 1 : at + 2] in {b"[", b"O"}:
            end = at + 2
            while end < len(data) and not 0x40 <= data[end] <= 0x7E:
                end += 1
            end += 1
        elif data[at] >= 0x20 and data[at] != 0x7F:
            while end < len(data) and data[end] >= 0x20 and data[end] != 0x7F:
                end += 1
        yield data[at:end]
        at = end
