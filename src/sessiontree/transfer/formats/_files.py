"""Reading files: line by line with the place of each, whatever is in them and whatever stands in their place.

File names for sessions whose names a file system would not take.

Original bytes that are given back as long as nothing changed, and only then.

An exporter always writes what the journal says. Where that is not byte for byte what the import read (an order of keys,
a time in local zone), the import keeps the original next to the hash of what the exporter would have written: as long
as the exporter comes to the same hash, the original is right.

Writing an export: into an empty folder only, so that nobody's data is overwritten.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from msgspec.structs import replace

from sessiontree.errors import InvalidInputError
from sessiontree.journal import Journal
from sessiontree.model import Entry, Thread
from sessiontree.transfer.formats._records import ExportReport, ImportNote, NoteKind, Tally

__all__ = [
    "ExportTarget",
    "Line",
    "as_kept",
    "exported_threads",
    "from_kept",
    "head_of",
    "joined",
    "keep_original",
    "lines_of",
    "lines_starting",
    "modified_ns",
    "original_or",
    "pages",
    "plain_files",
    "size_of",
    "stem_of",
    "whole_of",
    "without_foreign_origins",
]


LONGEST_LINE = 256 * 1024 * 1024
_TELL_EVERY = 64 * 1024
_BUFFER = 64 * 1024
_BLANK = (b"\n", b"\r\n", b"\r")


class Line(NamedTuple):
    """``body`` is without the line break; ``is_ended`` tells whether there was one."""

    body: bytes
    offset: int
    is_ended: bool


def lines_of(path: Path, tally: Tally, *, longest: int = LONGEST_LINE) -> Iterator[Line]:
    """The lines of a file that are not empty. One longer than ``longest`` is noted as damage and skipped.

    Where the disk gives no more, that is noted, and the lines end.
    """
    try:
        yield from _lines(path, tally, longest)
    except OSError as error:
        tally.note("damage", str(path), f"the file cannot be read on: {error}")


def _lines(path: Path, tally: Tally, longest: int) -> Iterator[Line]:
    offset = told = 0
    blank = 0
    with path.open("rb", buffering=_BUFFER) as file:
        while body := file.readline(longest):
            start, size = offset, len(body)
            offset += size
            if offset - told >= _TELL_EVERY:
                tally.advance(offset - told)
                told = offset
            if body in _BLANK:
                blank += 1
            elif body.endswith(b"\n"):
                yield Line(body[:-1], start, True)
            elif size < longest:
                yield Line(body, start, False)
            else:
                offset += _skip_line(file, longest)
                size = offset - start
                tally.note("damage", str(path), f"a line of {size} bytes is too long", offset=start, size=size)
    tally.advance(offset - told)
    if blank:
        tally.note("repair", str(path), f"{blank} empty lines are left out")


def lines_starting(path: Path, prefix: bytes) -> Iterator[bytes]:
    """The lines that begin so; the others, and a file that cannot be read, are passed over without a word."""
    with suppress(OSError), path.open("rb", buffering=_BUFFER) as file:
        while body := file.readline(LONGEST_LINE):
            if len(body) == LONGEST_LINE and not body.endswith(b"\n"):
                _skip_line(file, LONGEST_LINE)
            elif body.startswith(prefix):
                yield body.removesuffix(b"\n")


def _skip_line(file: BinaryIO, most: int) -> int:
    """Go to the next line; how many bytes that were."""
    skipped = 0
    while body := file.readline(most):
        skipped += len(body)
        if body.endswith(b"\n"):
            break
    return skipped


def plain_files(folder: Path, pattern: str, tally: Tally | None = None) -> list[Path]:
    """The files of a folder by name. A folder, a pipe or a dead link of such a name is noted, and never opened."""
    plain: list[Path] = []
    for path in sorted(folder.glob(pattern)):
        if path.is_file():
            plain.append(path)
        elif tally is not None:
            tally.note("damage", str(path), "is no file that can be read; it is left out")
    return plain


def whole_of(path: Path, tally: Tally) -> bytes | None:
    """A whole file; ``None`` where there is none, or where it cannot be read, which is noted."""
    try:
        if path.is_file():
            return path.read_bytes()
        problem = "is no file that can be read" if path.is_symlink() or path.exists() else ""
    except OSError as error:
        problem = f"the file cannot be read: {error}"
    if problem:
        tally.note("damage", str(path), problem)
    return None


def head_of(path: Path, size: int) -> bytes:
    """The beginning of a file; nothing of what is no file or cannot be read."""
    try:
        if not path.is_file():
            return b""
        with path.open("rb") as file:
            return file.read(size)
    except OSError:
        return b""


def modified_ns(*paths: Path) -> int:
    """When the newest of some files was written; 0 if there is none."""
    return max((path.stat().st_mtime_ns for path in paths if path.is_file()), default=0)


def size_of(*paths: Path) -> int:
    """Bytes in files; what is not there counts nothing."""
    return sum(path.stat().st_size for path in paths if path.is_file())


_LONGEST_STEM = 200


def stem_of(key: str) -> str:
    """The file name of a key without its ending. Two keys may share one: only the file's content knows the real key.

    >>> stem_of("agent:main/1")
    'agent_main_1'
    """
    stem = re.sub(r"[:/\\\x00]", "_", key)
    if len(stem.encode()) <= _LONGEST_STEM:
        return stem
    return stem.encode()[:100].decode(errors="ignore") + "-" + hashlib.sha256(key.encode()).hexdigest()[:32]


def as_kept(body: bytes) -> dict[str, str]:
    """Bytes as part of a JSON record.

    >>> from_kept(as_kept(b"text")), from_kept(as_kept(b"\\xff"))
    (b'text', b'\\xff')
    """
    try:
        return {"text": body.decode()}
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(body).decode()}


def from_kept(kept: dict[str, Any]) -> bytes:
    if "base64" in kept:
        return base64.b64decode(kept["base64"])
    return str(kept["text"]).encode()


def keep_original(original: bytes | None, computed: bytes) -> dict[str, str]:
    """What to remember so that ``original_or`` can give the original back; nothing if it is what we would write.

    ``None``: there was no such file.
    """
    if original == computed:
        return {}
    return {**(as_kept(original) if original is not None else {}), "of": _hash(computed)}


def original_or(kept: dict[str, Any] | None, computed: bytes) -> bytes | None:
    """The original while it is still true, else what was computed; ``None`` where there was no file."""
    if not kept or kept.get("of") != _hash(computed):
        return computed
    return from_kept(kept) if len(kept) > 1 else None


def _hash(body: bytes) -> str:
    return hashlib.blake2b(body, digest_size=16).hexdigest()


_PAGE = 1000


class ExportTarget:
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
        self._notes: list[ImportNote] = []

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
        self._notes.append(ImportNote(kind=kind, place=str(self.folder), problem=problem, thread_id=thread_id))

    def report(self, format_name: str) -> ExportReport:
        return ExportReport(
            format=format_name,
            target=str(self.folder),
            threads=tuple(self.threads),
            entries=self.entries,
            files=tuple(self._files),
            notes=tuple(self._notes),
        )


def exported_threads(journal: Journal, thread_ids: Iterable[str] | None) -> Iterator[Thread]:
    """The threads of an export: the named ones, or all, archived ones too."""
    if thread_ids is not None:
        yield from (journal.thread(thread_id) for thread_id in thread_ids)
        return
    yield from journal.iter_threads(is_archived=None, order="created", limit=_PAGE)


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
