r"""JSON and times as Go's standard library reads and writes them, for the files of programs written in Go.

>>> encode({"a": "x<y>"})
b'{"a":"x\\u003cy\\u003e"}'
>>> decode(b'{"a": 1, "a": 2, "b": "bad \xff utf-8"}')
{'a': 2, 'b': 'bad \ufffd utf-8'}

Times are exact to the nanosecond:

>>> nanoseconds("2026-03-03T15:30:00.26122846+02:00")
1772544600261228460
>>> text(1772544600261228460)
'2026-03-03T13:30:00.26122846Z'
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import cache, lru_cache
from typing import Any, TypeVar

import msgspec
from msgspec import inspect

from sessiontree.model import NANOSECONDS, json_decoder

__all__ = [
    "ZERO",
    "JsonError",
    "ValueReader",
    "as_type",
    "decode",
    "decode_text",
    "encode",
    "encode_plain",
    "float_text",
    "folded",
    "indented",
    "nanoseconds",
    "nanoseconds_of_any",
    "text",
    "values_in",
    "whole_seconds",
]


T = TypeVar("T")

_encode = msgspec.json.Encoder().encode
_BLANKS = " \t\r\n"


class JsonError(ValueError):
    """The bytes are not JSON; Go's decoder refuses them too."""


def encode(value: Any) -> bytes:
    """Compact JSON with markup characters escaped, as ``json.Marshal`` does by default."""
    # These three occur inside strings only, so replacing bytes is safe.
    return encode_plain(value).replace(b"<", b"\\u003c").replace(b">", b"\\u003e").replace(b"&", b"\\u0026")


def encode_plain(value: Any) -> bytes:
    """Compact JSON with ``SetEscapeHTML(false)``: only the two line separators of Unicode are escaped."""
    body = _encode(value)
    # Searching for one byte is much faster than for two, and find() is faster than "in".
    if body.find(b"\xe2") >= 0:
        body = body.replace(b"\xe2\x80\xa8", b"\\u2028").replace(b"\xe2\x80\xa9", b"\\u2029")
    return body


_PLAIN_FROM, _PLAIN_BELOW = 1e-6, 1e21


def float_text(value: float) -> str:
    """A float as Go writes it: with an exponent only where it is very small or very large.

    A whole number keeps its ``.0``, which means the same to Go, so that it is read back as a float.

    >>> [float_text(value) for value in (1e21, 1.5e-7, 1e-5, 1e16, 2.0)]
    ['1e+21', '1.5e-7', '0.00001', '10000000000000000.0', '2.0']
    """
    text = repr(value)
    if "e" not in text:
        return text
    if not _PLAIN_FROM <= abs(value) < _PLAIN_BELOW:
        return text.replace("e-0", "e-")
    plain = f"{Decimal(text):f}"
    return plain if "." in plain else f"{plain}.0"


def indented(body: bytes) -> bytes:
    """The same JSON, indented by two spaces as ``json.MarshalIndent`` does."""
    return msgspec.json.format(body, indent=2)


def decode(body: bytes, *, number: Callable[[str], Any] | None = None) -> Any:
    """A JSON value by Go's rules: the last of equal keys wins, invalid Unicode becomes U+FFFD.

    ``number`` converts the text of a number; ``msgspec.Raw`` keeps it as it was written.
    """
    text = decode_text(body)
    try:
        value = json.loads(text, parse_int=number, parse_float=number, parse_constant=_refuse)
        return _without_surrogates(value) if "\\ud" in text or "\\uD" in text else value
    except (ValueError, RecursionError) as error:
        raise JsonError(str(error)) from error


def as_type(body: bytes, kind: type[T]) -> T:
    """A struct by Go's rules: keys in any case, unknown keys ignored, the zero value for ``null`` and missing keys."""
    value = decode(body, number=_raw_number)
    if value is None:
        value = {}
    try:
        return json_decoder(kind).decode(_encode(_fitted(value, kind)))
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise JsonError(str(error)) from error


def values_in(body: bytes) -> Iterator[bytes]:
    """The JSON values of a line that has several without a line break between them; JsonError at a broken one."""
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
    """Reads the pairs of an object one by one, up to the place where the text is cut off."""

    def __init__(self, text: str, at: int) -> None:
        self._text = text
        self._at = at
        self._decoder = json.JSONDecoder(parse_constant=_refuse)

    def pair(self) -> tuple[str, Any] | None:
        """The next key and value, or ``None`` if there is no complete pair."""
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
    """Decode UTF-8; each invalid byte becomes one U+FFFD, as in Go."""
    try:
        return body.decode()
    except UnicodeDecodeError:
        return body.decode(errors="sessiontree.each_byte")


def _each_byte(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)
    return "\ufffd", error.start + 1


codecs.register_error("sessiontree.each_byte", _each_byte)


def _refuse(constant: str) -> Any:
    raise JsonError(f"{constant} is not a JSON number")


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


def folded(value: dict[str, Any]) -> dict[str, Any]:
    """The object with its keys in lower case: Go matches keys in any case."""
    return {key.casefold(): item for key, item in value.items()}


def _fitted(value: Any, kind: Any) -> Any:
    """The value with its keys spelled as in the struct, and zero values filled in."""
    return _fit(value, _type_info(kind))


@cache
def _type_info(kind: Any) -> inspect.Type:
    """Cached, because inspecting a type takes a millisecond, as long as reading a short session."""
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
    """Whether the field keeps raw JSON, where ``null`` is a value like any other."""
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


ZERO = "0001-01-01T00:00:00Z"
"""Go's zero time, which means that no time is set."""

_EPOCH = date(1970, 1, 1)
_WHOLE = len("0001-01-01T00:00:00")
_LEAST, _MOST = -(1 << 63), (1 << 63) - 1
_RFC3339 = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d):(\d\d):(\d\d)(?:[.,](\d+))?(Z|[+-]\d\d:\d\d)", re.ASCII)
# Go's time.String(), ISO 8601 and the same without a zone; the zone's name and the monotonic reading are ignored.
_LOOSE = re.compile(
    r"(\d{4}-\d\d-\d\d)[T ](\d\d):(\d\d):(\d\d)(?:[.,](\d+))? ?(Z|[+-]\d\d:?\d\d)?(?: [^ ]+)?(?: m=.*)?", re.ASCII
)


def nanoseconds(written: str) -> int | None:
    """Nanoseconds since 1970 of an RFC 3339 time; ``None`` if it is invalid or not between 1678 and 2262."""
    if len(written) > _WHOLE and written[-1] == "Z" and written[_WHOLE] == ".":
        seconds, fraction = _seconds_of(written[:_WHOLE]), written[_WHOLE + 1 : -1]
        if seconds is not None and fraction.isdecimal() and fraction.isascii():
            return seconds + int(fraction[:9].ljust(9, "0"))
    found = _RFC3339.fullmatch(written)
    return _sum(found) if found else None


def nanoseconds_of_any(written: str) -> int | None:
    """The same for every form that a database driver may have written."""
    found = _LOOSE.fullmatch(written.strip())
    return _sum(found) if found else None


def text(time_ns: int) -> str:
    """A time in RFC 3339 and UTC, without trailing zeros in the fraction."""
    seconds, rest = divmod(time_ns, NANOSECONDS)
    start = _seconds_text(seconds)
    return f"{start}.{rest:09}".rstrip("0") + "Z" if rest else start + "Z"


def whole_seconds(written: str) -> str:
    """The time without its fraction, as Go's ``time.RFC3339`` writes it."""
    return re.sub(r"\.\d+", "", written)


def _sum(found: re.Match[str]) -> int | None:
    day, hour, minute, second, fraction, zone = found.groups()
    start = _day_seconds(day)
    if start is None or int(hour) > 23 or int(minute) > 59 or int(second) > 59:
        return None
    seconds = start + int(hour) * 3600 + int(minute) * 60 + int(second) - _zone_seconds(zone)
    value = seconds * NANOSECONDS + (int(fraction[:9].ljust(9, "0")) if fraction else 0)
    return value if _LEAST <= value <= _MOST else None


@lru_cache(maxsize=1024)
def _seconds_of(written: str) -> int | None:
    """Nanoseconds of a UTC time without a fraction; cached, because many records have the same second."""
    found = _RFC3339.fullmatch(written + "Z")
    return _sum(found) if found else None


@lru_cache(maxsize=1024)
def _day_seconds(day: str) -> int | None:
    try:
        return (date.fromisoformat(day) - _EPOCH).days * 86400
    except ValueError:
        return None


def _zone_seconds(zone: str | None) -> int:
    if zone is None or zone == "Z":
        return 0
    seconds = int(zone[1:3]) * 3600 + int(zone[-2:]) * 60
    return -seconds if zone[0] == "-" else seconds


@lru_cache(maxsize=1024)
def _seconds_text(seconds: int) -> str:
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%S")
