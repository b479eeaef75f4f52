"""What every command works with: the settings of this run, the journal, the output."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from sessiontree.cli.exit_codes import USAGE, MissingError, UsageError
from sessiontree.cli.output import Output
from sessiontree.cli.screen.lines import ATTENTION, BOLD, DIM, Line
from sessiontree.cli.suggestions import did_you_mean, similar
from sessiontree.cli.typed import typed
from sessiontree.model import Record
from sessiontree.model.passwords import address_without_password
from sessiontree.render.figures import count
from sessiontree.render.ids import ShortIds
from sessiontree.render.names import address_of

if TYPE_CHECKING:
    from sessiontree.journal import Journal
    from sessiontree.model import Progress

__all__ = ["COMPLETION_VARIABLE", "PROJECT_FILE", "CliContext", "Location", "is_missing", "locate"]


PROJECT_FILE = ".sessiontree.toml"
COMPLETION_VARIABLE = "_SESSIONTREE_COMPLETE"


_MOST_SHORTENED = 100_000
"""In a store with more threads, lists show whole ids: comparing all of them would take too long."""


class Location(Record, frozen=True, kw_only=True):
    """The address of a store, and why this store is used."""

    url: str
    reason: str
    is_default: bool = False

    @property
    def shown(self) -> str:
        """The address without a password."""
        return address_without_password(self.url)

    @property
    def name(self) -> str:
        """The name of the store: the last part of its address."""
        return self.shown.partition("?")[0].rstrip("/").rsplit("/", 1)[-1] or self.shown


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
    return Location(url=data_file(), reason="the default, in the platform's data folder", is_default=True)


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
    from sessiontree.journal.address import is_connection_string  # noqa: PLC0415  --help does not need it

    if ":" in store or is_connection_string(store):
        return store
    return str(project.parent / Path(store).expanduser()) + ("/" if store.endswith("/") else "")


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
    def now(self) -> datetime:
        """The time, in the local time zone."""
        return datetime.now().astimezone()

    @property
    def now_ns(self) -> int:
        """The time in nanoseconds since 1970."""
        return int(self.now.timestamp() * 1e9)

    @property
    def journal(self) -> Journal:
        """The journal, opened on first use. A store that is not there is not created; the default one is then empty."""
        return self._open(self.readable_url) if self._journal is None else self._journal

    @property
    def readable_url(self) -> str:
        """The address to read from: that of the store, or of an empty one if the default store is not there yet."""
        location = self.location
        if not is_missing(location.url):
            return location.url
        if not location.is_default:
            raise _no_store(location)
        return "memory:"

    def open_existing(self) -> Journal:
        """Open the journal; raise MissingError if the store is not there, also for the default one."""
        if self._journal is None and is_missing(self.location.url):
            raise _no_store(self.location)
        return self.journal

    def create_journal(self) -> Journal:
        """Open the journal, and create the store if it is not there yet."""
        return self._open(self.location.url) if self._journal is None else self._journal

    def _open(self, url: str) -> Journal:
        from sessiontree.journal.opening import open as open_journal  # noqa: PLC0415  --help does not need it

        self._journal = open_journal(url)
        return self._journal

    @cached_property
    def threads(self) -> ShortIds:
        """The short forms of the ids of all threads."""
        found = self.journal.thread_ids("", limit=_MOST_SHORTENED + 1)
        return ShortIds(found if len(found) <= _MOST_SHORTENED else ())

    def entries(self, thread_id: str) -> ShortIds:
        """Return the short forms of the ids of all entries of a thread."""
        return ShortIds(self.journal.entry_ids(thread_id, "", limit=10_000_000))

    def typed(self, thread_id: str, entry_id: str | None = None) -> str:
        """Return the address of a thread or an entry as it is typed into a shell, for a command that is shown."""
        if entry_id is None:
            return typed(self.threads[thread_id])
        return typed(self.address(thread_id, self.entries(thread_id)[entry_id]))

    def address(self, thread_id: str, name: str) -> str:
        """Return the address of an entry by its short id or its label."""
        return address_of(self.journal, self.threads[thread_id], name)

    @property
    def out(self) -> Output:
        """The output of this run."""
        if self._output is None:
            self._output = Output(
                is_json=self.is_json,
                is_quiet=self.is_quiet,
                is_colourless=self.is_colourless,
                environment=os.environ,
                store=address_without_password(self.store_flag or ""),
            )
        return self._output

    @property
    def can_ask(self) -> bool:
        """Whether a person can answer a question."""
        return sys.stdin.isatty() and sys.stderr.isatty() and not self.is_json

    def confirms(self, question: str, *, default: bool) -> bool:
        """Ask a question, and return the answer; an empty line means ``default``."""
        self.out.ask(Line(("? ", ATTENTION), (question, BOLD), (" [Y/n]" if default else " [y/N]", DIM)))
        answer = _read_answer()
        return default if answer.strip() == "" and answer else answer.strip().lower() in {"y", "yes"}

    def declined(self, what: str, *hint: tuple[str, str]) -> NoReturn:
        """Say what did not happen because the user said no, and end the command."""
        self.out.info(what)
        if hint:
            self.out.hint(*hint)
        raise click.exceptions.Exit(USAGE)

    def asks(self, question: str) -> str:
        """Ask for a line of text, and return it; an empty one is refused."""
        self.out.ask(Line(("? ", ATTENTION), (question, BOLD)))
        answer = _read_answer().strip()
        if not answer:
            self.declined("Nothing was changed.")
        return answer

    def close(self) -> None:
        """Close the journal, if it was opened."""
        if self._journal is not None:
            self._journal.close()
            self._journal = None

    @contextmanager
    def progress(self, what: str, figure: Callable[[int], str] = count) -> Iterator[Progress]:
        """Show a progress bar on stderr for work that takes longer than a second.

        The body calls the yielded function with what is done and the total, which are written by ``figure``. Until its first
        call a timer is shown.
        """
        if self.is_quiet or not sys.stderr.isatty():
            yield _ignore
            return
        from sessiontree.cli.screen.progress import progress_bar  # noqa: PLC0415  Rich is slow to load

        with progress_bar(what, figure) as advance:
            yield advance


def _read_answer() -> str:
    """Read a line; after a question that got none, what is said next begins on a line of its own."""
    answer = ""
    try:
        answer = sys.stdin.readline()
    finally:
        if not answer.endswith("\n"):
            sys.stderr.write("\n")
    return answer


def is_missing(url: str) -> bool:
    """Return whether an address names a file or folder that is not there."""
    from sessiontree.journal.address import parse_url  # noqa: PLC0415  --help does not need it

    address = parse_url(url)
    if address.kind not in {"sqlite", "jsonl"}:
        return False
    try:
        os.stat(address.target)  # noqa: PTH116  pathlib is slow
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False  # it may be there: opening it says why it cannot be reached
    return False


def _no_store(location: Location) -> MissingError:
    path = Path(location.url.partition(":///")[2] or location.url)
    siblings: list[str] = []
    with suppress(OSError):  # a folder that is not there, or that may not be listed
        siblings = [one.name for one in path.parent.iterdir() if one.suffix == path.suffix or one.is_dir()]
    advice = did_you_mean([(str(path.with_name(name)), "") for name in similar(path.name, siblings)])
    advice.append(Line(("  a new store:  ", DIM), f"sessiontree new --store {typed(location.shown)}"))
    return MissingError(f"There is no store at {location.shown}.", advice)
