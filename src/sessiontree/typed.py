"""Values of a known type out of JSON, MessagePack or plain values: the one place where msgspec learns types.

It learns a type on first use, and the whole process crashes where two threads make it learn the same types at once.

>>> json_decoder(list[int]).decode(b"[1, 2]")
[1, 2]
"""

from __future__ import annotations

import threading
from typing import Any, TypeVar, overload

import msgspec

__all__ = ["convert", "json_decoder", "msgpack_decoder"]

T = TypeVar("T")

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
