"""Records of frameworks in entries: a record is kept, word for word, beside the message that it means.

Reading returns the record as it came, and everything else works on the message: lists, searches, counts, compaction, the
viewer, requests to any provider. It is in ``origin`` under the name of its framework, so that an adapter knows its own.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from math import isfinite
from typing import Any, TypeVar
from urllib.parse import quote

import msgspec
from msgspec.structs import replace

import sessiontree as st
from sessiontree.model import convert, json_decoder

__all__ = [
    "as_given",
    "as_stored",
    "kept",
    "record_of",
    "records_of",
    "stored_record",
    "thread_id_of",
    "with_valid_json",
    "with_valid_values",
]

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
    stored = as_stored(record, f"a record of {framework}")
    return replace(payload if stored is record else with_valid_json(payload), origin={framework: stored})


def as_stored(record: Any, what: str) -> Any:
    """Return a record as the journal takes it; ``as_given`` returns it again. Raises InvalidInputError if it is not JSON."""
    try:
        _strict_json(record).encode()
    except ValueError:  # not a number, or an emoji that was cut in the middle
        return {_TEXT: json.dumps(record)}
    except TypeError as error:
        raise st.InvalidInputError(f"{what} cannot be stored as JSON: {error}") from error
    return {_TEXT: json.dumps(record)} if _is_text(record) else record


def as_given(stored: Any) -> Any:
    """Return the record that was stored."""
    return json.loads(stored[_TEXT]) if _is_text(stored) else stored


def with_valid_json(payload: P) -> P:
    """Return a payload that the journal takes, to be shown: with marks for halves of emoji, and texts for NaN and infinity."""
    return convert(with_valid_values(msgspec.to_builtins(payload)), type(payload))


def with_valid_values(value: Any) -> Any:
    """Return a value with a mark in place of each half of an emoji, and the text of numbers that JSON lacks.

    >>> with_valid_values(["cut \\ud83d", float("nan")])
    ['cut ?', 'nan']
    """
    match value:
        case str():
            return value.encode("utf-8", "replace").decode()
        case float() if not isfinite(value):
            return str(value)
        case list() | tuple():
            return [with_valid_values(item) for item in value]
        case dict():
            return {with_valid_values(name): with_valid_values(item) for name, item in value.items()}
        case _:
            return value


def record_of(entry: st.Entry, framework: str) -> Any:
    """Return the record that an entry was made from; ``None`` if it was made otherwise."""
    return as_given(getattr(entry.payload, "origin", {}).get(framework))


def records_of(bodies: Iterable[st.EntryBody], framework: str) -> list[Any]:
    """Return the record of each stored payload, or ``None``. Nothing else of it is decoded, which takes half the time."""
    return [stored_record(one, framework) for one in bodies]


def stored_record(stored: st.EntryBody, framework: str) -> Any:
    """Return the record of a stored payload, as ``record_of`` does, or ``None`` if the payload is damaged."""
    try:
        return as_given(_kept.decode(stored.body).origin.get(framework))
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None  # a damaged payload


def _is_text(record: Any) -> bool:
    return isinstance(record, dict) and len(record) == 1 and _TEXT in record


def thread_id_of(*names: str) -> str:
    """Return the id of the thread for names that are unique together only.

    >>> thread_id_of("google-adk", "app", "user/1", "s")
    'google-adk/app/user%2F1/s'
    """
    return "/".join(quote(name, safe="", errors="surrogatepass") for name in names)
