"""Objects of the providers' SDKs as plain values, and answers as requests accept them.

An SDK's response type has fields that its request type lacks, and nulls where a request must leave the field out. They
stay in the log; a table that is derived from the SDKs (``_request_fields``) says which of them a request leaves out.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from enum import Enum
from typing import Any

__all__ = ["cleaned", "cleaned_block", "plain"]


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
    }


def cleaned_block(block: Any, tables: Wire) -> Any:
    """Return a block cleaned by the table of its ``type``; a block of an unknown type stays as it is."""
    if not isinstance(block, dict):
        return block
    table = tables.get(str(block.get("type", "")), tables.get(""))
    return cleaned(block, table) if table else block


def _inside(value: Any, tables: Wire) -> Any:
    return [cleaned_block(item, tables) for item in value] if isinstance(value, list) else cleaned_block(value, tables)
