"""The query language: words, "phrases", prefix*, -without, and filters.

>>> query = parse_query('disk "out of space" role:tool retr*', now=datetime(2026, 1, 31, tzinfo=UTC))
>>> [term.alternatives for term in query.terms]
[(('disk',),), (('out', 'of', 'space'),), (('retr',),)]
>>> query.roles
('tool',)
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from sessiontree.errors import InvalidInputError
from sessiontree.search.query import SearchQuery, Term
from sessiontree.search.words import compounds_of, tokens_of

__all__ = ["FILTERS", "moment_of", "nanoseconds_of", "parse_query"]

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
