"""What every verb works with: the settings of this run, the journal, the way out.

Where the store is: flag, environment, project file, data folder, in that order.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from sessiontree.cli.exit_codes import UsageError
from sessiontree.cli.output import Output
from sessiontree.journal.opening import open as open_journal
from sessiontree.model._base import Progress, Record

if TYPE_CHECKING:
    from sessiontree.journal import Journal

__all__ = ["PROJECT_FILE", "VARIABLE", "CliContext", "Location", "locate"]


PROJECT_FILE = ".sessiontree.toml"
VARIABLE = "SESSIONTREE_STORE"


class Location(Record, frozen=True, kw_only=True):
    """A store's address and why it is that one."""

    url: str
    reason: str


def locate(flag: str | None, environment: Mapping[str, str], folder: Path) -> Location:
    if flag is not None:
        return Location(url=flag, reason="--store says so")
    if environment.get(VARIABLE):
        return Location(url=environment[VARIABLE], reason=f"the environment variable {VARIABLE} says so")
    project = _project_file(folder)
    if project is not None:
        return Location(url=_store_in(project), reason=f"the project file {project} says so")
    return Location(url=str(_data_file(environment)), reason="nothing else says so: this is the platform's data folder")


def _project_file(folder: Path) -> Path | None:
    """The nearest project file, from the folder upwards."""
    for place in (folder, *folder.parents):
        candidate = place / PROJECT_FILE
        if candidate.is_file():
            return candidate
    return None


def _store_in(project: Path) -> str:
    import tomllib  # noqa: PLC0415  most runs need it not

    try:
        settings = tomllib.loads(project.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"{project} cannot be read: {error}") from error
    store = settings.get("store")
    if not isinstance(store, str) or not store:
        raise UsageError(f'{project} names no store; write a line such as: store = "conversations.db"')
    return (
        store if ":" in store else str(project.parent / Path(store).expanduser()) + ("/" if store.endswith("/") else "")
    )


def _data_file(environment: Mapping[str, str]) -> Path:
    if os.name == "posix" and environment.get("XDG_DATA_HOME"):
        return Path(environment["XDG_DATA_HOME"]) / "sessiontree" / "journal.db"
    from platformdirs import user_data_path  # noqa: PLC0415  only needed where nothing else says where

    return user_data_path("sessiontree", appauthor=False) / "journal.db"


def _ignore(_done: int, _total: int) -> None:
    """No bar."""


class CliContext:
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
        from sessiontree.cli.render.text import bar  # noqa: PLC0415  rich's bars are slow to load

        with bar(what) as advance:
            yield advance
