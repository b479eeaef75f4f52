"""Bytes and back: the wire form of payloads, their content hash, and the upgrade path between formats.

The wire form is compact JSON in field order, so the same content always gives the same bytes and the same hash:

>>> from sessiontree.model.builders import user
>>> encode_payload(user("hi"))
b'{"type":"user_message","message":{"role":"user","parts":[{"type":"text","text":"hi"}]}}'
>>> decode_payload(encode_payload(user("hi"))) == user("hi")
True

Our own files: a thread or a whole tree with everything in it, as one JSON document or as lines.

The first line (or the head of the document) tells the threads, then come the entries in the order of their commits.
``sessiontree.transfer.formats.import_sessions`` reads both.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import cache
from typing import Any, Literal, TypeVar, get_args, get_type_hints

import msgspec
from msgspec import UnsetType

from sessiontree.errors import InvalidInputError
from sessiontree.model._base import Progress, Record, counted, json_decoder
from sessiontree.model.entry import Entry, KnownPayload, Payload, UnknownPayload
from sessiontree.model.thread import Thread

__all__ = [
    "FORMAT",
    "FORMAT_NAME",
    "FORMAT_VERSION",
    "BlobLine",
    "ExportedEntry",
    "Scope",
    "StoreRequest",
    "TreeFile",
    "check_number",
    "content_hash",
    "decode_payload",
    "decode_thread",
    "encode_payload",
    "encode_record",
    "native_json",
    "native_jsonl",
    "refuse_not_finite",
    "validate_and_encode",
]


FORMAT = 1
"""Version of the wire form. A store remembers the version it was written with."""

Upgrade = Callable[[dict[str, Any]], dict[str, Any]]
UPGRADES: Mapping[int, Upgrade] = {}
"""For each older format, how to turn a payload of it into the next one."""

T = TypeVar("T")

_encoder = msgspec.json.Encoder()
_SMALLEST, _LARGEST = -(2**63), 2**63 - 1
_threads = json_decoder(Thread)


@cache
def _payloads() -> msgspec.json.Decoder[KnownPayload]:
    """Made on first use: it looks through all types of payloads, and a list of threads needs none of them."""
    return json_decoder(KnownPayload)


class _Tag(msgspec.Struct):
    type: str


_tags = json_decoder(_Tag)


_SIMPLE_TYPES = {str: str, int: int, bool: int, type(None): type(None), UnsetType: UnsetType}


class StoreRequest(Record, frozen=True, kw_only=True):
    """A request to a store: what no store could hold, or understand, is refused when it is made."""

    def __post_init__(self) -> None:
        for name, allowed in _simple_fields(type(self)):
            value = getattr(self, name)
            if not isinstance(value, allowed):
                raise InvalidInputError(
                    f"{name} cannot be {value!r}; it is {' or '.join(kind.__name__ for kind in allowed)}"
                )
            if isinstance(value, str):
                if not value.isascii():
                    encode_record(value, name)
            elif isinstance(value, int):
                check_number(value)


@cache
def _simple_fields(kind: type[StoreRequest]) -> tuple[tuple[str, tuple[type, ...]], ...]:
    """The fields that hold words and numbers, with the types that each may have."""
    hints = get_type_hints(kind)
    choices = {name: get_args(hints[name]) or (hints[name],) for name in kind.__struct_fields__}
    return tuple(
        (name, tuple(_SIMPLE_TYPES[choice] for choice in allowed))
        for name, allowed in choices.items()
        if all(choice in _SIMPLE_TYPES for choice in allowed)
    )


def check_number(value: int) -> None:
    """Times and limits must fit into 64 bits."""
    if not _SMALLEST <= value <= _LARGEST:
        raise InvalidInputError(f"{value} does not fit into 64 bits; times are nanoseconds since 1970")


def encode_record(record: Any, what: str) -> bytes:
    """JSON of a record, or InvalidInputError that says why it cannot be written."""
    try:
        return _encoder.encode(record)
    except _UNWRITABLE as error:
        raise _refusal(what, error) from error


def encode_payload(payload: Payload) -> bytes:
    return payload.body if isinstance(payload, UnknownPayload) else _encoded(payload)


def _encoded(payload: KnownPayload) -> bytes:
    try:
        return _encoder.encode(payload)
    except _UNWRITABLE as error:
        raise _refusal(f"payload of type {payload.__struct_config__.tag!r}", error) from error


_UNWRITABLE = (TypeError, ValueError, OverflowError, RecursionError)


def _refusal(what: str, error: Exception) -> InvalidInputError:
    if isinstance(error, UnicodeEncodeError):
        return InvalidInputError(
            f"{what} holds a lone surrogate (U+{ord(error.object[error.start]):04X}), which is no Unicode text; "
            "replace it first: only Unicode can be kept"
        )
    return InvalidInputError(f"{what} cannot be written as JSON: {error}")


def decode_payload(body: bytes, version: int = FORMAT) -> Payload:
    """The payload of a body; types that this version does not know come back as UnknownPayload."""
    if version != FORMAT:
        body = _upgraded(body, version, UPGRADES)
    try:
        return _payloads().decode(body)
    except msgspec.ValidationError:
        tag = _tags.decode(body).type
        if tag in _KNOWN_TYPES:
            raise
        return UnknownPayload(type=tag, body=bytes(body))


def decode_thread(body: bytes) -> Thread:
    return _threads.decode(body)


def content_hash(payload: Payload) -> str:
    """SHA-256 of the canonical payload: identity, place and time do not count.

    >>> from sessiontree.model.builders import user
    >>> content_hash(user("hi")) == content_hash(user("hi"))
    True
    """
    from hashlib import sha256  # noqa: PLC0415  slow to import, and not needed to append or read

    return sha256(encode_payload(payload)).hexdigest()


def validate_and_encode(payload: Payload) -> tuple[Payload, bytes]:
    """The payload as a reader will see it, and its bytes. Refuses what would not come back unchanged.

    >>> from sessiontree.model import Custom
    >>> validate_and_encode(Custom(name="n", data=(1, 2)))[0].data
    [1, 2]
    """
    if isinstance(payload, UnknownPayload):
        _refuse_not_as_it_says(payload)
        return payload, payload.body
    body = _encoded(payload)
    try:
        stored = _payloads().decode(body)
    except (msgspec.ValidationError, RecursionError) as error:
        refuse_not_finite(msgspec.to_builtins(payload))
        raise InvalidInputError(f"payload does not fit its type: {error}") from error
    if stored != payload:
        _refuse_changed(stored, body)
        refuse_not_finite(msgspec.to_builtins(payload))
    return stored, body


def _refuse_not_as_it_says(payload: UnknownPayload) -> None:
    """A body of a type that we do not know must be one line of JSON of that type."""
    try:
        msgspec.json.decode(payload.body)
        tag = _tags.decode(payload.body).type
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidInputError(f"the body of a payload of type {payload.type!r} is no JSON object: {error}") from error
    if tag != payload.type or tag in _KNOWN_TYPES or b"\n" in payload.body:
        raise InvalidInputError(
            f"the body says type {tag!r}, the payload {payload.type!r}; it must be one line of a type unknown here"
        )


def _refuse_changed(stored: Payload, body: bytes) -> None:
    """Two keys that are one in JSON, such as 1 and "1", would come back as one."""
    if encode_payload(stored) != body:
        raise InvalidInputError("the payload would not come back unchanged; use keys that differ as text")


def refuse_not_finite(value: Any) -> None:
    """JSON has no NaN and no infinity."""
    match value:
        case float() if not math.isfinite(value):
            raise InvalidInputError(f"{value} is no JSON number; use None or a string")
        case dict():
            for item in value.values():
                refuse_not_finite(item)
        case list() | tuple():
            for item in value:
                refuse_not_finite(item)


def _upgraded(body: bytes, version: int, upgrades: Mapping[int, Upgrade]) -> bytes:
    value = msgspec.json.decode(body)
    for step in range(version, FORMAT):
        value = upgrades[step](value)
    return _encoder.encode(value)


_KNOWN_TYPES = frozenset(str(kind.__struct_config__.tag) for kind in KnownPayload.__args__)

FORMAT_NAME = "sessiontree"
FORMAT_VERSION = 1

Scope = Literal["path", "thread", "tree"]
"""The active path; all branches of the thread; all threads that share its tree."""


class TreeFile(msgspec.Struct, kw_only=True):
    """The head of a file: what it is, and the threads in it, a fork after what it was forked from."""

    format: str = FORMAT_NAME
    version: int = FORMAT_VERSION
    scope: Scope = "thread"
    threads: tuple[Thread, ...] = ()


class ExportedEntry(Record, frozen=True, kw_only=True):
    """An entry with its payload as it is stored."""

    id: str
    thread_id: str
    parent: str | None = None
    created_ns: int = 0
    turn_id: str = ""
    payload: msgspec.Raw


class BlobLine(msgspec.Struct, kw_only=True):
    """The content of a file or of a list of files; it stands before the first checkpoint that needs it."""

    blob: str
    data: bytes


def native_jsonl(head: TreeFile, entries: Collection[Entry], progress: Progress | None = None) -> Iterator[bytes]:
    """One line for the head, one for each entry."""
    yield msgspec.json.encode(head) + b"\n"
    for entry in counted(entries, progress):
        yield _line(entry) + b"\n"


def native_json(head: TreeFile, entries: Collection[Entry], progress: Progress | None = None) -> bytes:
    """One document."""
    fields = msgspec.json.encode(head)[:-1]
    lines = b",".join(_line(entry) for entry in counted(entries, progress))
    return msgspec.json.format(fields + b',"entries":[' + lines + b"]}", indent=2) + b"\n"


def _line(entry: Entry) -> bytes:
    line = ExportedEntry(
        id=entry.id,
        thread_id=entry.thread_id,
        parent=entry.parent,
        created_ns=entry.created_ns,
        turn_id=entry.turn_id,
        payload=msgspec.Raw(encode_payload(entry.payload)),
    )
    return msgspec.json.encode(line)
