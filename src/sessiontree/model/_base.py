"""The base of every record: frozen, keyword-only, defaults left out on the wire.

How far long work has come.

Values of a known type out of JSON, MessagePack or plain values: the one place where msgspec learns types.

It learns a type on first use, and the whole process crashes where two threads make it learn the same types at once.

>>> json_decoder(list[int]).decode(b"[1, 2]")
[1, 2]
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar, overload

import msgspec

__all__ = ["NANOSECONDS", "Progress", "Record", "convert", "counted", "json_decoder", "moment", "msgpack_decoder"]


NANOSECONDS = 1_000_000_000
"""Nanoseconds in a second."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Record(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """An immutable value; ``msgspec.structs.replace`` makes a changed copy.

    A value cannot contain itself, so the cycle collector need not look at it: that is felt with many of them.
    """


def moment(nanoseconds: int) -> datetime:
    """A UTC datetime for a nanosecond timestamp, cut to microseconds.

    >>> moment(1_700_000_000_123_456_789).isoformat()
    '2023-11-14T22:13:20.123456+00:00'
    """
    return _EPOCH + timedelta(microseconds=nanoseconds // 1000)


T = TypeVar("T")

Progress = Callable[[int, int], None]
"""Called with how much is done, and how much there is in all."""

_TELL_EVERY = 256


def counted(items: Collection[T], progress: Progress | None) -> Iterator[T]:
    """The items; ``progress`` hears now and then how many were worked on.

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
        if done % _TELL_EVERY == 0 or done == total:
            progress(done, total)


_learning = threading.Lock()
_json: dict[Any, msgspec.json.Decoder[Any]] = {}
_msgpack: dict[Any, msgspec.msgpack.Decoder[Any]] = {}


@overload
def json_decoder(kind: type[T]) -> msgspec.json.Decoder[T]: ...
@overload
def json_decoder(kind: Any) -> msgspec.json.Decoder[Any]: ...
def json_decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    known = _json.get(kind)
    if known is None:
        with _learning:
            known = _json[kind] = msgspec.json.Decoder(kind)
    return known


def msgpack_decoder(kind: type[T]) -> msgspec.msgpack.Decoder[T]:
    known = _msgpack.get(kind)
    if known is None:
        with _learning:
            known = _msgpack[kind] = msgspec.msgpack.Decoder(kind)
    return known


def convert(value: Any, kind: type[T], *, strict: bool = True) -> T:
    """A value of the type out of lists, dictionaries and the like; numbers may come as text if it is not strict."""
    json_decoder(kind)
    return msgspec.convert(value, kind, strict=strict)
