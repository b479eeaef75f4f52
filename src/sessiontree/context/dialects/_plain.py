"""Objects of the providers' SDKs as plain values, and answers as requests accept them.

An SDK's response type has fields that its request type lacks, and nulls where a request must leave the field out. They
stay in the log; a table that is derived from the SDKs (``_request_fields``) says which of them a request leaves out.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from enum import Enum
from typing import Any

from sessiontree.errors import InvalidInputError

__all__ = ["cleaned", "cleaned_block", "plain", "plain_response", "without_nulls"]


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


def cleaned(wire: Wire, table: Wire) -> Wire:
    """Return an object of a response with the names and fields that a request has.

    >>> cleaned({"text": "a", "async_": True, "parsed": 1}, {"drop": ["parsed"], "rename": {"async_": "async"}})
    {'text': 'a', 'async': True}
    """
    names = table.get("rename", {})
    named = {names.get(key, key): value for key, value in wire.items()}
    inside = table.get("inside", {})
    return {
        key: _inside(value, inside[key]) if key in inside else value
        for key, value in named.items()
        if key not in table.get("drop", ()) and not (value is None and key in table.get("null", ()))
    } | {key: None for key in table.get("fill", ()) if key not in named}


def cleaned_block(block: Any, tables: Wire) -> Any:
    """Return a block cleaned by the table of its ``type``; a block of an unknown type stays as it is."""
    if not isinstance(block, dict):
        return block
    table = tables.get(str(block.get("type", "")), tables.get(""))
    return cleaned(block, table) if table else block


def _inside(value: Any, tables: Wire) -> Any:
    return [cleaned_block(item, tables) for item in value] if isinstance(value, list) else cleaned_block(value, tables)
