"""The base of every record, the decoders of all types, times, and progress callbacks.

>>> json_decoder(list[int]).decode(b"[1, 2]")
[1, 2]
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar, overload

import msgspec

__all__ = [
    "NANOSECONDS",
    "UNREADABLE",
    "Progress",
    "Record",
    "convert",
    "counted",
    "json_decoder",
    "moment",
    "msgpack_decoder",
]


NANOSECONDS = 1_000_000_000
"""Nanoseconds in a second."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Record(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, repr_omit_defaults=True, gc=False):
    """An immutable value with keyword-only fields; defaults are left out on the wire.

    ``msgspec.structs.replace`` returns a changed copy. A record cannot contain itself, so the cycle collector skips
    it, which is measurable with many of them.
    """


def moment(nanoseconds: int) -> datetime:
    """Return a nanosecond timestamp as a UTC datetime, truncated to microseconds.

    >>> moment(1_700_000_000_123_456_789).isoformat()
    '2023-11-14T22:13:20.123456+00:00'
    """
    return _EPOCH + timedelta(microseconds=nanoseconds // 1000)


T = TypeVar("T")

Progress = Callable[[int, int], None]
"""Called as ``progress(done, total)`` during long work."""

_ITEMS_PER_CALL = 256


def counted(items: Collection[T], progress: Progress | None) -> Iterator[T]:
    """Yield the items and call ``progress`` after every few hundred of them, and after the last one.

    >>> list(counted("abc", lambda done, total: print(done, "of", total)))
    3 of 3
    ['a', 'b', 'c']
    """
    if progress is None:
        yield from items
        return
    total = len(items)
    for done, item in enumerate(items, start=1):
        yield item
        if done % _ITEMS_PER_CALL == 0 or done == total:
            progress(done, total)


UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""What a decoder raises for bytes that are not what was written, or that somebody crafted."""

# msgspec analyses a type when its first decoder is made, and the process crashes if two threads do so at once.
_making_decoders = threading.Lock()
_json: dict[Any, msgspec.json.Decoder[Any]] = {}
_msgpack: dict[Any, msgspec.msgpack.Decoder[Any]] = {}


@overload
def json_decoder(kind: type[T]) -> msgspec.json.Decoder[T]: ...
@overload
def json_decoder(kind: Any) -> msgspec.json.Decoder[Any]: ...
def json_decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    """Return the JSON decoder of a type, made on first use."""
    decoder = _json.get(kind)
    if decoder is None:
        with _making_decoders:
            decoder = _json[kind] = msgspec.json.Decoder(kind)
    return decoder


def msgpack_decoder(kind: type[T]) -> msgspec.msgpack.Decoder[T]:
    """Return the MessagePack decoder of a type, made on first use."""
    decoder = _msgpack.get(kind)
    if decoder is None:
        with _making_decoders:
            decoder = _msgpack[kind] = msgspec.msgpack.Decoder(kind)
    return decoder


def convert(value: Any, kind: type[T], *, strict: bool = True) -> T:
    """Convert lists, dictionaries and plain values to a type; if not ``strict``, numbers may be given as text."""
    json_decoder(kind)  # analyses the type under the lock
    return msgspec.convert(value, kind, strict=strict)
