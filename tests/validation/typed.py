"""Compare a JSON value with a request type of an SDK: strictly, and with a path in every message.

Unknown keys, missing keys, nulls where the type has none, and values of another JSON type are problems. The types are
the ``TypedDict`` classes that the SDKs publish for requests, so the rules change with the SDK and not with this module.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NotRequired, Required, Union, get_args, get_origin, get_type_hints

from typing_extensions import is_typeddict

__all__ = ["json_problems", "type_problems"]

_DISCRIMINATORS = ("type", "role")
_SCALARS: dict[object, tuple[type, ...]] = {str: (str,), bool: (bool,), int: (int,), float: (int, float)}


def json_problems(value: object) -> list[str]:
    """Return why a value cannot be sent as a JSON body (RFC 8259: UTF-8, finite numbers)."""
    try:
        json.dumps(value, allow_nan=False, ensure_ascii=False).encode()
    except (TypeError, ValueError) as error:
        return [f"not a JSON body: {error}"]
    return []


def type_problems(value: object, kind: Any, path: str = "") -> list[str]:
    """Return where a value differs from a type."""
    kind = _plain(kind)
    if kind in (Any, object):
        return []
    if is_typeddict(kind):
        return _record_problems(value, kind, path)
    match get_origin(kind):
        case origin if origin in (Union, UnionType):
            return _union_problems(value, get_args(kind), path)
        case origin if origin is Literal:
            return [] if value in get_args(kind) else [f"{path}: {value!r} is none of {get_args(kind)}"]
        case origin if isinstance(origin, type) and issubclass(origin, Mapping):
            return _mapping_problems(value, get_args(kind)[1], path)
        case origin if _is_sequence(kind, origin):
            return _sequence_problems(value, get_args(kind)[0], path)
        case _:
            return _scalar_problems(value, kind, path)


def _plain(kind: Any) -> Any:
    while get_origin(kind) in (Required, NotRequired, Annotated):
        kind = get_args(kind)[0]
    return kind


def _is_sequence(kind: Any, origin: Any) -> bool:
    if not isinstance(origin, type) or not get_args(kind):
        return False
    return issubclass(origin, Iterable) or origin.__name__ == "SequenceNotStr"


def _scalar_problems(value: object, kind: Any, path: str) -> list[str]:
    if kind in (None, NoneType):
        return [] if value is None else [f"{path}: expected null"]
    allowed = _SCALARS.get(kind)
    if allowed is None:  # an open file or a path: nothing that JSON can hold
        return [f"{path}: not a {getattr(kind, '__name__', kind)}"]
    if isinstance(value, bool) and kind is not bool:
        return [f"{path}: a boolean, expected {kind.__name__}"]
    if not isinstance(value, allowed):
        return [f"{path}: {type(value).__name__}, expected {kind.__name__}"]
    return []


def _mapping_problems(value: object, kind: Any, path: str) -> list[str]:
    if not isinstance(value, Mapping):
        return [f"{path}: {type(value).__name__}, expected an object"]
    return [problem for key, item in value.items() for problem in type_problems(item, kind, f"{path}.{key}")]


def _sequence_problems(value: object, kind: Any, path: str) -> list[str]:
    if not isinstance(value, Sequence) or isinstance(value, str | bytes):
        return [f"{path}: {type(value).__name__}, expected an array"]
    return [problem for index, item in enumerate(value) for problem in type_problems(item, kind, f"{path}[{index}]")]


def _record_problems(value: object, kind: Any, path: str) -> list[str]:
    if not isinstance(value, Mapping):
        return [f"{path}: {type(value).__name__}, expected an object"]
    fields = _fields(kind)
    found = [f"{path}.{key}: unknown to {kind.__name__}" for key in value if key not in fields]
    found += [f"{path}.{key}: missing" for key in _required(kind) if key not in value]
    for key in value:
        if key in fields:
            found += type_problems(value[key], fields[key], f"{path}.{key}")
    return found


def _union_problems(value: object, kinds: tuple[Any, ...], path: str) -> list[str]:
    """Return the problems of the member that fits best; ``type`` and ``role`` choose among records."""
    members = _members(kinds)
    if isinstance(value, Mapping):
        members = [kind for kind in members if _may_be(value, kind)]
        if not members:
            label = {key: value[key] for key in _DISCRIMINATORS if key in value}
            return [f"{path}: no request type for {label or sorted(value)}"]
    elif isinstance(value, list):  # a problem inside of an array says more than that it is no string
        members = [kind for kind in members if _is_sequence(kind, get_origin(kind))] or members
    attempts = [type_problems(value, kind, path) for kind in members]
    return min(attempts, key=len)


def _members(kinds: tuple[Any, ...]) -> list[Any]:
    """Return the members of a union and of the unions in it."""
    found: list[Any] = []
    for kind in map(_plain, kinds):
        found += _members(get_args(kind)) if get_origin(kind) in (Union, UnionType) else [kind]
    return found


def _may_be(value: Mapping[str, Any], kind: Any) -> bool:
    if not is_typeddict(kind):  # an object of an SDK is accepted by the SDK, but JSON holds none
        return kind in (Any, object) or get_origin(kind) is not None
    fields = _fields(kind)
    for key in _DISCRIMINATORS:
        expected = _literals(fields[key]) if key in fields else None
        if expected is None:
            continue
        if key in value and value[key] not in expected:
            return False
        if key not in value and key in _required(kind):
            return False
    return True


def _literals(kind: Any) -> tuple[Any, ...] | None:
    kind = _plain(kind)
    if get_origin(kind) is Literal:
        return get_args(kind)
    if get_origin(kind) in (Union, UnionType):
        members = [_literals(member) for member in get_args(kind)]
        return tuple(item for member in members if member for item in member) or None
    return None


@cache
def _fields(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind, include_extras=True)


@cache
def _required(kind: Any) -> frozenset[str]:
    """Return the keys that must be there; ``__required_keys__`` misses those under postponed annotations."""
    return frozenset(key for key, hint in _fields(kind).items() if get_origin(hint) is Required)
