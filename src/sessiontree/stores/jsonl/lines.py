r"""The lines of a tree file, with checksums, and ``LineScan``, which reads them command by command.

A line is a JSON object whose last field is the checksum of the bytes before it. A command of several lines says so on
the first (``"lines": 3``), so that a reader takes all of them or none. An entry keeps its number (``n``) for ever, also
when a delete rewrites the file.

>>> encode_line(MoveLine(thread="t", number=1, reason="reset", at=7))
b'{"kind":"move","thread":"t","number":1,"reason":"reset","at":7,"crc":"91de28b6"}\n'

An interrupted write leaves a torn end: an unterminated line, bad lines with no good line after them, an incomplete
command, or a last command with zeros in it (a block that was never written). A bad line before a good one is damage: no
interrupted write leaves it, so it is reported and never cut silently.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple
from zlib import crc32

import msgspec

from sessiontree.model import Lease, MoveReason, Thread
from sessiontree.model._base import UNREADABLE, Record, json_decoder
from sessiontree.model.codec import encode_record
from sessiontree.stores.jsonl.layout import Count

__all__ = [
    "FORMAT",
    "BadLineError",
    "Damage",
    "EntryLine",
    "LeaseLine",
    "Line",
    "LineScan",
    "Located",
    "MoveLine",
    "Span",
    "ThreadLine",
    "TreeLine",
    "UnknownLine",
    "changed_line",
    "decode_line",
    "encode_line",
    "read_spans",
]


FORMAT = 1
_CHUNK = 4 << 20
_GAP = 64 << 10
"""Places that are closer than this are read with one call."""


class BadLineError(Exception):
    """The bytes are not a line of this store."""


class TreeLine(Record, frozen=True, kw_only=True, tag_field="kind", tag="tree"):
    """The first line. ``last`` is the highest entry number ever given, if a delete removed that entry."""

    format: int
    tree: str
    last: Count = 0
    lines: int = 1


class ThreadLine(Record, frozen=True, kw_only=True, tag_field="kind", tag="thread"):
    """A new thread, or new metadata. ``base`` is the fork point, ``updated`` the time of the thread's last change."""

    thread: Thread
    base: str | None = None
    updated: int | None = None
    lines: int = 1


class EntryLine(Record, frozen=True, kw_only=True, tag_field="kind", tag="entry"):
    """A new entry. ``payload`` is the encoded payload.

    ``is_kept``: its thread was deleted and a fork still sees it. ``is_aside``: it did not become the leaf.
    """

    n: Count
    id: str
    thread: str
    parent: str | None = None
    at: int
    turn: str = ""
    messages: int = 0
    tokens: int = 0
    is_kept: bool = False
    is_aside: bool = False
    lines: int = 1
    payload: msgspec.Raw


class MoveLine(Record, frozen=True, kw_only=True, tag_field="kind", tag="move"):
    """A leaf move."""

    thread: str
    number: int
    from_entry: str | None = None
    to_entry: str | None = None
    reason: MoveReason
    at: int
    lines: int = 1


class LeaseLine(Record, frozen=True, kw_only=True, tag_field="kind", tag="lease"):
    """A new lease; without ``lease``, the end of one."""

    thread: str
    lease: Lease | None = None
    lines: int = 1


class UnknownLine(Record, frozen=True, kw_only=True):
    """A record of a newer version: kept, and removed with its thread."""

    kind: str
    thread: Any = None
    lines: int = 1


KnownLine = TreeLine | ThreadLine | EntryLine | MoveLine | LeaseLine
Line = KnownLine | UnknownLine

_decoder: msgspec.json.Decoder[KnownLine] = json_decoder(KnownLine)
_unknown = json_decoder(UnknownLine)
_fields = json_decoder(dict[str, msgspec.Raw])
_KINDS = frozenset({"tree", "thread", "entry", "move", "lease"})
_CRC_FIELD = b',"crc":"'
_CHECKSUM_LENGTH = len(_CRC_FIELD) + 8 + len(b'"}')


def encode_line(line: Line) -> bytes:
    """The line with checksum and newline; raise InvalidInputError if a text in it is not valid Unicode."""
    return _with_checksum(encode_record(line, "the record"))


def decode_line(data: bytes) -> Line:
    """The record of a line without its newline; raise BadLineError if it is not valid."""
    content = memoryview(data)[:-_CHECKSUM_LENGTH]
    checksum = data[-_CHECKSUM_LENGTH:]
    if not content or not checksum.startswith(_CRC_FIELD):
        raise BadLineError("the line has no checksum")
    if checksum[len(_CRC_FIELD) : -2] != b"%08x" % crc32(content):
        raise BadLineError("the checksum does not match")
    try:
        return _decoder.decode(data)
    except msgspec.ValidationError as error:
        return _newer(data, error)
    except UNREADABLE as error:
        raise BadLineError(f"the line is not valid JSON: {error}") from error


def changed_line(
    data: bytes, lines: int, *, is_kept: bool = False, payload: bytes | None = None, thread: Thread | None = None
) -> bytes:
    """The line as the first of ``lines``, with another payload or thread if one is given; the rest is unchanged."""
    fields = _fields.decode(data)
    for name in ("crc", "lines"):
        fields.pop(name, None)
    former = fields.pop("payload", None)
    if lines > 1:
        fields["lines"] = msgspec.Raw(b"%d" % lines)
    if is_kept:
        fields["is_kept"] = msgspec.Raw(b"true")
    if thread is not None:
        fields["thread"] = msgspec.Raw(msgspec.json.encode(thread))
    if former is not None:
        fields["payload"] = former if payload is None else msgspec.Raw(payload)
    return _with_checksum(msgspec.json.encode(fields))


def _with_checksum(record: bytes) -> bytes:
    content = record[:-1]
    return b'%b%b%08x"}\n' % (content, _CRC_FIELD, crc32(content))


def _newer(data: bytes, error: msgspec.ValidationError) -> UnknownLine:
    try:
        line = _unknown.decode(data)
    except UNREADABLE:
        raise BadLineError(f"invalid record: {error}") from error
    if line.kind in _KINDS:
        raise BadLineError(f"invalid record: {error}") from error
    return line


class Located(NamedTuple):
    """A line with the offset and length of its text, without the newline."""

    line: Line
    offset: int
    length: int


class Span(msgspec.Struct, frozen=True, gc=False):
    """Where the text of a line is. Not a tuple, because there is one for each entry; see ``TreeState``."""

    offset: int
    length: int

    @property
    def end(self) -> int:
        """The offset after the text."""
        return self.offset + self.length


class Damage(NamedTuple):
    """Bytes that are not a valid line, newline included."""

    offset: int
    length: int
    problem: str
    has_zeros: bool = False


class LineScan:
    """Reads a file from an offset; afterwards ``damage``, ``end`` and ``torn`` describe what was found."""

    def __init__(self, file: int, start: int = 0) -> None:
        self.damage: list[Damage] = []
        self.end = start
        self.torn: Damage | None = None
        self._file = file
        self._group: list[Located] = []
        self._missing = 0
        self._bad: list[Damage] = []
        self._size = start

    def groups(self) -> Iterator[Sequence[Located]]:
        """Yield the lines of each complete command."""
        for offset, text, is_whole in _texts(self._file, self.end):
            self._size = offset + len(text) + is_whole
            found = _read(offset, text, is_whole=is_whole)
            if isinstance(found, Damage):
                self._bad.append(found)
                self._missing = max(0, self._missing - 1)
                continue
            if self._group and (self._missing == 0 or found.line.lines > 1):
                yield self._finish(offset)
            self._take(found)
            if self._missing == 0 and not self._has_zeros():
                yield self._finish(self._size)
        self._set_torn()

    def _take(self, found: Located) -> None:
        if not self._group:
            self._missing = found.line.lines
        self._group.append(found)
        self._missing -= 1

    def _has_zeros(self) -> bool:
        return any(bad.has_zeros for bad in self._bad if bad.offset > self._group[0].offset)

    def _finish(self, end: int) -> Sequence[Located]:
        group, self._group = self._group, []
        self.damage += self._bad
        self._bad = []
        self._missing = 0
        self.end = end
        return group

    def _set_torn(self) -> None:
        starts = [bad.offset for bad in self._bad[:1]] + [item.offset for item in self._group[:1]]
        if starts:
            start = min(starts)
            problem = self._bad[0].problem if self._bad else "the last command is not complete"
            self.torn = Damage(start, self._size - start, problem)


def read_spans(file: int, spans: Sequence[Span]) -> list[bytes]:
    """The bytes at these places; places near each other are read with one call."""
    texts: list[bytes] = [b""] * len(spans)
    order = sorted(range(len(spans)), key=lambda index: spans[index].offset)
    at = 0
    while at < len(order):
        start = spans[order[at]].offset
        end = start
        until = at
        while until < len(order) and _is_near(spans[order[until]].offset, start, end):
            end = max(end, spans[order[until]].end)
            until += 1
        block = _pread(file, end - start, start)
        for index in order[at:until]:
            span = spans[index]
            texts[index] = block[span.offset - start : span.end - start]
        at = until
    return texts


def _is_near(offset: int, start: int, end: int) -> bool:
    return offset == start or (offset - end <= _GAP and offset - start < _CHUNK)


def _pread(file: int, length: int, offset: int) -> bytes:
    """Read ``length`` bytes, or fewer at the end of the file; a single call returns at most 2 GiB."""
    block = os.pread(file, length, offset)
    while len(block) < length:
        more = os.pread(file, length - len(block), offset + len(block))
        if not more:
            break
        block += more
    return block


def _texts(file: int, start: int) -> Iterator[tuple[int, bytes, bool]]:
    """Yield (offset, text, ends with a newline) for every line from ``start`` on."""
    parts: list[bytes] = []
    offset = read_to = start
    while chunk := os.pread(file, _CHUNK, read_to):
        read_to += len(chunk)
        *whole, rest = chunk.split(b"\n")
        for piece in whole:
            text = b"".join((*parts, piece)) if parts else piece
            parts.clear()
            yield offset, text, True
            offset += len(text) + 1
        if rest:
            parts.append(rest)
    if parts:
        yield offset, b"".join(parts), False


def _read(offset: int, text: bytes, *, is_whole: bool) -> Located | Damage:
    length = len(text) + is_whole
    if not is_whole:
        return Damage(offset, length, "the last line has no newline", b"\0" in text)
    try:
        return Located(decode_line(text), offset, len(text))
    except BadLineError as error:
        return Damage(offset, length, str(error), b"\0" in text)
