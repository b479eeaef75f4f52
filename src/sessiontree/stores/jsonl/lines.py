"""One line of a tree file: a JSON object whose last field is the checksum of what stands before it.

A command that needs several lines says so on its first one (``"lines": 3``), so that a reader takes all of them or
none. Numbers (``n``) are given to entries once and stay, also when a delete rewrites the file.

>>> encode_line(MoveLine(thread="t", number=1, reason="reset", at=7))
b'{"kind":"move","thread":"t","number":1,"reason":"reset","at":7,"crc":"91de28b6"}\\n'
"""

from __future__ import annotations

from typing import Any
from zlib import crc32

import msgspec

from sessiontree.codec import encode_record
from sessiontree.model import Lease, MoveReason, Thread
from sessiontree.model.record import Record
from sessiontree.typed import json_decoder

__all__ = [
    "FORMAT",
    "BadLineError",
    "EntryLine",
    "LeaseLine",
    "Line",
    "MoveLine",
    "ThreadLine",
    "TreeLine",
    "UnknownLine",
    "changed_line",
    "decode_line",
    "encode_line",
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
