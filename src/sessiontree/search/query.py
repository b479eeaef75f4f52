"""The query language (words, "phrases", prefix*, -without, and filters), and pages of hits.

>>> query = parse_query('disk "out of space" role:tool retr*', now=datetime(2026, 1, 31, tzinfo=UTC))
>>> [term.alternatives for term in query.terms]
[(('disk',),), (('out', 'of', 'space'),), (('retr',),)]
>>> query.roles
('tool',)
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
    """Matches where one of the alternatives occurs as a phrase; with ``is_prefix`` the last token may be longer."""

    alternatives: tuple[tuple[str, ...], ...]
    is_prefix: bool = False
    is_excluded: bool = False


class SearchQuery(Record, frozen=True, kw_only=True):
    """All terms and all filters must match; several values of one filter are alternatives.

    ``threads`` searches all branches of a thread, ``branches`` only its active path.
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
        """The terms that must occur."""
        return tuple(term for term in self.terms if not term.is_excluded)

    @property
    def excluded(self) -> tuple[Term, ...]:
        """The terms that must not occur."""
        return tuple(term for term in self.terms if term.is_excluded)


_TERMS = re.compile(r'(?P<minus>-)?(?:(?P<name>[a-z]+):)?(?:"(?P<phrase>[^"]*)"?|(?P<word>\S+)|(?<=:))')
_AGE = re.compile(r"^(\d+)(min|h|d|w|m|y)$")
_MAX_WORDS = 200
_MAX_NS = (1 << 63) - 1
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
    """Parse a query; ``now``, in the user's time zone, is what ``after:yesterday`` is relative to."""
    terms: list[Term] = []
    fields: dict[str, Any] = {}
    for found in _TERMS.finditer(text):
        name, phrase = found["name"], found["phrase"]
        value = (found["word"] or "") if phrase is None else phrase
        if name in FILTERS or name in {"before", "after"}:
            _add_filter(fields, name, value, found["minus"], now)
        else:
            words = value if name is None else f"{name}:{value}"
            terms += _terms(words, is_phrase=phrase is not None and name is None, is_excluded=bool(found["minus"]))
    terms = list(dict.fromkeys(terms))
    if sum(len(term.alternatives[0]) for term in terms) > _MAX_WORDS:
        raise InvalidInputError(f"a search can have at most {_MAX_WORDS} words; leave out common ones")
    if not terms and not fields:
        raise InvalidInputError('the search is empty; use a word, a "phrase", a prefix* or a filter such as role:user')
    if terms and not fields and all(term.is_excluded for term in terms):
        raise InvalidInputError("the search only excludes words; add a word or a filter that must match")
    return SearchQuery(terms=tuple(terms), **fields)


def _add_filter(fields: dict[str, Any], name: str, value: str, minus: str | None, now: datetime) -> None:
    if minus:
        raise InvalidInputError(f"-{name}: is not supported; only words and phrases can be excluded with a minus")
    if not value:
        raise InvalidInputError(f"{name}: needs a value, for example {name}:{_EXAMPLES[name]}")
    match name:
        case "before" | "after":
            fields[f"{name}_ns"] = nanoseconds_of(moment_of(f"{name}:", value, now))
        case "role" if value.casefold() not in _ROLES:
            raise InvalidInputError(f"unknown role:{value}; use one of {', '.join(_ROLES)}")
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
    from sessiontree.search.words import compounds_of, tokens_of  # noqa: PLC0415  compiling its patterns is slow

    tokens = tuple(tokens_of(value))
    if not tokens:
        return []
    alternatives = [tokens]
    joined = compounds_of(value).replace(" ", "")
    if not is_phrase and len(tokens) > 1 and joined == "".join(tokens):
        alternatives.append((joined,))
    return [Term(alternatives=tuple(alternatives), is_prefix=is_prefix, is_excluded=is_excluded)]


def nanoseconds_of(moment: datetime) -> int:
    """Return a time as nanoseconds since 1970, limited to 64 bits (the years 1678 to 2261)."""
    return max(-_MAX_NS, min(_MAX_NS, int(moment.timestamp() * 1_000_000) * 1_000))


def moment_of(name: str, value: str, now: datetime) -> datetime:
    """Parse the time that stands after ``name``, as in ``since:``: a date, ``today``, ``yesterday``, or an age such as ``90min`` or ``7d``."""
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    words: dict[str, Callable[[], datetime]] = {
        "now": lambda: now,
        "today": lambda: midnight,
        "yesterday": lambda: midnight - timedelta(days=1),
    }
    if value in words:
        return words[value]()
    age = _AGE.match(value)
    try:
        if age:
            return now - timedelta(days=int(age[1]) * _UNITS[age[2]])
        moment = datetime.fromisoformat(value)
    except (ValueError, OverflowError) as error:
        raise InvalidInputError(
            f"cannot read {name}{value} as a time; use 2026-01-31, 2026-01-31T10:00, today, yesterday, or an age such as 2h, 7d, 3m"
        ) from error
    return moment if moment.tzinfo else moment.replace(tzinfo=now.tzinfo or UTC)


SearchOrder = Literal["best", "newest"]
"""``best`` sorts by relevance, ``newest`` by commit order, latest first."""


class Snippet(Record, frozen=True, kw_only=True):
    """The text around the first match; ``marks`` are the ranges in it that matched."""

    text: str
    marks: tuple[tuple[int, int], ...] = ()


class Hit(Record, frozen=True, kw_only=True):
    """An entry that was found, and a thread in which it is visible. A higher ``score`` is a better match."""

    thread_id: str
    title: str = ""
    entry: Entry
    score: float = 0.0
    snippet: Snippet


class SearchPage(Record, frozen=True, kw_only=True):
    """One page of hits. ``cursor`` fetches the next page; ``None`` on the last one.

    ``unsearched`` is how many entries were not searched because they are not indexed yet. Every search indexes more.
    """

    hits: tuple[Hit, ...]
    cursor: str | None = None
    unsearched: int = 0

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)

    def __len__(self) -> int:
        return len(self.hits)


_Count = Annotated[int, msgspec.Meta(ge=0, lt=1 << 62)]


class Cursor(msgspec.Struct, frozen=True, array_like=True):
    """The start of a page: the number of hits before it, among those that existed at the first page."""

    upto: _Count
    offset: _Count


_DECODER = json_decoder(Cursor)


def encode_cursor(cursor: Cursor) -> str:
    """Return a cursor as text."""
    return msgspec.json.encode(cursor).hex()


def cursor_of(text: str | None) -> Cursor | None:
    """Return the cursor of a text; None for the first page."""
    if text is None:
        return None
    try:
        return _DECODER.decode(bytes.fromhex(text))
    except (ValueError, msgspec.MsgspecError) as error:
        raise InvalidInputError(f"invalid cursor {text!r}; pass the cursor of the previous page") from error
