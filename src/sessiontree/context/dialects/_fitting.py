"""Values of answers as request types hold them: what a type does not have is left out.

An SDK's response type has fields that its request type lacks, and nulls where a request must leave the field out; a newer
server has blocks and fields that no type has; an odd one sends values of another type. All of it stays in the log. What a
request holds is told by the request types of the SDKs, which ``_request_types`` has as data.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sessiontree.context.dialects._media import is_base64, standard_alphabet
from sessiontree.context.dialects._request_types import RECORDS

__all__ = ["fitted", "fitting", "named"]


Wire = dict[str, Any]

_UNFIT: Any = object()
_SCALARS: dict[str, tuple[type, ...]] = {"str": (str,), "bool": (bool,), "null": (type(None),)}


def fitted(value: Any, shape: Any) -> list[Any]:
    """Return a value as a request type holds it, in a list; an empty list if the type cannot hold it.

    >>> from sessiontree.context.dialects._request_types import ANTHROPIC
    >>> fitted({"type": "text", "text": "a", "parsed_output": 1, "citations": None}, ANTHROPIC)
    [{'type': 'text', 'text': 'a', 'citations': None}]
    >>> fitted({"type": "hologram"}, ANTHROPIC), fitted({"type": "text", "text": None}, ANTHROPIC)
    ([], [])
    """
    found = _fit(value, shape)
    return [] if found is _UNFIT else [found]


def fitting(values: Iterable[Any], shape: Any) -> list[Any]:
    """Return those of some values that a request type can hold, as it holds them."""
    return [held for value in values for held in fitted(value, shape)]


def named(value: Any, shape: Any) -> Any:
    """Return a value under the names of its request type and without nulls, with everything else that it has.

    >>> from sessiontree.context.dialects._request_types import GEMINI
    >>> named({"inline_data": {"mime_type": "image/png", "new": 1}, "text": None}, GEMINI)
    {'inlineData': {'mimeType': 'image/png', 'new': 1}}
    """
    match shape, value:
        case ("record", name), dict():
            names, fields = RECORDS[name].get("names", {}), RECORDS[name]["fields"]
            wires = {names.get(key, key): inner for key, inner in value.items() if inner is not None}
            return {key: named(inner, fields.get(key, "any")) for key, inner in wires.items()}
        case ("list", inner), list():
            return [named(item, inner) for item in value]
        case _:
            return value


def _fit(value: Any, shape: Any) -> Any:
    match shape:
        case "any":
            return value
        case str():
            return value if _is_scalar(value, shape) else _UNFIT
        case ("enum", *values):
            return value if isinstance(value, str | bool | int) and value in values else _UNFIT
        case ("list", inner):
            return fitting(value, inner) if isinstance(value, list) else _UNFIT
        case ("map", inner):
            if not isinstance(value, dict):
                return _UNFIT
            return {key: held for key, item in value.items() for held in fitted(item, inner)}
        case ("record", name):
            return _fit_record(value, RECORDS[name]) if isinstance(value, dict) else _UNFIT
        case ("one", *shapes):
            return _fit_one(value, shapes)
    raise AssertionError(shape)


def _is_scalar(value: Any, kind: str) -> bool:
    match kind:
        case "int" | "float":
            is_number = isinstance(value, int if kind == "int" else int | float)
            return is_number and not isinstance(value, bool)
        case "bytes":
            return isinstance(value, str) and value != "" and is_base64(standard_alphabet(value))
        case _:
            return isinstance(value, _SCALARS[kind])


def _fit_one(value: Any, shapes: Iterable[Any]) -> Any:
    """Return a value as one of the shapes holds it: the one that holds the most."""
    best: Any = _UNFIT
    for shape in shapes:
        held = _fit(value, shape)
        if held is not _UNFIT and held == value:
            return held
        best = max(best, held, key=_size)
    return best


def _size(held: Any) -> int:
    """Return how much there is in a value; nothing at all if it does not fit."""
    match held:
        case dict():
            return 1 + sum(map(_size, held.values()))
        case list():
            return 1 + sum(map(_size, held))
        case _:
            return int(held is not _UNFIT)


def _fit_record(wire: Wire, record: Wire) -> Any:
    fields, names = record["fields"], record.get("names", {})
    required, drop = record.get("required", ()), record.get("drop")
    kind = wire.get("type")
    if "type" in fields and (kind is not None or "type" in required) and _fit(kind, fields["type"]) is _UNFIT:
        return _UNFIT
    found: Wire = {}
    for given, value in wire.items():
        key = names.get(given, given)
        held = _fit(value, fields[key]) if key in fields else value if drop is not None and key not in drop else _UNFIT
        if held is not _UNFIT:
            found[key] = held
    for key in required:
        if key not in found:
            found[key] = _default(fields[key])
    return _UNFIT if any(value is _UNFIT for value in found.values()) else found


def _default(shape: Any) -> Any:
    """Return what a required field has if an answer lacks it: null if its type holds it, or the empty list of a list."""
    return [] if shape[0] == "list" else _fit(None, shape)
