"""What every verb works with: the settings of this run, the journal, the way out."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from sessiontree.cli.location import Location, locate
from sessiontree.cli.output import Output
from sessiontree.opening import open as open_journal
from sessiontree.progress import Progress

if TYPE_CHECKING:
    from sessiontree.journal import Journal

__all__ = ["World"]


def _ignore(_done: int, _total: int) -> None:
    """No bar."""


class World:
    """Made once for a run; flags that stand after the verb are put in before the verb starts."""

    def __init__(self) -> None:
        self.store_flag: str | None = None
        self.is_json = False
        self.is_quiet = False
        self.is_colourless = False
        self._journal: Journal | None = None
        self._output: Output | None = None

    @property
    def location(self) -> Location:
        return locate(self.store_flag, os.environ, Path.cwd())

    @property
    def journal(self) -> Journal:
        """Opened at the first use; a store that is not there is made."""
        if self._journal is None:
            self._journal = open_journal(self.location.url)
        return self._journal

    @property
    def out(self) -> Output:
        if self._output is None:
            self._output = Output(
                is_json=self.is_json, is_quiet=self.is_quiet, is_colourless=self.is_colourless, environment=os.environ
            )
        return self._output

    @property
    def can_ask(self) -> bool:
        """Whether a person is there to answer."""
        return sys.stdin.isatty() and sys.stderr.isatty() and not self.is_json

    def close(self) -> None:
        if self._journal is not None:
            self._journal.close()
            self._journal = None

    @contextmanager
    def progress(self, what: str) -> Iterator[Progress]:
        """A bar with rate and time left on stderr, for work that lasts longer than a second; a clock while nobody knows
        how much there is."""
        if self.is_quiet or not sys.stderr.isatty():
            yield _ignore
            return
        from sessiontree.cli.render.progress import bar  # noqa: PLC0415  rich's bars are slow to load

        with bar(what) as advance:
            yield advance
