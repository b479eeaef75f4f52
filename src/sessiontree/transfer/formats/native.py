"""The ``native`` format: the JSON and JSONL of ``journal.export``, one file per tree with all its forks.

Files that ``export_sessions`` writes also contain the files of checkpoints.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from sessiontree.errors import DamagedDataError
from sessiontree.journal import Journal
from sessiontree.model import (
    FORMAT_NAME,
    FORMAT_VERSION,
    Blob,
    BlobLine,
    Checkpoint,
    ExportedEntry,
    Thread,
    ThreadFields,
    TreeFile,
    blob_of,
    decode_payload,
    json_decoder,
    reachable,
)
from sessiontree.model.artifacts import MAY_HAVE_ARTIFACTS, artifacts_of
from sessiontree.transfer.formats._files import (
    LONGEST_LINE,
    ExportTarget,
    blob_data,
    head_of,
    is_plain,
    lines_of,
    size_of,
    stem_of,
    whole_of,
)
from sessiontree.transfer.formats._records import ImportedRecord, ImportedSession, Tally

__all__ = ["detect", "sessions", "size", "write"]


_HEAD = 4096
_BLOB = b'{"blob":'
_FIELDS = tuple(ThreadFields.__annotations__)
_ENDINGS = (".json", ".jsonl")


class _Document(TreeFile, kw_only=True):
    entries: list[msgspec.Raw] = []


def detect(source: Path) -> bool:
    return any(_is_ours(path) for path in _files(source))


def size(source: Path) -> int:
    return size_of(*_files(source))


def sessions(source: Path, tally: Tally) -> Iterator[ImportedSession]:
    for path in _files(source):
        if _is_ours(path):
            yield from _Tree(path, tally).sessions()
        else:
            tally.note("damage", str(path), "is not a file of sessiontree; it was left out")


def _files(source: Path) -> list[Path]:
    if source.is_dir():
        return sorted(path for path in source.iterdir() if path.suffix in _ENDINGS and is_plain(path))
    return [source] if source.is_file() else []


def _is_ours(path: Path) -> bool:
    head = head_of(path, _HEAD).replace(b" ", b"").replace(b"\n", b"")
    return head.startswith(b'{"format":"' + FORMAT_NAME.encode() + b'"')


class _Owner(msgspec.Struct):
    """The part of a line that says whose entry it is."""

    thread_id: str = ""


class _Tree:
    """The threads of one file. A first pass notes where the entries of each thread are; each is then read once."""

    def __init__(self, path: Path, tally: Tally) -> None:
        self._path = path
        self._tally = tally
        self._document: _Document | None = None
        self._places: dict[str, array[int]] = {}

    def sessions(self) -> Iterator[ImportedSession]:
        head = self._head()
        if head is None:
            return
        if head.version > FORMAT_VERSION:
            problem = f"version {head.version} is newer than {FORMAT_VERSION}; upgrade sessiontree to read it"
            self._tally.note("damage", str(self._path), problem)
            return
        names = {thread.id for thread in head.threads}
        if head.threads:
            self._find_entries(names, head.threads[0].id)
        for thread in head.threads:
            yield self._session(thread, names)

    def _head(self) -> TreeFile | None:
        try:
            if self._path.suffix == ".json":
                body = whole_of(self._path, self._tally) or b""
                self._tally.advance(len(body))
                self._document = json_decoder(_Document).decode(body)
                return self._document
            first = next(lines_of(self._path, Tally()))
            return json_decoder(TreeFile).decode(first.body)
        except (StopIteration, msgspec.MsgspecError, UnicodeError, RecursionError) as error:
            self._tally.note("damage", str(self._path), f"the file cannot be read: {error}")
            return None

    def _find_entries(self, names: set[str], first: str) -> None:
        """Note the places of all entries; the first thread also gets those of threads that are not in the file.

        An entry begins with the blobs that it needs, which stand before it.
        """
        start: int | None = None
        for body, place in self._lines():
            start = place if start is None else start
            if body.startswith(_BLOB):
                continue
            try:
                owner = json_decoder(_Owner).decode(body).thread_id
            except (msgspec.MsgspecError, UnicodeError, RecursionError):
                owner = first
            self._places.setdefault(owner if owner in names else first, array("Q")).append(start)
            start = None

    def _lines(self) -> Iterator[tuple[bytes, int]]:
        """The lines after the header with their places: offsets in the file, or numbers in the document."""
        if self._document is not None:
            yield from ((bytes(entry), number) for number, entry in enumerate(self._document.entries))
            return
        for line in lines_of(self._path, self._tally):
            if line.offset and line.body:
                yield line.body, line.offset

    def _session(self, thread: Thread, names: set[str]) -> ImportedSession:
        fields: Any = {name: getattr(thread, name) for name in _FIELDS}
        has_source = thread.forked_from_thread in names and bool(thread.forked_from_entry)
        return ImportedSession(
            id=thread.id,
            place=str(self._path),
            created_ns=thread.created_ns,
            updated_ns=thread.updated_ns,
            fields=fields,
            items=self._items(thread.id),
            leaf=lambda: thread.leaf,
            fork=(thread.forked_from_thread, thread.forked_from_entry) if has_source else None,
        )

    def _items(self, thread_id: str) -> Iterator[ImportedRecord]:
        """The entries that were noted for a thread."""
        for bodies, place in self._entries_at(self._places.get(thread_id, array("Q"))):
            try:
                *before, body = bodies
                line = json_decoder(ExportedEntry).decode(body)
                payload = decode_payload(bytes(line.payload))
            except (msgspec.MsgspecError, DamagedDataError, UnicodeError, RecursionError) as error:
                offset = 0 if self._document is not None else place
                self._tally.note("damage", str(self._path), str(error), offset=offset, size=len(bodies[-1]))
            else:
                blobs = tuple(self._blobs(before, place))
                yield ImportedRecord(payload, line.id, line.created_ns, line.parent, line.turn_id, blobs)

    def _blobs(self, bodies: list[bytes], end: int) -> Iterator[Blob]:
        """The blobs in the lines before ``end``. A damaged one does not take the entry with it."""
        place = end - sum(len(body) + 1 for body in bodies)
        for body in bodies:
            try:
                yield _blob(body)
            except (msgspec.MsgspecError, DamagedDataError, UnicodeError, RecursionError) as error:
                self._tally.note("damage", str(self._path), str(error), offset=place, size=len(body))
            place += len(body) + 1

    def _entries_at(self, places: array[int]) -> Iterator[tuple[list[bytes], int]]:
        """The lines of each entry, its blobs first, and where its own line begins."""
        if self._document is not None:
            yield from (([bytes(self._document.entries[place])], place) for place in places)
            return
        try:
            with self._path.open("rb") as file:
                for place in places:
                    file.seek(place)
                    bodies = [file.readline(LONGEST_LINE).removesuffix(b"\n")]
                    while bodies[-1].startswith(_BLOB):
                        place += len(bodies[-1]) + 1  # noqa: PLW2901
                        bodies.append(file.readline(LONGEST_LINE).removesuffix(b"\n"))
                    yield bodies, place
        except OSError as error:
            self._tally.note("damage", str(self._path), f"the rest of the file cannot be read: {error}")


def _blob(body: bytes) -> Blob:
    line = json_decoder(BlobLine).decode(body)
    blob = blob_of(line.data)
    if blob.hash != line.blob:
        raise DamagedDataError(f"blob {line.blob}", 0, "the content does not match its hash")
    return blob


def write(journal: Journal, threads: Iterator[Thread], target: ExportTarget) -> None:
    done: set[str] = set()
    for thread in threads:
        target.threads.append(thread.id)
        if thread.tree in done:
            continue
        done.add(thread.tree)
        lines = journal.export(thread.id, format="jsonl", scope="tree").encode().splitlines(keepends=True)
        target.entries += len(lines) - 1
        stem = target.free_stem(stem_of(thread.tree), ".jsonl")
        target.write(f"{stem}.jsonl", _with_blobs(journal, lines))


def _with_blobs(journal: Journal, lines: Iterable[bytes]) -> Iterator[bytes]:
    """The lines, and before each entry the artifacts or files that it needs and that were not written yet."""
    written: set[str] = set()
    for line in lines:
        for name in _needs(journal, line):
            if name not in written:
                written.add(name)
                yield msgspec.json.encode(BlobLine(blob=name, data=blob_data(journal, name))) + b"\n"
        yield line


def _needs(journal: Journal, line: bytes) -> Iterable[str]:
    if b'"manifest"' not in line and MAY_HAVE_ARTIFACTS not in line:
        return ()
    try:
        payload = decode_payload(bytes(json_decoder(ExportedEntry).decode(line).payload))
    except msgspec.MsgspecError:
        return ()
    if names := artifacts_of(payload):
        missing = journal.missing_blobs(names)
        return [name for name in names if name not in missing]
    manifest = payload.manifest if isinstance(payload, Checkpoint) else ""
    if not manifest or journal.missing_blobs((manifest,)):
        return ()
    return sorted(reachable([manifest], lambda name: blob_data(journal, name)))
