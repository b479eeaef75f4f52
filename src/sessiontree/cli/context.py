"""What every command works with: the settings of this run, the journal, the output."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from sessiontree.cli.exit_codes import UsageError
from sessiontree.cli.output import Output
from sessiontree.model import Record

if TYPE_CHECKING:
    from sessiontree.journal import Journal
    from sessiontree.model import Progress

__all__ = ["COMPLETION_VARIABLE", "PROJECT_FILE", "CliContext", "Location", "locate"]


PROJECT_FILE = ".sessiontree.toml"
COMPLETION_VARIABLE = "_SESSIONTREE_COMPLETE"


class Location(Record, frozen=True, kw_only=True):
    """The address of a store, and why this store is used."""

    url: str
    reason: str


def locate(flag: str | None, environment: Mapping[str, str], folder: Path) -> Location:
    """Find the store: the flag, the environment variable, the project file or the data folder, in this order."""
    if flag is not None:
        return Location(url=flag, reason="given with --store")
    from sessiontree.journal.address import STORE_VARIABLE, data_file  # noqa: PLC0415  --help does not need it

    if environment.get(STORE_VARIABLE):
        return Location(url=environment[STORE_VARIABLE], reason=f"set by the environment variable {STORE_VARIABLE}")
    project = _project_file(folder)
    if project is not None:
        return Location(url=_store_in(project), reason=f"set by the project file {project}")
    return Location(url=data_file(), reason="the default, in the platform's data folder")


def _project_file(folder: Path) -> Path | None:
    """The nearest project file, from the folder upwards."""
    for parent in (folder, *folder.parents):
        candidate = parent / PROJECT_FILE
        if candidate.is_file():
            return candidate
    return None


def _store_in(project: Path) -> str:
    import tomllib  # noqa: PLC0415  only needed with a project file

    try:
        settings = tomllib.loads(project.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"{project} cannot be read: {error}") from error
    store = settings.get("store")
    if not isinstance(store, str) or not store:
        raise UsageError(f'{project} does not name a store; add a line such as: store = "conversations.db"')
    return (
        store if ":" in store else str(project.parent / Path(store).expanduser()) + ("/" if store.endswith("/") else "")
    )


def _ignore(_done: int, _total: int) -> None:
    """Show no progress."""


class CliContext:
    """One run of the command. The shared options are set as attributes before the command starts."""

    def __init__(self) -> None:
        self.store_flag: str | None = None
        self.is_json = False
        self.is_quiet = False
        self.is_colourless = False
        self._journal: Journal | None = None
        self._output: Output | None = None

    @property
    def location(self) -> Location:
        """The store that this run uses."""
        return locate(self.store_flag, os.environ, Path.cwd())

    @property
    def journal(self) -> Journal:
        """The journal, opened on first use; a store that does not exist is created."""
        if self._journal is None:
            from sessiontree.journal.opening import open as open_journal  # noqa: PLC0415  --help does not need it

            self._journal = open_journal(self.location.url)
        return self._journal

    @property
    def out(self) -> Output:
        """The output of this run."""
        if self._output is None:
            self._output = Output(
                is_json=self.is_json, is_quiet=self.is_quiet, is_colourless=self.is_colourless, environment=os.environ
            )
        return self._output

    @property
    def can_ask(self) -> bool:
        """Whether a person can answer a question."""
        return sys.stdin.isatty() and sys.stderr.isatty() and not self.is_json

    def close(self) -> None:
        """Close the journal, if it was opened."""
        if self._journal is not None:
            self._journal.close()
            self._journal = None

    @contextmanager
    def progress(self, what: str) -> Iterator[Progress]:
        """Show a progress bar on stderr for work that takes longer than a second.

        The body calls the yielded function with what is done and the total. Until its first call a timer is shown.
        """
        if self.is_quiet or not sys.stderr.isatty():
            yield _ignore
            return
        from sessiontree.cli.render.progress import progress_bar  # noqa: PLC0415  Rich is slow to load

        with progress_bar(what) as advance:
            yield advance
