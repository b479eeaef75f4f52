"""Payloads as bytes: encoding, decoding, validation, content hash, and the records of our own export files.

The wire form is compact JSON in field order, so equal content has equal bytes and an equal hash:

>>> from sessiontree.model.builders import user
>>> encode_payload(user("hi"))
b'{"type":"user_message","message":{"role":"user","parts":[{"type":"text","text":"hi"}]}}'
>>> decode_payload(encode_payload(user("hi"))) == user("hi")
True

An export file is one JSON document, or JSON lines. The head (or the first line) lists the threads; the entries follow
in commit order. ``sessiontree.import_sessions`` reads both.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import cache
from typing import Any, Literal, TypeVar, get_args, get_type_hints

import msgspec
from msgspec import UnsetType

from sessiontree.errors import InvalidInputError
from sessiontree.model._base import UNREADABLE, Progress, Record, counted, json_decoder
from sessiontree.model.entry import Entry, KnownPayload, Payload, UnknownPayload, entry_type
from sessiontree.model.thread import Thread

__all__ = [
    "DAMAGED",
    "FORMAT",
    "FORMAT_NAME",
    "FORMAT_VERSION",
    "BlobLine",
    "EntryBody",
    "ExportedEntry",
    "Scope",
    "StoreRequest",
    "TreeFile",
    "check_finite",
    "check_number",
    "content_hash",
    "decode_payload",
    "decode_stored_payload",
    "decode_thread",
    "encode_payload",
    "encode_record",
    "has_type",
    "native_json",
    "native_jsonl",
    "stored_type",
    "validate_and_encode",
]


DAMAGED = "damaged"
"""The type of a payload, and the status of a thread, that cannot be read."""

FORMAT = 1
"""Version of the wire form. A store records the version it was written with."""

Upgrade = Callable[[dict[str, Any]], dict[str, Any]]
UPGRADES: Mapping[int, Upgrade] = {}
"""For each older format, the function that converts a payload to the next one."""

T = TypeVar("T")

_encoder = msgspec.json.Encoder()
_SMALLEST, _LARGEST = -(2**63), 2**63 - 1
_threads = json_decoder(Thread)


@cache
def _payloads() -> msgspec.json.Decoder[KnownPayload]:
    """The decoder of payloads, made on first use: it analyses every type, and a list of threads needs none."""
    return json_decoder(KnownPayload)


class _Tag(msgspec.Struct):
    type: str


_tags = json_decoder(_Tag)


_SIMPLE_TYPES = {str: str, int: int, bool: int, type(None): type(None), UnsetType: UnsetType}


class StoreRequest(Record, frozen=True, kw_only=True):
    """The base of commands and queries: refuses values that no store can hold when the request is made."""

    def __post_init__(self) -> None:
        for name, allowed in _simple_fields(type(self)):
            value = getattr(self, name)
            if not isinstance(value, allowed):
                raise InvalidInputError(
                    f"{name} cannot be {value!r}; use {' or '.join(kind.__name__ for kind in allowed)}"
                )
            if isinstance(value, str):
                if not value.isascii():
                    encode_record(value, name)
            elif isinstance(value, int):
                check_number(value)


@cache
def _simple_fields(kind: type[StoreRequest]) -> tuple[tuple[str, tuple[type, ...]], ...]:
    """The fields that hold strings and numbers, with the types that each may have."""
    hints = get_type_hints(kind)
    choices = {name: get_args(hints[name]) or (hints[name],) for name in kind.__struct_fields__}
    return tuple(
        (name, tuple(_SIMPLE_TYPES[choice] for choice in allowed))
        for name, allowed in choices.items()
        if all(choice in _SIMPLE_TYPES for choice in allowed)
    )


def check_number(value: int) -> None:
    """Refuse a time or a limit that does not fit into 64 bits."""
    if not _SMALLEST <= value <= _LARGEST:
        raise InvalidInputError(f"{value} does not fit into 64 bits")


def encode_record(record: Any, what: str) -> bytes:
    """Return a record as JSON; ``what`` names it in the InvalidInputError that is raised if it cannot be encoded."""
    try:
        return _encoder.encode(record)
    except _ENCODING_ERRORS as error:
        raise _refusal(what, error) from error


def encode_payload(payload: Payload) -> bytes:
    """Return the wire form of a payload."""
    return payload.body if isinstance(payload, UnknownPayload) else _encoded(payload)


def _encoded(payload: KnownPayload) -> bytes:
    try:
        return _encoder.encode(payload)
    except _ENCODING_ERRORS as error:
        raise _refusal(f"payload of type {payload.__struct_config__.tag!r}", error) from error


_ENCODING_ERRORS = (TypeError, ValueError, OverflowError, RecursionError)


def _refusal(what: str, error: Exception) -> InvalidInputError:
    if isinstance(error, UnicodeEncodeError):
        return InvalidInputError(
            f"{what} contains a lone surrogate (U+{ord(error.object[error.start]):04X}), which is not valid Unicode; "
            "replace it first"
        )
    return InvalidInputError(f"{what} cannot be encoded as JSON: {error}")


def decode_payload(body: bytes, version: int = FORMAT) -> Payload:
    """Return the payload of a body; a type that this version does not know becomes an UnknownPayload."""
    if version != FORMAT:
        body = _upgraded(body, version, UPGRADES)
    try:
        return _payloads().decode(body)
    except msgspec.ValidationError:
        tag = _tags.decode(body).type
        if tag in _KNOWN_TYPES:
            raise
        return UnknownPayload(type=tag, body=bytes(body))


def decode_stored_payload(body: bytes) -> Payload:
    """Return the payload of a stored body. An unreadable one is shown as damaged: other entries stay readable."""
    try:
        return decode_payload(body)
    except (*UNREADABLE, TypeError):
        return UnknownPayload(type=DAMAGED, body=body if isinstance(body, bytes) else b"")


_TYPE = b'{"type":"'


def stored_type(body: bytes) -> str:
    """Return the type of a stored body, mostly without decoding it.

    >>> stored_type(b'{"type":"label","target":"a","label":"b"}')
    'label'
    """
    end = body.find(b'"', len(_TYPE)) if isinstance(body, bytes) and body.startswith(_TYPE) else -1
    name = body[len(_TYPE) : end] if end > 0 else b"\\"
    # A name that is not written plainly belongs to no type of ours.
    return name.decode() if name.isascii() and b"\\" not in name else entry_type(decode_stored_payload(body))


def has_type(types: Collection[str]) -> Callable[[bytes], bool]:
    """Return a function that says whether a stored body is of one of the types.

    >>> list(filter(has_type({"label"}), [b'{"type":"label","target":"a"}', b'{"type":"event"}']))
    [b'{"type":"label","target":"a"}']
    """
    marks = tuple(_TYPE + name.encode() + b'"' for name in types)
    return lambda body: (isinstance(body, bytes) and body.startswith(marks)) or stored_type(body) in types


class EntryBody(Record, frozen=True, kw_only=True):
    """The id of an entry, and its payload as it is stored: for readers that need a part of each payload only."""

    id: str
    body: bytes

    @property
    def type(self) -> str:
        """The wire name of the payload's type."""
        return stored_type(self.body)


def decode_thread(body: bytes) -> Thread:
    """Return the thread of a body."""
    return _threads.decode(body)


def content_hash(content: Payload | str) -> str:
    """Return the SHA-256 of a text in UTF-8, or of the canonical payload, as lower-case hexadecimal digits.

    The id, position and time of an entry are not part of its payload, so equal content has an equal hash everywhere.

    >>> from sessiontree.model.builders import user
    >>> content_hash(user("hi")) == content_hash(encode_payload(user("hi")).decode())
    True
    >>> content_hash("hi")[:16]
    '8f434346648f6b96'
    """
    from hashlib import sha256  # noqa: PLC0415  slow to import, and not needed to append or read

    if isinstance(content, str):
        return sha256(_utf8(content)).hexdigest()
    if not isinstance(content, KnownPayload | UnknownPayload):
        raise InvalidInputError(f"content_hash takes a payload or a text, not {type(content).__name__}")
    return sha256(encode_payload(content)).hexdigest()


def _utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise _refusal("the text", error) from error


def validate_and_encode(payload: Payload) -> tuple[Payload, bytes]:
    """Return the payload as it will be read back, and its bytes.

    Raises InvalidInputError if it has values that do not fit its type or do not survive a round trip.

    >>> from sessiontree.model import Custom
    >>> validate_and_encode(Custom(name="n", data=(1, 2)))[0].data
    [1, 2]
    """
    if isinstance(payload, UnknownPayload):
        _check_unknown(payload)
        return payload, payload.body
    body = _encoded(payload)
    try:
        stored = _payloads().decode(body)
    except (msgspec.ValidationError, RecursionError) as error:
        check_finite(msgspec.to_builtins(payload))
        raise InvalidInputError(f"payload does not fit its type: {error}") from error
    if stored != payload:
        _check_round_trip(stored, body)
        check_finite(msgspec.to_builtins(payload))
    return stored, body


def _check_unknown(payload: UnknownPayload) -> None:
    """Refuse an unknown payload whose body is not one line of JSON of its type."""
    try:
        msgspec.json.decode(payload.body)
        tag = _tags.decode(payload.body).type
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidInputError(
            f"the body of a payload of type {payload.type!r} is not a JSON object: {error}"
        ) from error
    if tag != payload.type or tag in _KNOWN_TYPES or b"\n" in payload.body:
        raise InvalidInputError(
            f"an unknown payload of type {payload.type!r} has a body of type {tag!r}; "
            "the body must be one line of JSON of the same type, and not of a type known here"
        )


def _check_round_trip(stored: Payload, body: bytes) -> None:
    """Refuse keys that become equal in JSON, such as 1 and "1"."""
    if encode_payload(stored) != body:
        raise InvalidInputError(
            "payload does not round-trip through JSON: two keys become equal once converted to strings; rename one"
        )


def check_finite(value: Any) -> None:
    """Refuse NaN and infinity, which JSON cannot express, anywhere in a value."""
    match value:
        case float() if not math.isfinite(value):
            raise InvalidInputError(f"{value} is not a JSON number; use None or a string")
        case dict():
            for item in value.values():
                check_finite(item)
        case list() | tuple():
            for item in value:
                check_finite(item)


def _upgraded(body: bytes, version: int, upgrades: Mapping[int, Upgrade]) -> bytes:
    value = msgspec.json.decode(body)
    for step in range(version, FORMAT):
        value = upgrades[step](value)
    return _encoder.encode(value)


_KNOWN_TYPES = frozenset(str(kind.__struct_config__.tag) for kind in KnownPayload.__args__)

FORMAT_NAME = "sessiontree"
FORMAT_VERSION = 1

Scope = Literal["path", "thread", "tree"]
"""What an export contains: the active path, all branches of the thread, or all threads of its tree."""


class TreeFile(msgspec.Struct, kw_only=True):
    """The head of an export file: its format, and its threads, each fork after its source."""

    format: str = FORMAT_NAME
    version: int = FORMAT_VERSION
    scope: Scope = "thread"
    threads: tuple[Thread, ...] = ()


class ExportedEntry(Record, frozen=True, kw_only=True):
    """An entry of an export file, with its payload as it is stored."""

    id: str
    thread_id: str
    parent: str | None = None
    created_ns: int = 0
    turn_id: str = ""
    payload: msgspec.Raw


class BlobLine(msgspec.Struct, kw_only=True):
    """A blob in an export file; it comes before the first checkpoint that needs it."""

    blob: str
    data: bytes


def native_jsonl(head: TreeFile, entries: Collection[Entry], progress: Progress | None = None) -> Iterator[bytes]:
    """Yield an export file as lines: the head, then each entry."""
    yield msgspec.json.encode(head) + b"\n"
    for entry in counted(entries, progress):
        yield _line(entry) + b"\n"


def native_json(head: TreeFile, entries: Collection[Entry], progress: Progress | None = None) -> bytes:
    """Return an export file as one JSON document."""
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
