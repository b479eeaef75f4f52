"""Writing an export: into an empty folder only, so that nobody's data is overwritten."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from msgspec.structs import replace

from sessiontree.errors import InvalidInputError
from sessiontree.formats.report import ExportReport, Note, NoteKind
from sessiontree.journal import Journal
from sessiontree.model import Entry, Thread

__all__ = ["Target", "every_thread", "joined", "pages", "without_foreign_origins"]

_PAGE = 1000


class Target:
    """The folder of an export and the account of it."""

    def __init__(self, folder: Path) -> None:
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise InvalidInputError(
                f"{folder} is not an empty folder; an export overwrites nothing, choose another one"
            )
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise InvalidInputError(f"{folder} cannot be made: {error.strerror}; choose another folder") from error
        self.folder = folder
        self.threads: list[str] = []
        self.entries = 0
        self._files: dict[str, None] = {}
        self._notes: list[Note] = []

    def write(self, name: str, parts: Iterable[bytes]) -> None:
        """Write a file under the folder; ``name`` may name one folder in it. Nothing to write is no file."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with path.open("xb") as file:
            for part in parts:
                file.write(part)
        path.chmod(0o600)
        self._files[name] = None

    def is_taken(self, name: str) -> bool:
        """Whether a file of that name, or a folder, was written already."""
        return (self.folder / name).exists()

    def note(self, kind: NoteKind, problem: str, *, thread_id: str = "") -> None:
        self._notes.append(Note(kind=kind, place=str(self.folder), problem=problem, thread_id=thread_id))

    def report(self, format_name: str) -> ExportReport:
        return ExportReport(
            format=format_name,
            target=str(self.folder),
            threads=tuple(self.threads),
            entries=self.entries,
            files=tuple(self._files),
            notes=tuple(self._notes),
        )


def every_thread(journal: Journal, thread_ids: Iterable[str] | None) -> Iterator[Thread]:
    """The threads of an export: the named ones, or all, archived ones too."""
    if thread_ids is not None:
        yield from (journal.thread(thread_id) for thread_id in thread_ids)
        return
    cursor: str | None = None
    while True:
        page = journal.list_threads(is_archived=None, order="created", limit=500, cursor=cursor)
        yield from page
        cursor = page.cursor
        if cursor is None:
            return


def pages(journal: Journal, thread_id: str) -> Iterator[Entry]:
    """All entries that a thread sees, in the order of their commits, without holding them all."""
    after: str | None = None
    while found := journal.entries(thread_id, after=after, limit=_PAGE):
        yield from found
        after = found[-1].id


def joined(lines: Iterable[tuple[bytes, bool]]) -> Iterator[bytes]:
    """Lines with line breaks; the last one has none if its flag says that it never had one."""
    is_first, is_open = True, False
    for line, has_no_end in lines:
        if not is_first:
            yield b"\n"
        yield line
        is_first, is_open = False, has_no_end
    if not is_first and not is_open:
        yield b"\n"


def without_foreign_origins(
    entries: Iterable[Entry], thread: Thread, format_name: str, *, common: Collection[str] = ()
) -> Iterator[Entry]:
    """Entries for a writer: what an importer of another format kept for its own way back is not for this one.

    ``common`` names what means the same in every format.
    """
    if thread.origin.get("format") == format_name:
        yield from entries
        return
    for entry in entries:
        origin = getattr(entry.payload, "origin", None)
        if origin:
            kept = {name: value for name, value in origin.items() if name in common}
            yield replace(entry, payload=replace(entry.payload, origin=kept))
        else:
            yield entry
