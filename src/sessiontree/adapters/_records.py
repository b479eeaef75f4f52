"""Records of frameworks in entries: a record is kept, word for word, beside the message that it means.

Reading returns the record as it came, and everything else works on the message: lists, searches, counts, compaction, the
viewer, requests to any provider. It is in ``origin`` under the name of its framework, so that an adapter knows its own.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, TypeVar
from urllib.parse import quote

import msgspec
from msgspec.structs import replace

import sessiontree as st
from sessiontree.model import convert, json_decoder

__all__ = ["kept", "record_of", "records_of", "stored_record", "thread_id_of", "with_valid_text"]

P = TypeVar("P", bound=st.Payload)


class _Kept(st.Record, frozen=True, kw_only=True):
    """The part of a stored payload that has the records."""

    origin: dict[str, Any] = {}


_kept = json_decoder(_Kept)


_TEXT = "json"
"""The only key of a record that is stored as text: frameworks write NaN, infinity and halves of emoji, which the journal refuses."""


_strict_json = json.JSONEncoder(allow_nan=False, ensure_ascii=False).encode


def kept(payload: P, framework: str, record: Any) -> P:
    """Return a payload with the record that it was made from. Raises InvalidInputError if the record is not JSON."""
    try:
        _strict_json(record).encode()
    except ValueError:  # not a number, or an emoji that was cut in the middle
        payload = convert(with_valid_text(msgspec.to_builtins(payload)), type(payload))
        record = {_TEXT: json.dumps(record)}
    except TypeError as error:
        raise st.InvalidInputError(f"a record of {framework} cannot be stored as JSON: {error}") from error
    else:
        record = {_TEXT: json.dumps(record)} if _is_text(record) else record
    return replace(payload, origin={framework: record})


def with_valid_text(value: Any) -> Any:
    """Return a value of JSON with a mark in place of each half of an emoji.

    >>> with_valid_text(["cut \\ud83d"])
    ['cut ?']
    """
    match value:
        case str():
            return value.encode("utf-8", "replace").decode()
        case list() | tuple():
            return [with_valid_text(item) for item in value]
        case dict():
            return {with_valid_text(name): with_valid_text(item) for name, item in value.items()}
        case _:
            return value


def record_of(entry: st.Entry, framework: str) -> Any:
    """Return the record that an entry was made from; ``None`` if it was made otherwise."""
    return _as_given(getattr(entry.payload, "origin", {}).get(framework))


def records_of(bodies: Iterable[st.EntryBody], framework: str) -> list[Any]:
    """Return the record of each stored payload, or ``None``. Nothing else of it is decoded, which takes half the time."""
    return [stored_record(one, framework) for one in bodies]


def stored_record(stored: st.EntryBody, framework: str) -> Any:
    """Return the record of a stored payload, as ``record_of`` does, or ``None`` if the payload is damaged."""
    try:
        return _as_given(_kept.decode(stored.body).origin.get(framework))
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None  # a damaged payload


def _as_given(stored: Any) -> Any:
    return json.loads(stored[_TEXT]) if _is_text(stored) else stored


def _is_text(record: Any) -> bool:
    return isinstance(record, dict) and len(record) == 1 and _TEXT in record


def thread_id_of(*names: str) -> str:
    """Return the id of the thread for names that are unique together only.

    >>> thread_id_of("google-adk", "app", "user/1", "s")
    'google-adk/app/user%2F1/s'
    """
    return "/".join(quote(name, safe="", errors="surrogatepass") for name in names)
