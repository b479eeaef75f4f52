"""Coming from other systems, and going back: import and export of sessions in the formats of other programs.

>>> import tempfile, pathlib
>>> import sessiontree as st
>>> with tempfile.TemporaryDirectory() as name, st.open("memory:") as journal:
...     thread = journal.create_thread("demo", title="Demo")
...     _ = journal.append("demo", st.user("hello"))
...     report = export_sessions(journal, pathlib.Path(name, "floret"), format="floret")
...     with st.open("memory:") as other:
...         imported = import_sessions(other, pathlib.Path(name, "floret"))
...         (detect(pathlib.Path(name, "floret")), imported.entries_added, other.path("demo")[0].message.text)
('floret', 1, 'hello')

Sources that hold nothing of the format they are said to be in: they are named, and nothing is made of them.

The formats by name, and the two verbs over all of them.
"""

from __future__ import annotations

import gc
import importlib
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Protocol, cast

from sessiontree.errors import InvalidInputError
from sessiontree.journal import Journal
from sessiontree.model import Custom, Thread
from sessiontree.model._base import Progress
from sessiontree.transfer.formats._files import ExportTarget, every_thread
from sessiontree.transfer.formats._load import load
from sessiontree.transfer.formats._records import (
    UNREADABLE,
    ExportReport,
    ImportedRecord,
    ImportedSession,
    ImportNote,
    ImportReport,
    Tally,
)

__all__ = [
    "FORMATS",
    "ExportReport",
    "Format",
    "ImportNote",
    "ImportReport",
    "detect",
    "export_sessions",
    "import_sessions",
    "note_if_nothing_came",
    "with_something_readable",
]


_MOST_BYTES_HELD = 8 * 1024 * 1024


def with_something_readable(session: ImportedSession, tally: Tally, format_name: str) -> ImportedSession | None:
    """The session; ``None`` where nothing tells that it is one: no head, and not one record that can be read."""
    if session.has_head:
        return session
    items, held, start = iter(session.items), [], tally.bytes_read
    for item in items:
        held.append(item)
        if not _is_unreadable(item) or tally.bytes_read - start > _MOST_BYTES_HELD:
            return session._replace(items=chain(held, items))
    tally.note("damage", session.place, f"nothing in it can be read as {format_name}; it was left out")
    return None


def note_if_nothing_came(tally: Tally, source: Path, format_name: str) -> None:
    if not tally.threads and not tally.has_damage:
        problem = f"holds nothing in the format {format_name}; name the file or folder that the sessions are in"
        tally.note("damage", str(source), problem)


def _is_unreadable(item: ImportedRecord) -> bool:
    return isinstance(item.payload, Custom) and item.payload.name == UNREADABLE


_OBJECTS_PER_COLLECTION = 100_000


class Format(Protocol):
    """What a format's package offers. Readers never write; they note what is broken and go on."""

    @staticmethod
    def detect(source: Path) -> bool:
        """Whether the source looks like this format."""
        ...

    @staticmethod
    def size(source: Path) -> int:
        """How many bytes a reader will go through."""
        ...

    @staticmethod
    def sessions(source: Path, tally: Tally) -> Iterator[ImportedSession]:
        """The conversations of a source, one after the other."""
        ...

    @staticmethod
    def write(journal: Journal, threads: Iterator[Thread], target: ExportTarget) -> None:
        """Write threads in this format."""
        ...


FORMATS = ("native", "floret", "ggcode", "zimaos", "openrouter", "pi", "picoclaw")
"""Names of the formats, the most telling first."""


def named(name: str) -> Format:
    if name not in FORMATS:
        raise InvalidInputError(f"there is no format {name!r}; there are {', '.join(sorted(FORMATS))}")
    return cast(Format, importlib.import_module(f"sessiontree.transfer.formats.{name}"))


def detect(source: str | os.PathLike[str]) -> str | None:
    """The name of the format that a file or folder is in, or ``None``."""
    path = Path(source)
    return next((name for name in FORMATS if named(name).detect(path)), None)


def import_sessions(
    journal: Journal,
    source: str | os.PathLike[str],
    *,
    format: str | None = None,
    prefix: str = "",
    progress: Progress | None = None,
) -> ImportReport:
    """Bring every session of a source into a journal.

    Repeating it is a no-op; when the source has grown, only what is new is added. The source is never written to.
    Ids and times are those of the source; ``prefix`` goes in front of the thread ids. What cannot be read is named in
    the report, and the rest comes in. ``progress`` hears how many bytes were read, and how many there are.
    """
    path = Path(source)
    if not path.exists():
        raise InvalidInputError(f"{path} does not exist; name the file or folder that the sessions are in")
    name = format or detect(path)
    if name is None:
        raise InvalidInputError(f"{path} is in no format that is known here; there are {', '.join(sorted(FORMATS))}")
    reader = named(name)
    tally = Tally(reader.size(path), progress)
    with _fewer_collections():
        for found in reader.sessions(path, tally):
            session = with_something_readable(found, tally, name)
            if session is not None:
                load(journal, session, tally, format_name=name, prefix=prefix)
    if not reader.detect(path):
        note_if_nothing_came(tally, path, name)
    return tally.report(name, str(path))


@contextmanager
def _fewer_collections() -> Iterator[None]:
    """An import makes many objects and no cycles: looking for cycles all the time would cost a fifth of it."""
    thresholds = gc.get_threshold()
    gc.set_threshold(max(thresholds[0], _OBJECTS_PER_COLLECTION), *thresholds[1:])
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)


def export_sessions(
    journal: Journal,
    target: str | os.PathLike[str],
    *,
    format: str,
    threads: Iterable[str] | None = None,
) -> ExportReport:
    """Write threads (all of them, or those named) into an empty folder in another program's format.

    What was imported and not changed since comes out byte for byte where the format is ``floret``, ``picoclaw`` or
    ``ggcode``. What the format cannot hold is named in the report.
    """
    writer = named(format)
    folder = ExportTarget(Path(target))
    writer.write(journal, every_thread(journal, threads), folder)
    return folder.report(format)
