"""The frame for transcripts of other tools: recognise files by their content, read each one, keep every raw record.

A tool's module has two functions. ``recognises(head)`` looks at the beginning of a file. ``read(path, tally)`` yields the
sessions in it; a ``Recorder`` collects what is learned about a session on the way. Every record of the source becomes an
entry: a message in our terms with the raw record in its ``origin``, or an event that holds the raw record.
"""

from __future__ import annotations

import os
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from sessiontree.model import Custom, Event, Payload, Thread, ThreadFields, encode_payload
from sessiontree.transfer.formats import _go
from sessiontree.transfer.formats._cut_json import beginning_of
from sessiontree.transfer.formats._files import (
    BOM,
    START,
    Line,
    Place,
    is_plain,
    lines_of,
    modified_ns,
    size_of,
)
from sessiontree.transfer.formats._head import Head, head, records_of_line
from sessiontree.transfer.formats._records import (
    ImportedRecord,
    ImportedSession,
    LineIds,
    Tally,
    printable,
    unreadable,
    with_origin,
)
from sessiontree.transfer.formats._resume import ResumePoint, is_unchanged_before
from sessiontree.transfer.formats._wire import Json, array, as_text, objects, parse_noting

__all__ = [
    "FileFormat",
    "Head",
    "Recorder",
    "document",
    "json_records",
    "kept",
    "marked",
    "records_in",
    "stamp_of",
    "whole_json",
]


_MOST_MARKS = 8
_MOST_SNIFFED = 2000
"""How many files of a folder are looked at to find out whether it is of a format."""


Recognise = Callable[[Head], bool]
Read = Callable[[Path, Tally], Iterator[ImportedSession]]
Resume = Callable[[Path, Tally, ResumePoint], ImportedSession]


class FileFormat:
    """A format with one or more sessions to a file, in a file or anywhere below a folder.

    ``order`` sorts the files of a folder, so that what others build on is read first. ``resume`` returns the session of a
    log that goes on at a point; without it a file that has changed is read as a whole.
    """

    def __init__(
        self,
        recognises: Recognise,
        read: Read,
        *names: str,
        order: Callable[[Path], Any] = str,
        parts: Callable[[Path], Iterable[Path]] = lambda path: (path,),
        resume: Resume | None = None,
    ) -> None:
        self._recognises = recognises
        self._read = read
        self._names = names
        self._order = order
        self._parts = parts
        self._resume = resume

    def detect(self, source: Path) -> bool:
        """Whether the file, or one of the first files of the folder, is of this format."""
        if source.is_file():
            return self._recognises(head(source))
        return any(self._recognises(head(path)) for path in islice(self._candidates(source), _MOST_SNIFFED))

    def size(self, source: Path) -> int:
        """How many bytes there are to read at most: by the names of the files, without opening them."""
        found = [source] if source.is_file() else self._candidates(source)
        return size_of(*(part for path in found for part in self._parts(path)))

    def sessions(self, source: Path, tally: Tally) -> Iterator[ImportedSession]:
        """The sessions of all files that are new or have changed since the last import; others are not even opened."""
        changed = []
        for path in [source] if source.is_file() else list(self._candidates(source)):
            if tally.is_unchanged(stamp_of(*self._parts(path))):
                tally.unchanged += tally.claim(path)
                tally.advance(size_of(*self._parts(path)))
            elif source.is_file() or self._recognises(head(path)):
                changed.append(path)
        for path in sorted(changed, key=self._order):
            if tally.claim(path):
                tally.begin_file()
                yield from self._read_or_resume(path, tally)

    def _read_or_resume(self, path: Path, tally: Tally) -> Iterator[ImportedSession]:
        point = tally.resume_point(stamp_of(path)) if self._resume is not None else None
        if self._resume is None or point is None or not is_unchanged_before(path, point):
            yield from self._read(path, tally)
            return
        session = self._resume(path, tally, point)
        assert session.goes_on is not None
        yield session._replace(goes_on=session.goes_on._replace(whole=partial(self._read, path, tally)))

    def files(self, source: Path) -> list[Path]:
        """The files of this format; a file that was named is one of them whatever it is."""
        if source.is_file():
            return [source]
        return [path for path in self._candidates(source) if self._recognises(head(path))]

    def _candidates(self, source: Path) -> Iterator[Path]:
        for folder, folders, names in os.walk(source):
            folders.sort()
            for name in sorted(names):
                path = Path(folder, name)
                if any(path.match(pattern) for pattern in self._names) and is_plain(path):
                    yield path


def stamp_of(*paths: Path) -> Json:
    """What tells whether a file changed: the name of the first path, and sizes, times and inodes of all.

    Those of many files are folded into one: their number, their size and a checksum.
    """
    found = [path.stat() for path in paths if path.is_file()]
    marks = [[one.st_size, one.st_mtime_ns, one.st_ino] for one in found]
    if len(marks) > _MOST_MARKS:
        size = sum(mark[0] for mark in marks)
        marks = [marks[0], [len(marks), size, zlib.crc32(repr(marks).encode())]]
    return {"path": printable(str(paths[0].absolute())), "marks": marks}


def kept(payload: Payload, raw: Any) -> Payload:
    """The payload with the record that it was made of."""
    return with_origin(payload, raw=raw)


def marked(name: str, payload: Payload) -> str:
    """An id for a message that its tool may write again in another form: each form gets an id of its own."""
    return f"{name}.{zlib.crc32(encode_payload(payload)):08x}"


class Recorder:
    """One session while it is read: what is learned about it, and what was not understood."""

    def __init__(self, path: Path, tally: Tally, *, id: str, created_ns: int, stamp: Json | None = None) -> None:
        self.id = printable(id)
        self.place = printable(str(path))
        self.tally = tally
        self.ids = LineIds(self.id)
        # Without a time of its own, a session has that of its file.
        self.created_ns = self.last_ns = created_ns or modified_ns(path)
        self.title = ""
        self.workspace = ""
        self.model = ""
        self.provider = ""
        self.parent_thread = ""
        self.tags: tuple[str, ...] = ()
        self.is_archived = False
        self.custom: Json = {}
        self.origin: Json = {"session": self.id, **({"file": stamp} if stamp else {})}
        self._unknown: Counter[str] = Counter()
        self._mended: list[str] = []
        self._mended_before = 0
        self._start = START
        self._point: ResumePoint | None = None
        self.next_point = 2 * _POINT_EVERY

    def session(self, items: Iterable[ImportedRecord], **more: Any) -> ImportedSession:
        """The session; its metadata is complete after the last item."""
        known: Any = {"workspace": self.workspace, "parent_thread": self.parent_thread}
        fields: Any = {name: value for name, value in known.items() if value}
        return ImportedSession(
            id=self.id,
            place=self.place,
            created_ns=self.created_ns,
            updated_ns=self.created_ns,
            fields=fields,
            items=items,
            finish=self._finish,
            resume_point=self._point_now,
            **more,
        )

    def resume(self, point: ResumePoint) -> None:
        """Go on where an earlier import was."""
        state, self._point = point.recorder, point
        self._start = Place(point.offset, point.checksum)
        self.next_point = point.offset + _POINT_EVERY
        self.ids.restore(state["ids"])
        for name in _RESUMED:
            setattr(self, name, state[name])
        self._mended_before = state["mended"]

    def lines(self, path: Path) -> Iterator[tuple[Json | None, Line, str]]:
        """The records of a log, from its beginning or from where an earlier import was."""
        return json_records(path, self, self._start)

    def remember_point(self, line: Line, state: Json) -> None:
        """Remember the beginning of a line as a place to go on from; ``state`` is what its reader knows there."""
        if line.checksum is None or "file" not in self.origin:
            return
        self.next_point = line.offset + _POINT_EVERY
        own = {
            "ids": self.ids.state,
            **{name: getattr(self, name) for name in _RESUMED},
            "mended": self._mended_before + len(self._mended),
        }
        marks = self.origin["file"]["marks"]
        self._point = ResumePoint(
            session=self.id, offset=line.offset, checksum=line.checksum, marks=marks, recorder=own, reader=state
        )

    def time(self, time_ns: int | None) -> int:
        """The time of a record; without one, that of the record before it."""
        if time_ns:
            self.last_ns = time_ns
        return self.last_ns

    def side(self, name: str, raw: Any) -> Event:
        """A record that says nothing to the model: kept as it is."""
        return Event(name=name, data=raw)

    def remark(self, name: str, said: Any, raw: Any) -> Payload:
        """A record with words that the model does not see: kept, and found by search."""
        return kept(Custom(name=name, data=said), raw)

    def unknown(self, name: str, raw: Any) -> Payload:
        """A record of a type that is not known here: kept as it is, found by search, and counted."""
        self._unknown[name] += 1
        return self.remark(name, raw, raw)

    def mend(self, problem: str, offset: int = 0) -> None:
        """Note what was corrected; the thread remembers it."""
        self._mended.append(problem)
        self.tally.note("repair", self.place, problem, offset=offset, thread_id=self.id)

    def broken(self, line: Line, problem: str, parent: Any) -> ImportedRecord:
        """A line that cannot be read, kept as bytes."""
        self.tally.note("damage", self.place, problem, offset=line.offset, size=len(line.body), thread_id=self.id)
        self._mended.append(f"at byte {line.offset}: {problem}")
        payload = unreadable(line.body, problem, is_ended=line.is_ended)
        return ImportedRecord(payload, self.ids.next(line.body), self.last_ns, parent)

    def unfinished(self, line: Line) -> None:
        """Note a last line that is not whole."""
        problem = "the last line is not whole; it is read once it is"
        self.tally.note("damage", self.place, problem, offset=line.offset, size=len(line.body), thread_id=self.id)

    def _finish(self, thread: Thread) -> ThreadFields:
        for name, number in self._unknown.items():
            self.tally.not_understood += number
            problem = f"{number} records of type {name!r} are not understood; they were kept as they are"
            self.tally.note("hint", self.place, problem, thread_id=thread.id)
        found = {**self._all_mended(thread), **self._all_damaged(thread)}
        fields: ThreadFields = {
            "title": self.title,
            "workspace": self.workspace,
            "model": self.model,
            "vendor": self.provider,
            "parent_thread": self.parent_thread,
            "tags": self.tags,
            "custom": {**thread.custom, **self.custom},
            "is_archived": self.is_archived,
        }
        known: Any = {name: value for name, value in fields.items() if value}
        raw = {"raw": as_text(self.origin["raw"])} if _is_deep(self.origin.get("raw"), _DEEPEST) else {}
        known |= {"origin": {**thread.origin, **self.origin, **raw, **found, **self._other_files(thread)}}
        if self.last_ns > thread.updated_ns:
            known["updated_ns"] = self.last_ns
        return known  # type: ignore[no-any-return]

    def _other_files(self, thread: Thread) -> Json:
        """The stamps of other files with the same session, so that none of them is read again until it changes."""
        mine, last = self.origin.get("file"), thread.origin.get("file")
        if mine is None or last is None:
            return {}
        files = {one["path"]: one for one in (*thread.origin.get("copies", ()), last) if one["path"] != mine["path"]}
        return {"copies": list(files.values())[-_MOST_REMEMBERED:]} if files else {}

    def _all_mended(self, thread: Thread) -> Json:
        before = thread.origin.get("mended", [])[: self._mended_before]
        mended, count = [*before, *self._mended], self._mended_before + len(self._mended)
        return {"mended": mended[:_MOST_REMEMBERED], "mended_count": count} if count else {}

    def _all_damaged(self, thread: Thread) -> Json:
        known = thread.origin.get("damaged", [])
        now = [[one.offset, one.size, one.problem, one.place] for one in self.tally.damage_for(self.id)]
        others = {one["path"] for one in self._other_files(thread).get("copies", ())}
        elsewhere = [one for one in known if one[3] in others]
        before = [one for one in known if one[0] < self._start.offset and one not in elsewhere]
        for offset, size, problem, place in before:
            self.tally.note("damage", place, problem, offset=offset, size=size, thread_id=thread.id)
        damaged = [*elsewhere, *before, *now][:_MOST_REMEMBERED]
        return {"damaged": damaged} if damaged or known else {}

    def _point_now(self) -> ResumePoint | None:
        """The point, with the marks of the file as it was before it was read now."""
        if self._point is None:
            return None
        return replace(self._point, marks=self.origin["file"]["marks"])


_RESUMED = ("created_ns", "last_ns", "model", "provider", "workspace")
_POINT_EVERY = 64 * 1024
_MOST_REMEMBERED = 200
_DEEPEST = 60


def _is_deep(value: Any, left: int) -> bool:
    """Whether a value is nested so deeply that a thread's metadata should not hold it as it is."""
    if not isinstance(value, dict | list):
        return False
    inner = value.values() if isinstance(value, dict) else value
    return left == 0 or any(_is_deep(one, left - 1) for one in inner)


def json_records(path: Path, recorder: Recorder, place: Place = START) -> Iterator[tuple[Json | None, Line, str]]:
    """The JSON objects of a file's lines; ``None`` and the problem for a line that has none.

    A line may hold several objects without a line break between them, as after two writers at once. Half a line at the
    end, which is being written or was cut off, is noted and read when it is whole.
    """
    for line in lines_of(path, recorder.tally, place=place):
        if line.body.isspace():
            continue
        try:
            value = parse_noting(line.body, partial(recorder.mend, offset=line.offset))
        except _go.JsonError as error:
            several = records_of_line(line)
            if several:
                recorder.mend(f"a line held {len(several)} records; they were separated", line.offset)
                yield from ((value, part, "") for value, part in several)
            elif line.is_ended:
                yield None, line, str(error)
            else:
                recorder.unfinished(line)
        else:
            if isinstance(value, dict):
                yield value, line, ""
            else:
                yield None, line, "the line is not a JSON object"


def whole_json(path: Path, tally: Tally) -> Any:
    """The value of a JSON file; ``None`` if it cannot be read, which is noted."""
    try:
        body = path.read_bytes()
    except (OSError, MemoryError) as error:
        tally.note("damage", str(path), f"the file cannot be read: {error}")
        return None
    tally.advance(len(body))
    return document(body.removeprefix(BOM), str(path), tally)


def document(body: bytes, place: str, tally: Tally) -> Any:
    """The value of a JSON document; of one that was cut off what stands before the cut. What is missing is noted."""
    try:
        return parse_noting(body, partial(tally.note, "repair", place))
    except (_go.JsonError, MemoryError) as error:
        problem = str(error)
    found = beginning_of(body)
    if found is None:
        tally.note("damage", place, f"the file cannot be read: {problem}", size=len(body))
        return None
    value, end = found
    problem = f"the document breaks off after {end} of {len(body)} bytes; what stands before was read"
    tally.note("damage", place, problem, offset=end, size=len(body) - end)
    return value


def records_in(value: Any, place: Path | str, tally: Tally) -> list[Json]:
    """The objects of a JSON array; each element that is none is noted as damage."""
    for number, item in enumerate(array(value)):
        if not isinstance(item, dict):
            tally.note(
                "damage", str(place), f"element {number} is not an object but {as_text(item)[:80]!r}; it was left out"
            )
    return objects(value)
