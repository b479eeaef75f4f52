"""JSON as Go's ``encoding/json`` writes and reads it: what the seed programs' files are made of.

>>> encode({"a": "x<y>"})
b'{"a":"x\\\\u003cy\\\\u003e"}'
>>> decode(b'{"a": 1, "a": 2, "b": "bad \\xff utf-8"}')
{'a': 2, 'b': 'bad \\ufffd utf-8'}
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, TypeVar

import msgspec
from msgspec import inspect

from sessiontree.typed import json_decoder

__all__ = [
    "JsonError",
    "ValueReader",
    "as_type",
    "decode",
    "decode_text",
    "encode",
    "encode_plain",
    "indented",
    "values_in",
]

T = TypeVar("T")

_encode = msgspec.json.Encoder().encode
_BLANKS = " \t\r\n"


class JsonError(ValueError):
    """Bytes that Go's decoder would refuse, too."""


def encode(value: Any) -> bytes:
    """Compact JSON with markup characters escaped, as ``json.Marshal`` does by default."""
    # These three occur inside strings only, so replacing bytes is safe.
    return encode_plain(value).replace(b"<", b"\\u003c").replace(b">", b"\\u003e").replace(b"&", b"\\u0026")


def encode_plain(value: Any) -> bytes:
    """Compact JSON with ``SetEscapeHTML(false)``: only the two line separators of Unicode are escaped."""
    body = _encode(value)
    # One byte is looked for much faster than two, and faster so than with "in".
    if body.find(b"\xe2") >= 0:
        body = body.replace(b"\xe2\x80\xa8", b"\\u2028").replace(b"\xe2\x80\xa9", b"\\u2029")
    return body


def indented(body: bytes) -> bytes:
    """The same JSON with two blanks a level, as ``json.MarshalIndent`` writes it."""
    return msgspec.json.format(body, indent=2)


def decode(body: bytes, *, number: Callable[[str], Any] | None = None) -> Any:
    """Any JSON value by Go's rules: the last of equal keys wins, what is no Unicode becomes U+FFFD.

    ``number`` makes numbers out of their text; ``msgspec.Raw`` keeps them as they were written.
    """
    text = decode_text(body)
    try:
        value = json.loads(text, parse_int=number, parse_float=number, parse_constant=_refuse)
        return _without_surrogates(value) if "\\ud" in text or "\\uD" in text else value
    except (ValueError, RecursionError) as error:
        raise JsonError(str(error)) from error


def as_type(body: bytes, kind: type[T]) -> T:
    """A struct by Go's rules: keys in any case, unknown ones ignored, ``null`` and what is missing is the zero value."""
    value = decode(body, number=_raw_number)
    if value is None:
        value = {}
    try:
        return json_decoder(kind).decode(_encode(_fitted(value, kind)))
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise JsonError(str(error)) from error


def values_in(body: bytes) -> Iterator[bytes]:
    """The JSON values that stand in a row without a line break between them; stops at the first that is broken."""
    text = decode_text(body)
    decoder = json.JSONDecoder(parse_constant=_refuse)
    at = 0
    while at < len(text):
        if text[at] in _BLANKS:
            at += 1
            continue
        try:
            _, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError) as error:
            raise JsonError(f"{error} (after {at} characters)") from error
        yield text[at:end].encode("utf-8", "surrogatepass")
        at = end


class ValueReader:
    """Reads the pairs of an object one by one, as far as a file goes that breaks off somewhere."""

    def __init__(self, text: str, at: int) -> None:
        self._text = text
        self._at = at
        self._decoder = json.JSONDecoder(parse_constant=_refuse)

    def pair(self) -> tuple[str, Any] | None:
        """The next key and value, or ``None`` where there is no whole one."""
        try:
            key = self._value(",")
            value = self._value(":")
        except (ValueError, RecursionError):
            return None
        return (key, _without_surrogates(value)) if isinstance(key, str) else None

    def _value(self, after: str) -> Any:
        while self._at < len(self._text) and self._text[self._at] in _BLANKS + after:
            self._at += 1
        value, self._at = self._decoder.raw_decode(self._text, self._at)
        return value


def decode_text(body: bytes) -> str:
    """UTF-8 where every byte that does not belong becomes one U+FFFD, as Go does it."""
    try:
        return body.decode()
    except UnicodeDecodeError:
        return body.decode(errors="sessiontree.each_byte")


def _each_byte(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)
    return "\ufffd", error.start + 1


codecs.register_error("sessiontree.each_byte", _each_byte)


def _refuse(constant: str) -> Any:
    raise JsonError(f"{constant} is no JSON number")


def _raw_number(text: str) -> msgspec.Raw:
    return msgspec.Raw(text.encode())


def _without_surrogates(value: Any) -> Any:
    match value:
        case str():
            return value if value.isascii() else value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        case list():
            return [_without_surrogates(item) for item in value]
        case dict():
            return {_without_surrogates(key): _without_surrogates(item) for key, item in value.items()}
        case _:
            return value


def _fitted(value: Any, kind: Any) -> Any:
    """The value with the keys of a struct spelled as the struct spells them, and zero values filled in."""
    return _fit(value, _type_info(kind))


@cache
def _type_info(kind: Any) -> inspect.Type:
    """Looking through a type takes a millisecond, as long as reading a short session."""
    return inspect.type_info(kind)


def _fit(value: Any, kind: inspect.Type) -> Any:
    match kind:
        case inspect.StructType() if isinstance(value, dict):
            return _fit_struct(value, kind)
        case inspect.ListType(item_type=item) | inspect.VarTupleType(item_type=item) if isinstance(value, list):
            return [_zero(item) if one is None else _fit(one, item) for one in value]
        case inspect.DictType(value_type=item) if isinstance(value, dict):
            return {key: _zero(item) if one is None else _fit(one, item) for key, one in value.items()}
        case inspect.UnionType(types=types):
            return _fit(value, next(one for one in types if not isinstance(one, inspect.NoneType)))
        case _:
            return value


def _fit_struct(value: dict[str, Any], kind: inspect.StructType) -> dict[str, Any]:
    fields = _fields(kind.cls)
    fitted: dict[str, Any] = {}
    for key, one in value.items():
        field = fields.get(key) or fields.get(key.casefold())
        if field is None:
            continue
        if one is not None or _is_raw(field.type):
            fitted[field.encode_name] = _fit(one, field.type)
    for field in kind.fields:
        if field.required:
            fitted.setdefault(field.encode_name, _zero(field.type))
    return fitted


def _is_raw(kind: inspect.Type) -> bool:
    """``null`` is a value of its own where Go keeps raw JSON."""
    return isinstance(kind, inspect.RawType)


@cache
def _fields(kind: type) -> dict[str, inspect.Field]:
    info = inspect.type_info(kind)
    assert isinstance(info, inspect.StructType)
    exact = {field.encode_name: field for field in info.fields}
    return {field.encode_name.casefold(): field for field in info.fields} | exact


def _zero(kind: inspect.Type) -> Any:
    match kind:
        case inspect.StrType():
            return ""
        case inspect.IntType():
            return 0
        case inspect.BoolType():
            return False
        case inspect.StructType():
            return _fit_struct({}, kind)
        case _:
            return None
