"""What a search gives back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

import msgspec

from sessiontree.errors import InvalidInputError
from sessiontree.model import Entry
from sessiontree.model.record import Record
from sessiontree.typed import json_decoder

__all__ = ["Cursor", "Hit", "SearchOrder", "SearchPage", "Snippet", "cursor_of", "encode_cursor"]

SearchOrder = Literal["best", "newest"]
"""``best`` ranks by relevance, ``newest`` by the order of commits, latest first."""


class Snippet(Record, frozen=True, kw_only=True):
    """A piece of the text around the first match; ``marks`` are the ranges in it that matched."""

    text: str
    marks: tuple[tuple[int, int], ...] = ()


class Hit(Record, frozen=True, kw_only=True):
    """An entry that was found, and a thread that shows it. A greater ``score`` is a better match."""

    thread_id: str
    title: str = ""
    entry: Entry
    score: float = 0.0
    snippet: Snippet


class SearchPage(Record, frozen=True, kw_only=True):
    """One page of hits; ``cursor`` continues after it, ``None`` at the end."""

    hits: tuple[Hit, ...]
    cursor: str | None = None

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)

    def __len__(self) -> int:
        return len(self.hits)


_Count = Annotated[int, msgspec.Meta(ge=0, lt=1 << 62)]


class Cursor(msgspec.Struct, frozen=True, array_like=True):
    """Where the next page starts: how many hits were shown, of what was there when the first page was made."""

    upto: _Count
    offset: _Count


_DECODER = json_decoder(Cursor)


def encode_cursor(cursor: Cursor) -> str:
    return msgspec.json.encode(cursor).hex()


def cursor_of(text: str | None) -> Cursor | None:
    if text is None:
        return None
    try:
        return _DECODER.decode(bytes.fromhex(text))
    except (ValueError, msgspec.MsgspecError) as error:
        raise InvalidInputError(f"{text!r} is no cursor; pass the one that the last page gave") from error
