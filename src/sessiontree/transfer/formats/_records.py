"""The records that readers produce, sessions and their entries, and the reports of imports and exports."""

from __future__ import annotations

import base64
import hashlib
import math
import zlib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from sessiontree.model import Blob, Custom, Payload, Progress, Record, Thread, ThreadFields, UnknownPayload

if TYPE_CHECKING:
    from sessiontree.journal import Journal
    from sessiontree.transfer.formats._resume import KnownFiles, ResumePoint

__all__ = [
    "UNREADABLE",
    "ExpectedArtifact",
    "ExportReport",
    "GoesOn",
    "ImportNote",
    "ImportReport",
    "ImportedRecord",
    "ImportedSession",
    "LineIds",
    "NoteKind",
    "Tally",
    "amount",
    "chain_id",
    "is_unreadable",
    "printable",
    "unreadable",
    "unreadable_bytes",
    "whole_number",
    "with_origin",
]


UNREADABLE = "unreadable"
"""Name of the custom entry that keeps bytes which could not be read."""

_LARGEST_KEPT = 1024 * 1024


class ImportedRecord(NamedTuple):
    """A record to import. ``parent`` UNSET means that it follows the record before it.

    ``blobs`` are the contents that the record refers to; they are stored before it.
    """

    payload: Payload
    id: str
    created_ns: int
    parent: str | UnsetType | None = UNSET
    turn_id: str = ""
    blobs: tuple[Blob, ...] = ()


class GoesOn(NamedTuple):
    """The entries of an earlier import that items may follow, the last one at the end; and how to read everything."""

    entries: tuple[str, ...]
    whole: Callable[[], Iterable[ImportedSession]]


class ImportedSession(NamedTuple):
    """A session of a source. ``items`` is read once; ``leaf`` and ``finish`` are called after that.

    ``leaf`` returns the id of the leaf (UNSET: the last item). ``finish`` takes the loaded thread and returns the
    metadata that is known only now. ``fork`` is the thread and the entry that this one was forked from, if both share
    a tree; ``alone`` returns the session to import instead if that thread is not in the journal. Without ``has_head``
    it counts as a session only if one of its items is readable. ``find`` returns the thread that the session was exported
    from, where that has another id. ``goes_on`` is set if the items before ``items`` were imported earlier. ``resume_point``
    is called after the items, too, and returns where to go on next time.
    """

    id: str
    place: str
    created_ns: int
    updated_ns: int
    fields: ThreadFields
    items: Iterable[ImportedRecord]
    leaf: Callable[[], str | UnsetType | None] = lambda: UNSET
    finish: Callable[[Thread], ThreadFields] = lambda _thread: {}
    fork: tuple[str, str] | None = None
    has_head: bool = True
    alone: Callable[[], ImportedSession] | None = None
    find: Callable[[Journal], Thread | None] = lambda _journal: None
    goes_on: GoesOn | None = None
    resume_point: Callable[[], ResumePoint | None] = lambda: None


def chain_id(previous: str, body: bytes) -> str:
    """An id for a record that has none: equal for equal records after an equal history.

    So a repeated import finds what it wrote, and a file that was rewritten becomes a branch.

    >>> chain_id("", b"hello") == chain_id("", b"hello") != chain_id("before", b"hello")
    True
    """
    digest = hashlib.blake2b(body, digest_size=12, key=previous.encode()[-64:])
    return digest.hexdigest()


class LineIds:
    """Ids for the lines of a log: a checksum of its name, the line number, and a running checksum of the lines so far.

    Cheaper than ``chain_id``, and sufficient where a line has one place only: if two ids were ever equal, the journal
    would compare the contents. The ids of one log are neighbours in a store's index, so a batch touches few pages.

    >>> first, second = LineIds("log"), LineIds("log")
    >>> first.next(b"hello"), second.next(b"hello") != first.next(b"hello")
    ('8f3f68c5-000001-3610a686', True)
    """

    def __init__(self, log: str) -> None:
        self.last = ""
        self._log = f"{zlib.crc32(log.encode('utf-8', 'surrogateescape')):08x}"
        self._number = 0
        self._sum = 0

    @property
    def state(self) -> list[int]:
        """What ``restore`` needs to go on with the same ids."""
        return [self._number, self._sum]

    def restore(self, state: list[int]) -> None:
        """Go on after the line at which ``state`` was taken."""
        self._number, self._sum = state

    def next(self, body: bytes) -> str:
        """The id of the next line."""
        self._number += 1
        self._sum = zlib.crc32(body, self._sum)
        self.last = f"{self._log}-{self._number:06}-{self._sum:08x}"
        return self.last


def unreadable(body: bytes, problem: str, *, is_ended: bool = True) -> Custom:
    """An entry that keeps bytes which could not be read; of more than 1 MiB only the length and the hash."""
    facts: dict[str, Any] = {"problem": problem, "size": len(body)} | ({} if is_ended else {"unended": True})
    if len(body) <= _LARGEST_KEPT:
        facts["base64"] = base64.b64encode(body).decode()
    else:
        facts["sha256"] = hashlib.sha256(body).hexdigest()
    return Custom(name=UNREADABLE, origin=facts)


def unreadable_bytes(payload: Payload) -> bytes | None:
    """The bytes that ``unreadable`` kept."""
    if isinstance(payload, Custom) and payload.name == UNREADABLE and "base64" in payload.origin:
        return base64.b64decode(payload.origin["base64"])
    return None


def is_unreadable(payload: Payload) -> bool:
    """Whether the entry keeps what could not be read."""
    return isinstance(payload, Custom) and payload.name == UNREADABLE


def with_origin(payload: Payload, **facts: Any) -> Payload:
    """The payload with ``facts`` added to its origin."""
    if isinstance(payload, UnknownPayload):
        return payload
    return replace(payload, origin={**payload.origin, **facts})


def whole_number(value: Any) -> int | None:
    """The value if JSON wrote it as a whole number. ``true`` is none, although Python's ``bool`` is an ``int``.

    >>> whole_number(3), whole_number(True), whole_number("3")
    (3, None, None)
    """
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def amount(value: Any) -> float | None:
    """The value as a float if JSON wrote it as a number that a float can hold.

    >>> amount(3), amount(True), amount(10**400)
    (3.0, None, None)
    """
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def printable(name: str) -> str:
    """The name of a file, with the bytes that are no UTF-8 written out.

    >>> printable("t\\udce4lk")
    't\\\\xe4lk'
    """
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


NoteKind = Literal["damage", "repair", "conflict", "loss", "hint"]
"""damage: could not be read; repair: was corrected; conflict: differs from what the journal has; loss: the target's
format cannot hold it; hint: worth knowing."""

MOST_NOTES = 10_000


class ImportNote(Record, frozen=True, kw_only=True):
    """A finding of an import or export: its kind, where it is (a file, a byte in it) and what it is."""

    kind: NoteKind
    place: str
    problem: str
    offset: int = 0
    size: int = 0
    thread_id: str = ""


class ImportReport(Record, frozen=True, kw_only=True):
    """What an import did: the threads and entries of the source, and what was noted about them.

    ``not_understood`` counts records of types that are not known here, which were kept as they are; ``unchanged`` counts
    files that were not read because they are as they were at the last import.
    """

    format: str
    source: str
    threads: tuple[str, ...] = ()
    created: int = 0
    entries_added: int = 0
    entries_known: int = 0
    bytes_read: int = 0
    not_understood: int = 0
    unchanged: int = 0
    notes: tuple[ImportNote, ...] = ()
    notes_left_out: int = 0

    def of_kind(self, kind: NoteKind) -> tuple[ImportNote, ...]:
        """The notes of one kind."""
        return tuple(note for note in self.notes if note.kind == kind)

    @property
    def damage(self) -> tuple[ImportNote, ...]:
        """What could not be read."""
        return self.of_kind("damage")

    @property
    def repairs(self) -> tuple[ImportNote, ...]:
        """What was corrected during the import."""
        return self.of_kind("repair")

    @property
    def conflicts(self) -> tuple[ImportNote, ...]:
        """Records that differ from what the journal already has; the journal was not changed."""
        return self.of_kind("conflict")


class ExportReport(Record, frozen=True, kw_only=True):
    """What an export wrote, and what was noted about it."""

    format: str
    target: str
    threads: tuple[str, ...] = ()
    entries: int = 0
    files: tuple[str, ...] = ()
    notes: tuple[ImportNote, ...] = ()

    @property
    def losses(self) -> tuple[ImportNote, ...]:
        """What the target's format cannot hold."""
        return tuple(note for note in self.notes if note.kind == "loss")


class ExpectedArtifact(NamedTuple):
    """The first entry that refers to an artifact."""

    place: str
    thread_id: str
    entry_id: str


class Tally:
    """Counts and notes of a running import."""

    def __init__(
        self,
        total_bytes: int = 0,
        progress: Progress | None = None,
        known: KnownFiles | None = None,
        claimed: set[Path] | None = None,
    ) -> None:
        self.threads: dict[str, None] = {}
        self.not_understood = 0
        self.unchanged = 0
        self.sessions: set[str] = set()
        self._known_files = known
        self._claimed = set() if claimed is None else claimed
        self.created = 0
        self.added = 0
        self.known = 0
        self.bytes_read = 0
        self.notes: list[ImportNote] = []
        self.notes_left_out = 0
        self.expected: dict[str, ExpectedArtifact] = {}
        self._new_damage: list[ImportNote] = []
        self._total = total_bytes
        self._progress = progress

    @property
    def has_damage(self) -> bool:
        return any(note.kind == "damage" for note in self.notes)

    def claim(self, path: Path) -> bool:
        """Whether a file is read here: False if it was already read in another format."""
        is_free = path not in self._claimed
        self._claimed.add(path)
        return is_free

    def is_unchanged(self, stamp: Mapping[str, Any]) -> bool:
        """Whether a file is as it was when it was imported; what was damaged in it is noted again."""
        known = self._known_files
        if known is None or not known.is_unchanged(stamp):
            return False
        for offset, size, problem, place in known.damage(stamp):
            self.note("damage", place, problem, offset=offset, size=size)
        return True

    def begin_file(self) -> None:
        """Forget damage that no session of the file before was given."""
        self._new_damage = []

    def damage_for(self, session_id: str) -> list[ImportNote]:
        """The damage in the file that a session is made of, to be remembered with it: each is given out once."""
        found, self._new_damage = self._new_damage, []
        given: list[ImportNote] = []
        for note in found:
            (given if note.thread_id in ("", session_id) else self._new_damage).append(note)
        return given

    def forget_notes(self, first: int) -> None:
        """Forget the notes from a number on: what they are about is read again."""
        del self.notes[first:]
        self._new_damage = []

    def resume_point(self, stamp: Mapping[str, Any]) -> ResumePoint | None:
        """Where to go on with a file that has changed since it was imported."""
        return self._known_files.point(stamp) if self._known_files is not None else None

    def advance(self, size: int) -> None:
        """Report that ``size`` more bytes were read."""
        self.bytes_read += size
        if self._progress is not None:
            self._progress(self.bytes_read, max(self._total, self.bytes_read))

    def note(
        self, kind: NoteKind, place: str, problem: str, *, offset: int = 0, size: int = 0, thread_id: str = ""
    ) -> None:
        if len(self.notes) >= MOST_NOTES:
            self.notes_left_out += 1
            return
        found = ImportNote(
            kind=kind, place=printable(place), problem=problem, offset=offset, size=size, thread_id=thread_id
        )
        self.notes.append(found)
        if kind == "damage":
            self._new_damage.append(found)

    def note_missing_artifacts(self, journal: Journal) -> None:
        """Note the expected artifacts that came neither with the source nor were in the store before."""
        for name in sorted(journal.missing_blobs(self.expected)):
            place, thread_id, entry_id = self.expected[name]
            problem = f"artifact {name} of entry {entry_id!r} is missing in the source; the entry refers to nothing"
            self.note("damage", place, problem, thread_id=thread_id)
        self.expected.clear()

    def report(self, format_name: str, source: str) -> ImportReport:
        return ImportReport(
            format=format_name,
            source=source,
            threads=tuple(self.threads),
            created=self.created,
            entries_added=self.added,
            entries_known=self.known,
            bytes_read=self.bytes_read,
            not_understood=self.not_understood,
            unchanged=self.unchanged,
            notes=tuple(self.notes),
            notes_left_out=self.notes_left_out,
        )
