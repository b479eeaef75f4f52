"""Files of imports and exports: reading lines, file names, original bytes, and the folder of an export.

An exporter writes what the journal says. Where that differs from the bytes that were imported (the order of keys, a time
in a local zone), the import keeps the original bytes and the hash of what the exporter would have written. As long as
the exporter gets the same hash, nothing was changed and the original bytes are written.
"""

from __future__ import annotations

import base64
import hashlib
import io
import os
import re
import sys
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

from msgspec.structs import replace

from sessiontree.errors import InvalidInputError
from sessiontree.journal import Journal
from sessiontree.model import Entry, Thread, data_of
from sessiontree.transfer.formats._records import ExportReport, ImportNote, NoteKind, Tally

__all__ = [
    "BOM",
    "LONGEST_LINE",
    "START",
    "ExportTarget",
    "Line",
    "Place",
    "as_kept",
    "blob_data",
    "closed_places",
    "exported_threads",
    "from_kept",
    "head_of",
    "is_plain",
    "joined",
    "keep_original",
    "lines_of",
    "lines_starting",
    "modified_ns",
    "note_other_branches",
    "open_plain",
    "original_or",
    "pages",
    "plain_files",
    "size_of",
    "stem_of",
    "whole_of",
    "without_foreign_origins",
]


LONGEST_LINE = 256 * 1024 * 1024
_PROGRESS_BYTES = 64 * 1024
_BUFFER = 64 * 1024
_FREE_BYTES = 64 * 1024 * 1024
_MOST_EXPANSION = 200
_ENDINGS = (".json", ".jsonl", ".zst", ".db", ".zip", ".md")
_BLANK = (b"\n", b"\r\n", b"\r")
BOM = b"\xef\xbb\xbf"
"""The mark that some programs put before a text in UTF-8."""


class Line(NamedTuple):
    """A line of a file. ``body`` is without the line break; ``is_ended`` says whether there was one.

    ``checksum`` is that of everything before the line; ``None`` if it is not known.
    """

    body: bytes
    offset: int
    is_ended: bool
    checksum: int | None = None


class Place(NamedTuple):
    """Where to begin to read a file, and the checksum of everything before it."""

    offset: int = 0
    checksum: int = 0


START = Place()


def lines_of(path: Path, tally: Tally, *, longest: int = LONGEST_LINE, place: Place = START) -> Iterator[Line]:
    """The lines of a file that are not empty. A line longer than ``longest`` is noted as damage and skipped.

    A read error is noted and ends the lines.
    """
    try:
        yield from _lines(path, tally, longest, place)
    except OSError as error:
        tally.note("damage", str(path), f"the rest of the file cannot be read: {error}")


def _lines(path: Path, tally: Tally, longest: int, place: Place) -> Iterator[Line]:
    offset, reported, blank = place.offset, 0, 0
    checksum: int | None = place.checksum
    with open_plain(path) as file:
        if offset:
            file.seek(offset)
        while body := file.readline(longest):
            start, size, before = offset, len(body), checksum
            offset += size
            checksum = None if checksum is None else zlib.crc32(body, checksum)
            if offset - reported >= _PROGRESS_BYTES:
                tally.advance(offset - reported)
                reported = offset
            if start == 0:
                body = body.removeprefix(BOM)
            if body in _BLANK:
                blank += 1
            elif body.endswith(b"\n"):
                yield Line(body[:-1], start, True, before)
            elif size < longest:
                yield Line(body, start, False, before)
            else:
                offset += _skip_line(file, longest)
                checksum = None
                size = offset - start
                tally.note("damage", str(path), f"a line of {size} bytes is too long", offset=start, size=size)
    tally.advance(offset - reported)
    if blank:
        tally.note("repair", str(path), f"{blank} empty lines were left out")


def open_plain(path: Path) -> BinaryIO:
    """The file, decompressed if it is compressed with zstd. It must not expand beyond all measure."""
    if path.suffix != ".zst":
        return path.open("rb", buffering=_BUFFER)
    limit = max(_FREE_BYTES, path.stat().st_size * _MOST_EXPANSION)
    return cast(BinaryIO, io.BufferedReader(_Bounded(_zstd().open(path, "rb"), limit), _BUFFER))


def _zstd() -> Any:
    """Import zstd on first use; it is in the standard library from Python 3.14 on."""
    if sys.version_info >= (3, 14):
        from compression import zstd  # noqa: PLC0415
    else:
        from backports import zstd  # noqa: PLC0415
    return zstd


class _Bounded(io.RawIOBase):
    """A decompressed stream; OSError where it goes on beyond its limit or is damaged."""

    def __init__(self, file: BinaryIO, limit: int) -> None:
        self._file = file
        self._left = limit
        self._limit = limit

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            data = self._file.read(len(buffer))
        except (EOFError, _zstd().ZstdError) as error:
            raise OSError(f"the compressed data is damaged: {error}") from error
        self._left -= len(data)
        if self._left < 0:
            raise OSError(f"it expands to more than {self._limit} bytes, which is refused")
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._file.close()
        super().close()


def lines_starting(path: Path, prefix: bytes) -> Iterator[bytes]:
    """The lines that start with ``prefix``. Read errors are ignored."""
    with suppress(OSError), path.open("rb", buffering=_BUFFER) as file:
        while body := file.readline(LONGEST_LINE):
            if len(body) == LONGEST_LINE and not body.endswith(b"\n"):
                _skip_line(file, LONGEST_LINE)
            elif body.startswith(prefix):
                yield body.removesuffix(b"\n")


def _skip_line(file: BinaryIO, most: int) -> int:
    """Skip the rest of a line; returns the number of bytes skipped."""
    skipped = 0
    while body := file.readline(most):
        skipped += len(body)
        if body.endswith(b"\n"):
            break
    return skipped


def is_plain(path: Path) -> bool:
    """Whether there is a regular file that may be looked at; unlike ``Path.is_file`` it never raises."""
    try:
        return path.is_file()
    except OSError:
        return False


def closed_places(source: Path) -> list[tuple[Path, str]]:
    """The files and folders below a folder that may not be read, each with the reason."""
    found: list[tuple[Path, str]] = []
    closed = os.walk(source, onerror=lambda error: found.append((Path(error.filename), str(error.strerror))))
    for folder, _, names in closed:
        paths = (Path(folder, name) for name in names if name.endswith(_ENDINGS))
        found += [(path, "Permission denied") for path in paths if is_plain(path) and not os.access(path, os.R_OK)]
    return found


def plain_files(folder: Path, pattern: str, tally: Tally | None = None) -> list[Path]:
    """The regular files of a folder, sorted by name. Folders, pipes and dead links are noted and not opened."""
    plain: list[Path] = []
    for path in sorted(folder.glob(pattern)):
        if is_plain(path):
            plain.append(path)
        elif tally is not None:
            tally.note("damage", str(path), "is not a regular file; it was left out")
    return plain


def whole_of(path: Path, tally: Tally) -> bytes | None:
    """The contents of a file; ``None`` if it is missing, or if it cannot be read, which is noted."""
    try:
        if path.is_file():
            return path.read_bytes()
        problem = "is not a regular file" if path.is_symlink() or path.exists() else ""
    except OSError as error:
        problem = f"the file cannot be read: {error}"
    if problem:
        tally.note("damage", str(path), problem)
    return None


def head_of(path: Path, size: int) -> bytes:
    """The beginning of a file; empty if it is missing or cannot be read."""
    try:
        if not path.is_file():
            return b""
        with open_plain(path) as file:
            return file.read(size).removeprefix(BOM)
    except OSError:
        return b""


def modified_ns(*paths: Path) -> int:
    """The time of the last change to any of the files; 0 if there are none."""
    return max((path.stat().st_mtime_ns for path in paths if path.is_file()), default=0)


def size_of(*paths: Path) -> int:
    """The total size of the files that exist."""
    return sum(path.stat().st_size for path in paths if path.is_file())


_LONGEST_STEM = 200


def stem_of(key: str) -> str:
    """The file name of a key without its ending. Different keys may share one; the file's content has the key.

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
    """The bytes that ``as_kept`` was given."""
    if "base64" in kept:
        return base64.b64decode(kept["base64"])
    return str(kept["text"]).encode()


def keep_original(original: bytes | None, computed: bytes) -> dict[str, str]:
    """What ``original_or`` needs to return the original; empty if the original is what we would write.

    An ``original`` of ``None`` means that there was no such file.
    """
    if original == computed:
        return {}
    return {**(as_kept(original) if original is not None else {}), "of": _hash(computed)}


def original_or(kept: dict[str, Any] | None, computed: bytes) -> bytes | None:
    """The original bytes if nothing was changed since, else ``computed``; ``None`` if there was no file."""
    if not kept or kept.get("of") != _hash(computed):
        return computed
    return from_kept(kept) if len(kept) > 1 else None


def _hash(body: bytes) -> str:
    return hashlib.blake2b(body, digest_size=16).hexdigest()


_PAGE = 1000


class ExportTarget:
    """The folder of an export, and what was written into it. It must be empty: an export overwrites nothing."""

    def __init__(self, folder: Path, change: Callable[[str], str] | None = None) -> None:
        """``change`` is applied to the text of every file that is written."""
        self._change = change
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise InvalidInputError(
                f"{folder} is not an empty folder; choose another one, an export overwrites nothing"
            )
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise InvalidInputError(f"{folder} cannot be created: {error.strerror}; choose another folder") from error
        self.folder = folder
        self.threads: list[str] = []
        self.entries = 0
        self._files: dict[str, None] = {}
        self._notes: list[ImportNote] = []

    def write(self, name: str, parts: Iterable[bytes]) -> None:
        """Write a file in the folder; ``name`` may include a subfolder."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        if self._change is not None:
            whole = b"".join(parts).decode("utf-8", "surrogateescape")
            parts = [self._change(whole).encode("utf-8", "surrogateescape")]
        with path.open("xb") as file:
            for part in parts:
                file.write(part)
        path.chmod(0o600)
        self._files[name] = None

    def is_taken(self, name: str) -> bool:
        """Whether a file or folder of that name was already written."""
        return (self.folder / name).exists()

    def free_stem(self, wanted: str, *endings: str) -> str:
        """``wanted``, or ``wanted~2`` and so on: a file name without ending that is free with each of the endings."""
        stem, number = wanted, 2
        while any(self.is_taken(stem + ending) for ending in endings):
            stem, number = f"{wanted}~{number}", number + 1
        return stem

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
    """The threads of an export: those named, or all of them including archived ones."""
    if thread_ids is not None:
        yield from (journal.thread(thread_id) for thread_id in thread_ids)
        return
    yield from journal.iter_threads(is_archived=None, order="created", limit=_PAGE)


def pages(journal: Journal, thread_id: str) -> Iterator[Entry]:
    """All entries that a thread sees, in commit order, read page by page."""
    after: str | None = None
    while found := journal.entries(thread_id, after=after, limit=_PAGE):
        yield from found
        after = found[-1].id


def blob_data(journal: Journal, name: str) -> bytes:
    """The content of a blob."""
    (blob,) = journal.read_blobs((name,))
    return data_of(blob)


def note_other_branches(journal: Journal, thread: Thread, path: Sequence[Entry], target: ExportTarget) -> None:
    """Note how many entries a flat format loses because they are not on the path."""
    shown = {entry.id for entry in path}
    others = sum(entry.id not in shown for entry in journal.entries(thread.id))
    if others:
        target.note("loss", f"{others} entries on other branches were left out", thread_id=thread.id)


def joined(lines: Iterable[tuple[bytes, bool]]) -> Iterator[bytes]:
    """Lines joined by line breaks; the last line gets none if its flag says that it had none."""
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
    """Entries for a writer, without what the importer of another format kept in their origins for its own export.

    ``common`` names the keys that mean the same in every format.
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
