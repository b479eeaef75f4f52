"""What an import or an export did, and everything about it that a person should know."""

from __future__ import annotations

from typing import Literal

from sessiontree.model.record import Record
from sessiontree.progress import Progress

__all__ = ["ExportReport", "ImportReport", "Note", "NoteKind", "Tally"]

NoteKind = Literal["damage", "repair", "conflict", "loss", "hint"]
"""damage: could not be read; repair: was put right; conflict: the journal has something else; loss: cannot be said
in the target's format; hint: worth knowing."""

MOST_NOTES = 10_000


class Note(Record, frozen=True, kw_only=True):
    """One finding: where it is (a file, a byte in it) and what it is."""

    kind: NoteKind
    place: str
    problem: str
    offset: int = 0
    size: int = 0
    thread_id: str = ""


class ImportReport(Record, frozen=True, kw_only=True):
    format: str
    source: str
    threads: tuple[str, ...] = ()
    created: int = 0
    entries_added: int = 0
    entries_known: int = 0
    bytes_read: int = 0
    notes: tuple[Note, ...] = ()
    notes_left_out: int = 0

    def of_kind(self, kind: NoteKind) -> tuple[Note, ...]:
        return tuple(note for note in self.notes if note.kind == kind)

    @property
    def damage(self) -> tuple[Note, ...]:
        """What could not be read."""
        return self.of_kind("damage")

    @property
    def repairs(self) -> tuple[Note, ...]:
        """What was put right on the way in."""
        return self.of_kind("repair")

    @property
    def conflicts(self) -> tuple[Note, ...]:
        """What the journal already holds with other content; it was left as it is."""
        return self.of_kind("conflict")


class ExportReport(Record, frozen=True, kw_only=True):
    format: str
    target: str
    threads: tuple[str, ...] = ()
    entries: int = 0
    files: tuple[str, ...] = ()
    notes: tuple[Note, ...] = ()

    @property
    def losses(self) -> tuple[Note, ...]:
        """What the target's format cannot hold."""
        return tuple(note for note in self.notes if note.kind == "loss")


class Tally:
    """Counts while an import runs."""

    def __init__(self, total_bytes: int = 0, progress: Progress | None = None) -> None:
        self.threads: dict[str, None] = {}
        self.created = 0
        self.added = 0
        self.known = 0
        self.bytes_read = 0
        self.notes: list[Note] = []
        self.notes_left_out = 0
        self._total = total_bytes
        self._progress = progress

    @property
    def has_damage(self) -> bool:
        return any(note.kind == "damage" for note in self.notes)

    def advance(self, size: int) -> None:
        self.bytes_read += size
        if self._progress is not None:
            self._progress(self.bytes_read, max(self._total, self.bytes_read))

    def note(
        self, kind: NoteKind, place: str, problem: str, *, offset: int = 0, size: int = 0, thread_id: str = ""
    ) -> None:
        if len(self.notes) >= MOST_NOTES:
            self.notes_left_out += 1
            return
        found = Note(kind=kind, place=place, problem=problem, offset=offset, size=size, thread_id=thread_id)
        self.notes.append(found)

    def report(self, format_name: str, source: str) -> ImportReport:
        return ImportReport(
            format=format_name,
            source=source,
            threads=tuple(self.threads),
            created=self.created,
            entries_added=self.added,
            entries_known=self.known,
            bytes_read=self.bytes_read,
            notes=tuple(self.notes),
            notes_left_out=self.notes_left_out,
        )
