"""A query, taken apart.

The query language: words, "phrases", prefix*, -without, and filters.

>>> query = parse_query('disk "out of space" role:tool retr*', now=datetime(2026, 1, 31, tzinfo=UTC))
>>> [term.alternatives for term in query.terms]
[(('disk',),), (('out', 'of', 'space'),), (('retr',),)]
>>> query.roles
('tool',)

What a search gives back.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal

import msgspec

from sessiontree.errors import InvalidInputError
from sessiontree.model import Entry
from sessiontree.model._base import Record, json_decoder
from sessiontree.search.words import compounds_of, tokens_of

__all__ = [
    "FILTERS",
    "Cursor",
    "Hit",
    "SearchOrder",
    "SearchPage",
    "SearchQuery",
    "Snippet",
    "Term",
    "cursor_of",
    "encode_cursor",
    "moment_of",
    "nanoseconds_of",
    "parse_query",
]


class Term(Record, frozen=True, kw_only=True):
    """Found where one of the alternatives stands as a phrase; with ``is_prefix`` its last token may go on."""

    alternatives: tuple[tuple[str, ...], ...]
    is_prefix: bool = False
    is_excluded: bool = False


class SearchQuery(Record, frozen=True, kw_only=True):
    """All terms must be found and every filter must hold; several values of one filter are alternatives.

    ``threads`` is every branch that a thread sees, ``branches`` the active path of a thread alone.
    """

    terms: tuple[Term, ...] = ()
    roles: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    threads: tuple[str, ...] = ()
    branches: tuple[str, ...] = ()
    before_ns: int | None = None
    after_ns: int | None = None

    @property
    def wanted(self) -> tuple[Term, ...]:
        return tuple(term for term in self.terms if not term.is_excluded)

    @property
    def excluded(self) -> tuple[Term, ...]:
        return tuple(term for term in self.terms if term.is_excluded)


_PIECES = re.compile(r'(?P<minus>-)?(?:(?P<name>[a-z]+):)?(?:"(?P<phrase>[^"]*)"?|(?P<word>\S+)|(?<=:))')
_AGO = re.compile(r"^(\d+)(min|h|d|w|m|y)$")
_MOST_WORDS = 200
_FARTHEST_NS = (1 << 63) - 1
_UNITS = {"min": 1 / 1440, "h": 1 / 24, "d": 1, "w": 7, "m": 30, "y": 365}


FILTERS: dict[str, str] = {
    "role": "roles",
    "tool": "tools",
    "model": "models",
    "file": "files",
    "label": "labels",
    "thread": "threads",
    "branch": "branches",
}
_ROLES = ("system", "user", "assistant", "tool")


def parse_query(text: str, *, now: datetime) -> SearchQuery:
    """What a person typed, as a query; ``now`` is what ``after:yesterday`` counts from, in the person's time zone."""
    terms: list[Term] = []
    fields: dict[str, Any] = {}
    for piece in _PIECES.finditer(text):
        name, phrase = piece["name"], piece["phrase"]
        value = (piece["word"] or "") if phrase is None else phrase
        if name in FILTERS or name in {"before", "after"}:
            _add_filter(fields, name, value, piece["minus"], now)
        else:
            words = value if name is None else f"{name}:{value}"
            terms += _terms(words, is_phrase=phrase is not None and name is None, is_excluded=bool(piece["minus"]))
    terms = list(dict.fromkeys(terms))
    if sum(len(term.alternatives[0]) for term in terms) > _MOST_WORDS:
        raise InvalidInputError(f"a search has at most {_MOST_WORDS} words; leave the common ones out")
    if not terms and not fields:
        raise InvalidInputError('the search is empty; give a word, a "phrase", a prefix* or a filter such as role:user')
    if terms and not fields and all(term.is_excluded for term in terms):
        raise InvalidInputError("a search for what is not there needs something that is: add a word or a filter")
    return SearchQuery(terms=tuple(terms), **fields)


def _add_filter(fields: dict[str, Any], name: str, value: str, minus: str | None, now: datetime) -> None:
    if minus:
        raise InvalidInputError(f"-{name}: is not supported; only words and phrases can be left out with a minus")
    if not value:
        raise InvalidInputError(f"{name}: needs a value, for example {name}:{_EXAMPLES[name]}")
    match name:
        case "before" | "after":
            fields[f"{name}_ns"] = nanoseconds_of(moment_of(name, value, now))
        case "role" if value.casefold() not in _ROLES:
            raise InvalidInputError(f"role:{value} is none of {', '.join(_ROLES)}")
        case "thread" | "branch" | "label":
            fields[FILTERS[name]] = (*fields.get(FILTERS[name], ()), value)
        case _:
            fields[FILTERS[name]] = (*fields.get(FILTERS[name], ()), value.casefold())


_EXAMPLES = {
    "role": "user",
    "tool": "bash",
    "model": "gpt",
    "file": "main.py",
    "label": "good",
    "thread": "3fa9",
    "branch": "3fa9",
    "before": "2026-01-31",
    "after": "7d",
}


def _terms(value: str, *, is_phrase: bool, is_excluded: bool) -> list[Term]:
    is_prefix = not is_phrase and value.endswith("*")
    tokens = tuple(tokens_of(value))
    if not tokens:
        return []
    alternatives = [tokens]
    joined = compounds_of(value).replace(" ", "")
    if not is_phrase and len(tokens) > 1 and joined == "".join(tokens):
        alternatives.append((joined,))
    return [Term(alternatives=tuple(alternatives), is_prefix=is_prefix, is_excluded=is_excluded)]


def nanoseconds_of(moment: datetime) -> int:
    """Since 1970, within what stores count with: years before 1678 and after 2261 become those."""
    return max(-_FARTHEST_NS, min(_FARTHEST_NS, int(moment.timestamp() * 1_000_000) * 1_000))


def moment_of(name: str, value: str, now: datetime) -> datetime:
    """``2026-01-31``, ``2026-01-31T10:00``, ``today``, ``yesterday``, or an age such as ``90min``, ``2h``, ``7d``, ``3m``."""
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    words: dict[str, Callable[[], datetime]] = {
        "now": lambda: now,
        "today": lambda: midnight,
        "yesterday": lambda: midnight - timedelta(days=1),
    }
    if value in words:
        return words[value]()
    age = _AGO.match(value)
    try:
        if age:
            return now - timedelta(days=int(age[1]) * _UNITS[age[2]])
        moment = datetime.fromisoformat(value)
    except (ValueError, OverflowError) as error:
        raise InvalidInputError(
            f"{name}:{value} is no time; use 2026-01-31, 2026-01-31T10:00, today, yesterday, or an age such as 2h, 7d, 3m"
        ) from error
    return moment if moment.tzinfo else moment.replace(tzinfo=now.tzinfo or UTC)


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
