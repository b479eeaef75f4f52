"""Objects of the providers' SDKs as plain values, and the checks of what is read from them."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Mapping
from enum import Enum
from typing import Any

from sessiontree.errors import InvalidInputError

__all__ = ["a_text", "an_object", "counts", "objects", "plain", "plain_request", "plain_response", "without_nulls"]


Wire = dict[str, Any]


def plain(value: Any) -> Any:
    """Return a response as plain JSON values: an SDK's object, any dump of one, or a mixture.

    >>> plain({"data": b"AB", "parts": ({"text": "x"},)})
    {'data': 'QUI=', 'parts': [{'text': 'x'}]}
    """
    match value:
        case Enum():
            return plain(value.value)
        case None | bool() | int() | float() | str():
            return value
        case bytes():
            return base64.b64encode(value).decode()
        case Mapping():
            return {str(key): plain(inner) for key, inner in value.items()}
        case list() | tuple() | set() | frozenset():
            return [plain(inner) for inner in value]
        case _ if hasattr(value, "model_dump"):
            return plain(value.model_dump(by_alias=True, warnings=False))
        case _:
            return str(value)


def plain_response(body: Any, dialect: str, fields: tuple[str, ...]) -> Wire:
    """Return a response as plain values, also from its JSON text. It has at least one of the ``fields``."""
    if isinstance(body, str | bytes | bytearray):
        try:
            body = json.loads(body)
        except ValueError:
            body = {}
    response = plain(body)
    if not isinstance(response, dict) or not any(field in response for field in fields):
        raise InvalidInputError(
            f"from_response() of {dialect} takes a whole response, which has {' or '.join(map(repr, fields))}: the SDK's "
            f"object, a dump of it, or its JSON text; got {_described(response)}"
        )
    return response


def plain_request(body: Any, dialect: str) -> Wire:
    """Return a request as plain values."""
    request = plain(body)
    if not isinstance(request, dict):
        raise InvalidInputError(f"from_request() of {dialect} takes the fields of a request, not {_described(request)}")
    return request


def _described(value: Any) -> str:
    return f"a dict with {', '.join(map(repr, value)) or 'nothing'}" if isinstance(value, dict) else repr(value)[:80]


def without_nulls(answer: Any) -> Any:
    """Return a message of a response, or its blocks, without null fields; dumps have one for each field not set.

    >>> without_nulls({"type": "tool_use", "input": {"limit": None}, "caller": None})
    {'type': 'tool_use', 'input': {'limit': None}}
    """
    match answer:
        case dict():
            return {key: value for key, value in answer.items() if value is not None}
        case list():
            return [without_nulls(block) for block in answer]
        case _:
            return answer


def objects(value: Any, place: str) -> list[Wire]:
    """Return a list of objects, which may be missing. Raises InvalidInputError that names the place of anything else."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise InvalidInputError(f"{place} must be a list of objects, not {_described(value)}")
    return [an_object(item, f"{place}[{index}]", may_miss=False) for index, item in enumerate(value)]


def an_object(value: Any, place: str, *, may_miss: bool = True) -> Wire:
    """Return an object, which may be missing."""
    if value is None and may_miss:
        return {}
    if not isinstance(value, dict):
        raise InvalidInputError(f"{place} must be an object, not {_described(value)}")
    return value


def a_text(value: Any, place: str) -> str:
    """Return a text, which may be missing."""
    if value is None:
        return ""
    if not isinstance(value, str):
        raise InvalidInputError(f"{place} must be a text, not {_described(value)}")
    return value


def counts(value: Any, place: str) -> dict[str, int]:
    """Return the numbers of an object, which may be missing, and those of the objects in it, under their last names."""
    found: dict[str, int] = {}
    for key, inner in an_object(value, place).items():
        if isinstance(inner, dict):
            found |= counts(inner, f"{place}.{key}")
        elif isinstance(inner, int | float) and math.isfinite(inner):
            found[key] = int(inner)
    return found
