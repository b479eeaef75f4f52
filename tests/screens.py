"""Running commands on a screen of any width, in this process, always at the same time of day; and pictures of it."""

from __future__ import annotations

import hashlib
import io
import os
import re
import shutil
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from html import escape
from pathlib import Path

import pytest

from sample_store import NOW
from sessiontree.cli import app, context
from sessiontree.cli.screen import progress
from sessiontree.journal import opening
from sessiontree.journal.address import data_file
from sessiontree.render.cells import cell_width

SGR = re.compile(r"\x1b\[([0-9;]*)m")


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


class Screen:
    """A terminal of some width in front of a store, at a machine where it is always the same time.

    Ids that commands make are always the same too, in the order in which they are made since ``restart``.
    """

    def __init__(self, patch: pytest.MonkeyPatch, store: Path, width: int = 100) -> None:
        self._patch = patch
        self.store = store
        self.server = ""
        self._made = 0
        patch.setattr(context.CliContext, "now", property(lambda _: NOW))
        patch.setattr(
            opening, "open", partial(opening.open, clock=self._clock, random=self._random, durability="process_crash")
        )
        patch.setattr(uuid, "uuid4", lambda: uuid.UUID(bytes=self._random(16), version=4))
        patch.setattr(progress, "_DELAY_SECONDS", 3600)  # no progress bar, however slow the machine is
        for name in list(os.environ):
            if name.startswith(("SESSIONTREE", "NO_COLOR", "XDG_", "CLAUDE", "CODEX", "GOOSE")):
                patch.delenv(name)
        for name, value in {
            "TERM": "xterm",
            "HOME": "/home/ann",
            "PAGER": "cat",
            "LINES": "40",
            "LC_ALL": "C.UTF-8",
        }.items():
            patch.setenv(name, value)
        patch.setenv("COLUMNS", str(width))

    @property
    def address(self) -> Path | str:
        """The store: a path, or a database of a server if ``server`` names one."""
        return self.server or self.store

    def restart(self) -> None:
        """Make the same ids again."""
        self._made = 0

    def _clock(self) -> int:
        self._made += 1
        return int(NOW.timestamp()) * 10**9 + self._made

    def _random(self, size: int) -> bytes:
        self._made += 1
        return hashlib.sha256(str(self._made).encode()).digest()[:size]

    def resize(self, width: int) -> None:
        self._patch.setenv("COLUMNS", str(width))

    def set(self, name: str, value: str) -> None:
        self._patch.setenv(name, value)

    def run(self, *arguments: str, typed: str = "", code: int | None = 0) -> str:
        """What a command shows in the folder of the store: data and messages together, with the codes of colours."""
        shown = Terminal()
        given = Terminal(typed)
        self._use_store()
        for name, stream in (("stdout", shown), ("stderr", shown), ("stdin", given)):
            self._patch.setattr(sys, name, stream)
        with pytest.raises(SystemExit) as end:
            app.run(list(arguments))
        assert code is None or (end.value.code or 0) == code, shown.getvalue()
        return shown.getvalue()

    def _use_store(self) -> None:
        """Work in the folder of the store, so that messages do not depend on where that is."""
        self._patch.chdir(self.store.parent)
        if self.server:
            self._patch.setenv("SESSIONTREE_STORE", self.server)
        elif str(self.store) == data_file():
            self._patch.delenv("SESSIONTREE_STORE", raising=False)
        else:
            self._patch.setenv("SESSIONTREE_STORE", self.store.name)

    def piped(self, *arguments: str) -> str:
        """What a command writes into a pipe."""
        data, messages = io.StringIO(), io.StringIO()
        self._use_store()
        for name, stream in (("stdout", data), ("stderr", messages), ("stdin", io.StringIO())):
            self._patch.setattr(sys, name, stream)
        with pytest.raises(SystemExit) as end:
            app.run(list(arguments))
        assert not end.value.code, messages.getvalue()
        return data.getvalue()


@contextmanager
def put_back(folder: Path) -> Iterator[None]:
    """Make a folder as it was before, so that the next command sees the same."""
    before = {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()}
    yield
    for one in folder.iterdir():
        if one.is_dir():
            shutil.rmtree(one)
        else:
            one.unlink()
    for file, content in before.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)


def plain(shown: str) -> str:
    return SGR.sub("", shown)


def spans(line: str) -> list[tuple[str, str]]:
    """The pieces of a line with their codes."""
    pieces = SGR.split(line)
    return [(text, style) for text, style in zip(pieces[::2], ["", *pieces[1::2]], strict=True) if text]


# The 16 colours of two common themes: GitHub's dark and light.
THEMES: dict[str, dict[str, str]] = {
    "dark": {"bg": "#0d1117", "fg": "#e6edf3", "dim": "#8b949e", "31": "#ff7b72", "32": "#56d364", "33": "#e3b341", "34": "#6cb6ff", "35": "#d2a8ff", "36": "#39c5cf"},
    "light": {"bg": "#ffffff", "fg": "#1f2328", "dim": "#6e7781", "31": "#cf222e", "32": "#1a7f37", "33": "#9a6700", "34": "#0969da", "35": "#8250df", "36": "#1b7c83"},
}  # fmt: skip
_CELL, _ROW, _EDGE = 8.4, 18, 14
_WORDS = re.compile(r"\S+(?: \S+)*")


def picture(shown: str, theme: str, width: int) -> str:
    """What a terminal showed, as SVG: text at its cells, no font and no file from elsewhere."""
    colours = THEMES[theme]
    lines = shown.rstrip("\n").split("\n")
    wide, high = round(width * _CELL + 2 * _EDGE), len(lines) * _ROW + 2 * _EDGE
    font = 'font-family="ui-monospace,SFMono-Regular,Menlo,\'DejaVu Sans Mono\',monospace" font-size="14"'
    rows = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" width="{wide}" {font}>',
        f'<rect width="100%" height="100%" rx="8" fill="{colours["bg"]}"/>',
    ]
    for number, line in enumerate(lines):
        at = 0
        for text, style in spans(line):
            if text.strip():
                rows.append(_text(text, style, colours, _EDGE + at * _CELL, _EDGE + number * _ROW + 13))
            at += cell_width(text)
    return "\n".join([*rows, "</svg>", ""])


def _text(text: str, style: str, colours: dict[str, str], x: float, y: int) -> str:
    codes = style.split(";")
    fill = next((colours[code] for code in codes if code in colours), colours["dim"] if "2" in codes else colours["fg"])
    extra = ' font-weight="bold"' if "1" in codes else ""
    extra += ' font-style="italic"' if "3" in codes else ""
    extra += ' text-decoration="underline"' if "4" in codes else ""
    mark = (
        f'<rect x="{x:.1f}" y="{y - 13}" width="{_length(text)}" height="{_ROW}" fill="{fill}"/>'
        if "7" in codes
        else ""
    )
    fill = colours["bg"] if "7" in codes else fill
    # Browsers collapse spaces in SVG, so each run of words has a place of its own.
    words = (
        f'<text x="{x + _length(text[: run.start()]):.1f}" y="{y}" fill="{fill}" textLength="{_length(run[0])}"{extra}>{escape(run[0])}</text>'
        for run in _WORDS.finditer(text)
    )
    return mark + "".join(words)


def _length(text: str) -> float:
    return round(cell_width(text) * _CELL, 1)
