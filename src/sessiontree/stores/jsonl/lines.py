r"""One line of a tree file: a JSON object whose last field is the checksum of what stands before it.

A command that needs several lines says so on its first one (``"lines": 3``), so that a reader takes all of them or
none. Numbers (``n``) are given to entries once and stay, also when a delete rewrites the file.

>>> encode_line(MoveLine(thread="t", number=1, reason="reset", at=7))
b'{"kind":"move","thread":"t","number":1,"reason":"reset","at":7,"crc":"91de28b6"}\n'

Reading a tree file from some offset on: whole commands, damage, and an end that was torn off.

Only the end of a file can be torn: an unterminated line, bad lines with nothing good after them, a command that is
not complete, or the last command if zeros stand in it (a block that never reached the disk). Bad lines with good
ones after them are damage: nothing that we do leaves such a file behind, so it is shown and never cut silently.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple
from zlib import crc32

import msgspec

from sessiontree.model import Lease, MoveReason, Thread
from sessiontree.model._base import Record, json_decoder
from sessiontree.model.codec import encode_record

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
    "ThreadLine",
    "TreeLine",
    "UnknownLine",
    "changed_line",
    "decode_line",
    "encode_line",
    "read_spans",
]


FORMAT = 1


class BadLineError(Exception):
    """The bytes are not a line that we wrote."""


class TreeLine(Record, frozen=True, kw_only=True, tag_field="kind", tag="tree"):
    """The first line. ``last`` is the highest entry number ever given, where a delete took the entry away."""

    format: int
    tree: str
    last: int = 0
    lines: int = 1


class ThreadLine(Record, frozen=True, kw_only=True, tag_field="kind", tag="thread"):
    """A thread is new, or its metadata changed. ``base`` is the entry that a fork starts from."""

    thread: Thread
    base: str | None = None
    lines: int = 1


class EntryLine(Record, frozen=True, kw_only=True, tag_field="kind", tag="entry"):
    """``payload`` is the sealed body, byte for byte. ``is_kept``: its thread was deleted, a fork still shows it."""

    n: int
    id: str
    thread: str
    parent: str | None = None
    at: int
    turn: str = ""
    messages: int = 0
    tokens: int = 0
    is_kept: bool = False
    lines: int = 1
    payload: msgspec.Raw


class MoveLine(Record, frozen=True, kw_only=True, tag_field="kind", tag="move"):
    thread: str
    number: int
    from_entry: str | None = None
    to_entry: str | None = None
    reason: MoveReason
    at: int
    lines: int = 1


class LeaseLine(Record, frozen=True, kw_only=True, tag_field="kind", tag="lease"):
    """No ``lease``: it was released or cleared."""

    thread: str
    lease: Lease | None = None
    lines: int = 1


class UnknownLine(Record, frozen=True, kw_only=True):
    """A record of a newer version: carried along, and removed with its thread."""

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
_SEAL_LENGTH = len(_CRC_FIELD) + 8 + len(b'"}')


def encode_line(line: Line) -> bytes:
    """The line with checksum and newline, or InvalidInputError if a text in it is no Unicode."""
    return _sealed(encode_record(line, "the record"))


def decode_line(data: bytes) -> Line:
    """The record of a line without its newline, or BadLineError that says what is wrong."""
    content = memoryview(data)[:-_SEAL_LENGTH]
    seal = data[-_SEAL_LENGTH:]
    if not content or not seal.startswith(_CRC_FIELD):
        raise BadLineError("the line has no checksum")
    if seal[len(_CRC_FIELD) : -2] != b"%08x" % crc32(content):
        raise BadLineError("the checksum does not match")
    try:
        return _decoder.decode(data)
    except msgspec.ValidationError as error:
        return _newer(data, error)
    except msgspec.DecodeError as error:
        raise BadLineError(f"the line is no JSON: {error}") from error


def changed_line(data: bytes, lines: int, *, is_kept: bool = False) -> bytes:
    """The same record as the first of ``lines``; every other byte of its values stays."""
    fields = _fields.decode(data)
    for name in ("crc", "lines"):
        fields.pop(name, None)
    payload = fields.pop("payload", None)
    if lines > 1:
        fields["lines"] = msgspec.Raw(b"%d" % lines)
    if is_kept:
        fields["is_kept"] = msgspec.Raw(b"true")
    if payload is not None:
        fields["payload"] = payload
    return _sealed(msgspec.json.encode(fields))


def _sealed(record: bytes) -> bytes:
    content = record[:-1]
    return b'%b%b%08x"}\n' % (content, _CRC_FIELD, crc32(content))


def _newer(data: bytes, error: msgspec.ValidationError) -> UnknownLine:
    try:
        line = _unknown.decode(data)
    except msgspec.DecodeError:
        raise BadLineError(f"the record is not understood: {error}") from error
    if line.kind in _KINDS:
        raise BadLineError(f"the record is not understood: {error}") from error
    return line


_CHUNK = 4 << 20
_GAP = 64 << 10


class Located(NamedTuple):
    """A line and where its text stands, without the newline."""

    line: Line
    offset: int
    length: int


class Damage(NamedTuple):
    """Bytes that are no line of ours, newline included."""

    offset: int
    length: int
    problem: str
    has_zeros: bool = False


class LineScan:
    """``groups()`` yields command by command; then ``damage``, ``end`` and ``torn`` say how the file looks."""

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


def read_spans(file: int, spans: Sequence[tuple[int, int]]) -> list[bytes]:
    """The texts at these (offset, length) places; neighbours come with one read."""
    texts: list[bytes] = [b""] * len(spans)
    order = sorted(range(len(spans)), key=spans.__getitem__)
    at = 0
    while at < len(order):
        start = spans[order[at]][0]
        end = start
        until = at
        while until < len(order) and _is_near(spans[order[until]], start, end):
            end = max(end, sum(spans[order[until]]))
            until += 1
        block = _pread(file, end - start, start)
        for index in order[at:until]:
            offset, length = spans[index]
            texts[index] = block[offset - start : offset - start + length]
        at = until
    return texts


def _is_near(span: tuple[int, int], start: int, end: int) -> bool:
    offset, _ = span
    return offset == start or (offset - end <= _GAP and offset - start < _CHUNK)


def _pread(file: int, length: int, offset: int) -> bytes:
    """That many bytes, or fewer at the end of the file: one call returns at most 2 GiB."""
    block = os.pread(file, length, offset)
    while len(block) < length:
        more = os.pread(file, length - len(block), offset + len(block))
        if not more:
            break
        block += more
    return block


def _texts(file: int, start: int) -> Iterator[tuple[int, bytes, bool]]:
    """(offset, text, ends in a newline) for every line from ``start`` to the end of the file."""
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
        return Damage(offset, length, "the last line has no end", b"\0" in text)
    try:
        return Located(decode_line(text), offset, len(text))
    except BadLineError as error:
        return Damage(offset, length, str(error), b"\0" in text)
