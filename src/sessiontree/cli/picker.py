"""Let a person choose a thread: type to filter, move with the arrows, see a preview."""

from __future__ import annotations

import base64
import os
import select
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from shutil import get_terminal_size

import click
from msgspec.structs import replace

from sessiontree.cli.context import CliContext
from sessiontree.cli.exit_codes import INTERRUPTED, SwitchVerb, UsageError
from sessiontree.cli.screen.lines import Line, in_ascii
from sessiontree.cli.screen.picker import PickerState, matching, picker_lines
from sessiontree.cli.screen.threads import head_lines
from sessiontree.cli.screen.tree import path_lines
from sessiontree.cli.views import build_view
from sessiontree.errors import SessionTreeError
from sessiontree.model import Thread
from sessiontree.render.threads import summary_of

__all__ = ["pick_thread"]


_CONSIDERED = 1000
_PREVIEWED = 200
_FURTHER = 20
_UP, _DOWN = {b"\x1b[A", b"\x1bOA", b"\x10"}, {b"\x1b[B", b"\x1bOB", b"\x0e"}
_PAGE_UP, _PAGE_DOWN = {b"\x1b[5~"}, {b"\x1b[6~"}
_ENTER = {b"\r", b"\n"}
_LEAVE = {b"\x1b", b"\x03", b"\x04"}
_ERASE = {b"\x7f", b"\x08"}


def pick_thread(cli: CliContext, verb: str) -> Thread:
    """Let the user choose a thread. Leaving exits with code 130; another verb is raised as SwitchVerb."""
    threads = cli.journal.list_threads(limit=_CONSIDERED, is_empty=False).threads
    if not threads:
        raise UsageError("There are no threads to choose from; start one with: sessiontree new.")
    picker = _Picker(cli, verb, threads)
    with _raw_screen() as keys:
        return picker.run(keys)


class _Picker:
    def __init__(self, cli: CliContext, verb: str, threads: tuple[Thread, ...]) -> None:
        self._cli = cli
        self._threads = threads
        self._state = PickerState(verb=verb, query="", threads=threads, total=len(threads))
        self._previews: dict[tuple[str, int], list[Line]] = {}

    def run(self, keys: Iterator[bytes]) -> Thread:
        self._draw()
        for key in keys:
            chosen = self._pressed(key)
            if chosen is not None:
                return chosen
            self._draw()
        raise click.exceptions.Exit(INTERRUPTED)

    def _pressed(self, key: bytes) -> Thread | None:
        """Do what a key says; return the thread once it is chosen."""
        state = self._state
        thread = state.threads[state.chosen] if state.threads else None
        if key in _LEAVE:
            raise click.exceptions.Exit(INTERRUPTED)
        if thread is not None:
            if key in _ENTER:
                return thread
            if key == b"\t":
                raise SwitchVerb("tree", thread.id)
            if key == b"\x06":
                raise SwitchVerb("fork", thread.id)
            if key == b"\x19":
                _copy(thread.id)
        self._state = self._moved(key) or self._typed(key) or state
        return None

    def _moved(self, key: bytes) -> PickerState | None:
        state = self._state
        page = max(1, get_terminal_size().lines - 6)
        steps = ((_UP, -1), (_DOWN, 1), (_PAGE_UP, -page), (_PAGE_DOWN, page))
        step = next((by for names, by in steps if key in names), 0)
        if not step:
            return None
        return replace(state, chosen=max(0, min(len(state.threads) - 1, state.chosen + step)))

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
        found = matching(query, self._threads, self._cli.now)
        found += [thread for thread in self._said(query) if thread not in found]
        return replace(self._state, query=query, threads=tuple(found), chosen=0)

    def _said(self, query: str) -> list[Thread]:
        """Threads in which a user said it, or with a label of that name."""
        if len(query.strip()) < 3:
            return []
        try:
            page = self._cli.journal.search(f"{query} role:user", limit=_FURTHER)
        except SessionTreeError:
            return []  # half of a phrase, or a filter that is not finished yet
        wanted = {hit.thread_id for hit in page.hits}
        return [thread for thread in self._threads if thread.id in wanted]

    def _preview(self, width: int) -> list[Line]:
        if not self._state.threads:
            return []
        thread = self._state.threads[self._state.chosen]
        key = (thread.id, width)
        if key not in self._previews:
            path = self._cli.journal.path(thread.id, limit=_PREVIEWED)
            row = summary_of(thread, path, self._cli.now)
            home = os.path.expanduser("~")  # noqa: PTH111  as everywhere, a string is enough
            head = head_lines(replace(row, branches=None), self._cli.threads, self._cli.now, width, home)
            self._previews[key] = [*head, *path_lines(build_view(self._cli, thread, path, width=width), width)]
        return self._previews[key]

    def _draw(self) -> None:
        width, height = get_terminal_size()
        is_beside = width >= 90
        preview = self._preview(max(20, width - min(62, width * 48 // 100) - 3 if is_beside else width - 1))
        # The end of a conversation says most, so its last rows are shown below the head.
        shown = [*preview[:3], *preview[3:][-(height - 5) :]] if is_beside else preview[3:][-7:]
        lines = picker_lines(self._state, shown, self._cli.threads, self._cli.now, width, height)
        out = self._cli.out
        texts = [line.cut(width).painted(has_colour=out.has_colour) for line in lines[:height]]
        text = "\x1b[H" + "\r\n".join(f"{one}\x1b[K" for one in texts) + "\x1b[J"
        sys.stderr.write(in_ascii(text) if out.is_plain_ascii else text)
        sys.stderr.flush()


def _copy(text: str) -> None:
    """Put a text into the clipboard, with the sequence that terminals have for it."""
    sys.stderr.write(f"\x1b]52;c;{base64.b64encode(text.encode()).decode()}\x07")


@contextmanager
def _raw_screen() -> Iterator[Iterator[bytes]]:
    """A screen of its own, with every key as it is pressed; both are given back at the end."""
    import termios  # noqa: PLC0415  not on every system
    import tty  # noqa: PLC0415

    terminal = sys.stdin.fileno()
    before = termios.tcgetattr(terminal)
    sys.stderr.write("\x1b[?1049h\x1b[?25l")
    try:
        tty.setraw(terminal)
        yield _keys(terminal)
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)
        sys.stderr.write("\x1b[?25h\x1b[?1049l")
        sys.stderr.flush()


def _keys(terminal: int) -> Iterator[bytes]:
    """The keys: one sequence or text at a time. An empty one says that the size may have changed."""
    size = get_terminal_size()
    while True:
        ready, _, _ = select.select([terminal], [], [], 0.25)
        if ready:
            data = os.read(terminal, 1024)
            if not data:
                return
            yield from _split(data)
        elif get_terminal_size() != size:
            size = get_terminal_size()
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
