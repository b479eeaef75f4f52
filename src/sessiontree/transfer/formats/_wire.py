"""Values out of other programs' JSON: whatever is not what it should be becomes empty, never an error.

>>> text(None), text("a"), when("2026-08-01T10:00:00Z") == when(1785578400) == when(1785578400000)
('', 'a', True)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from sessiontree.model import NANOSECONDS, Usage
from sessiontree.transfer.formats import _go
from sessiontree.transfer.formats._records import amount, whole_number

__all__ = [
    "Json",
    "array",
    "as_text",
    "count",
    "decoded",
    "first_text",
    "mapping",
    "objects",
    "parse",
    "parse_noting",
    "text",
    "usage",
    "when",
]


Json = dict[str, Any]

_LATEST = 1 << 62
_SCALES = (1, 10**3, 10**6, 10**9)
_YEAR_5000 = 1e11


def text(value: Any) -> str:
    """The value if it is a text."""
    return value if isinstance(value, str) else ""


def first_text(wire: Json, *names: str) -> str:
    """The first of the named values that is a text and not empty."""
    return next((value for name in names if isinstance(value := wire.get(name), str) and value), "")


def as_text(value: Any) -> str:
    """The value as a text: itself, or as JSON."""
    if isinstance(value, str):
        return value
    return "" if value is None else msgspec.json.encode(value).decode()


def mapping(value: Any) -> Json:
    """The value if it is a JSON object."""
    return value if isinstance(value, dict) else {}


def array(value: Any) -> list[Any]:
    """The value if it is a JSON array."""
    return value if isinstance(value, list) else []


def objects(value: Any) -> list[Json]:
    """The objects in the value, if it is an array."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def count(value: Any) -> int:
    """The value if it is a count: a whole number that is not negative and fits."""
    number = whole_number(value)
    if number is None and (found := amount(value)) is not None and found.is_integer():
        number = int(found)
    return number if number is not None and 0 <= number < _LATEST else 0


def when(value: Any) -> int | None:
    """Nanoseconds since 1970 of a time: ISO 8601, or a number of seconds, milli-, micro- or nanoseconds."""
    if isinstance(value, str):
        found = _go.nanoseconds(value)
        return found if found is not None else _go.nanoseconds_of_any(value)
    number = amount(value)
    if number is None or not 0 < number < _LATEST * 2:
        return None
    scale = next((scale for scale in _SCALES if number < _YEAR_5000 * scale), _SCALES[-1])
    exact = whole_number(value)
    found = int(number * NANOSECONDS / scale) if exact is None else exact * (NANOSECONDS // scale)
    return found if found < _LATEST * 2 else None


def usage(wire: Any, names: dict[str, str], cost: Any = None) -> Usage | None:
    """The usage with our name for each of their counts; ``None`` if there is nothing in it."""
    counts = {ours: count(mapping(wire).get(theirs)) for theirs, ours in names.items()}
    found: Json = {name: number for name, number in counts.items() if number}
    paid = amount(cost)
    if paid:
        found |= {"cost": paid, "currency": "USD"}
    return Usage(**found) if found else None


def parse(body: bytes | str) -> Any:
    """The JSON value; JsonError if there is none."""
    try:
        return msgspec.json.decode(body)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return _go.decode(body if isinstance(body, bytes) else body.encode("utf-8", "surrogatepass"))


def parse_noting(body: bytes, note: Callable[[str], None]) -> Any:
    """The JSON value; ``note`` is told if bytes in it are no text, for which U+FFFD stands in the value."""
    try:
        return msgspec.json.decode(body)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        value = parse(body)
    try:
        body.decode()
    except UnicodeDecodeError as error:
        note(f"byte {error.start} is not UTF-8, perhaps others neither; they were replaced by U+FFFD")
    return value


def decoded(value: Any) -> Any:
    """The value of a text that is JSON; ``None`` if it is not."""
    try:
        return parse(value) if isinstance(value, str) and value else None
    except _go.JsonError:
        return None
