"""Matches of a query: blocks that may have some, from the index, and their entries, compared one by one.

Blocks are read from the newest to the oldest, until there are enough matches.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import attrgetter
from typing import Any, NamedTuple
from uuid import UUID

from sessiontree.model.codec import decode_stored_payload
from sessiontree.search import SearchOrder, SearchQuery, Term
from sessiontree.search.matching import document_of, occurrences_of, satisfies, score_of, searchable
from sessiontree.stores.postgres.rows import ENTRY_COLUMNS
from sessiontree.stores.postgres.search_index import LONGEST_LEXEME, Block, storable
from sessiontree.stores.postgres.search_schema import LEXEMES
from sessiontree.stores.postgres.steps import Row, Statement, Steps

__all__ = ["Match", "Scope", "find_matches", "may_match", "tsquery_of"]


# The newest matches are ranked: about this many, and of not more blocks than that.
_RANKED = 500
_RANKED_BLOCKS = 64
_CANDIDATES_AT_ONCE = 2_000
_FIRST_BATCH = 8
_LARGEST_BATCH = 32
_WILDCARD = re.compile(r"\*|\?|\[!?(?P<set>\]?[^\]]*)\]|[^\w*?]|_")

_CANDIDATES = """
SELECT b.tree, b.owner, b.first_seq, b.last_seq, b.newest_ns FROM sessiontree.search_block b
WHERE {conditions} ORDER BY b.newest_ns DESC, b.tree, b.owner, b.first_seq LIMIT %(candidates)s OFFSET %(skipped)s"""
_ENTRIES = f"""
SELECT e.tree, {ENTRY_COLUMNS}
FROM unnest(%(trees)s::uuid[], %(owners)s::bigint[], %(firsts)s::bigint[], %(lasts)s::bigint[])
    AS x (tree, owner, first, last)
JOIN sessiontree.entry e ON e.tree = x.tree AND e.owner = x.owner AND e.seq BETWEEN x.first AND x.last
    AND e.namespace = %(namespace)s"""
_WITHIN = """EXISTS (SELECT 1 FROM sessiontree.entry e WHERE e.tree = b.tree AND e.owner = b.owner
    AND e.namespace = b.namespace AND e.seq BETWEEN b.first_seq AND b.last_seq AND e.id = ANY(%({name})s))"""


class Match(NamedTuple):
    """An entry that matches: its tree, and the other columns of ``ENTRY_COLUMNS``. A higher score is better."""

    tree: UUID
    row: Row
    score: float

    @property
    def created_ns(self) -> int:
        """The time of the entry."""
        return int(self.row[3])


class Scope(NamedTuple):
    """Limits that are not in the query itself: lists of ids one of which an entry must have, a time, and types."""

    ids: tuple[frozenset[bytes], ...] = ()
    upto_ns: int | None = None
    has_type: Callable[[bytes], bool] = lambda _: True


def find_matches(
    namespace: str, query: SearchQuery, scope: Scope, *, order: SearchOrder, enough: int
) -> Steps[list[Match]]:
    """At least ``enough`` matches if there are so many: the newest ones, in order or first the best of them."""
    found: list[_Counted] = []
    ranked: int | None = None
    conditions, values = _conditions(namespace, query, scope)
    skipped = blocks = 0
    size = _FIRST_BATCH
    while True:
        rows = yield Statement(
            _CANDIDATES.format(conditions=" AND ".join(conditions)),
            {**values, "candidates": _CANDIDATES_AT_ONCE, "skipped": skipped},
            is_planned_each_time=True,
        )
        skipped += len(rows)
        is_last = len(rows) < _CANDIDATES_AT_ONCE
        while rows:
            if ranked is None and (len(found) >= _RANKED or blocks >= _RANKED_BLOCKS):
                ranked = len(found)
            if (
                _is_enough(found, enough, rows[0][4])
                if order == "newest"
                else ranked is not None and len(found) >= enough
            ):
                break
            found += yield from _matches_in(namespace, [Block(*row[:4]) for row in rows[:size]], query, scope)
            rows, blocks, size = rows[size:], blocks + size, min(2 * size, _LARGEST_BATCH)
        if rows or is_last:
            return _sorted(found, 0 if order == "newest" else ranked)


class _Counted(NamedTuple):
    """An entry that matches, how often each term occurs in it, and how many words it has."""

    tree: UUID
    row: Row
    created_ns: int
    counts: list[int]
    length: int


def _is_enough(found: Sequence[_Counted], enough: int, next_ns: int) -> bool:
    """Whether no entry of the next block is one of the newest."""
    if len(found) < enough:
        return False
    return sorted((match.created_ns for match in found), reverse=True)[enough - 1] > next_ns


def _matches_in(namespace: str, blocks: Sequence[Block], query: SearchQuery, scope: Scope) -> Steps[list[_Counted]]:
    trees, owners, firsts, lasts = map(list, zip(*blocks, strict=True))
    values = {"trees": trees, "owners": owners, "firsts": firsts, "lasts": lasts, "namespace": namespace}
    rows = yield Statement(_ENTRIES, values)
    return [match for tree, *row in rows if (match := _match(tree, tuple(row), query, scope)) is not None]


def _match(tree: UUID, row: Row, query: SearchQuery, scope: Scope) -> _Counted | None:
    entry_id, _, _, created_ns, _, body, _ = row
    if not (scope.has_type(body) and all(entry_id in ids for ids in scope.ids) and may_match(body, query.wanted)):
        return None
    if scope.upto_ns is not None and created_ns > scope.upto_ns:
        return None
    content = searchable(decode_stored_payload(body))
    if content is None or not satisfies(content, created_ns, query):
        return None
    document = document_of(content)
    counts = occurrences_of(document, query)
    return None if counts is None else _Counted(tree, row, created_ns, counts, document.length)


def may_match(body: bytes, terms: Iterable[Term]) -> bool:
    r"""Whether the body of an entry can have every term: a quick look that spares most others the decoding.

    >>> disk = Term(alternatives=(("disk",),))
    >>> may_match(b'{"text": "the Disk"}', [disk]), may_match(b'{"text": "the floppy"}', [disk])
    (True, False)

    Words with other letters, escaped ones and numbers can be written in several ways.

    >>> may_match('{"text": "d\u00edsk"}'.encode(), [disk]), may_match(rb'{"text": "\u0064isk"}', [disk])
    (True, True)
    """
    if not body.isascii() or b"\\u" in body:
        return True
    text = body.lower().replace(b"_", b"")
    return all(any(all(map(text.__contains__, _letters(words))) for words in term.alternatives) for term in terms)


def _letters(words: Iterable[str]) -> Iterator[bytes]:
    return (word.encode() for word in words if word.isalpha())


def _sorted(found: Sequence[_Counted], ranked: int | None) -> list[Match]:
    """The best of the first ``ranked`` matches, or of all of them, then the others, the newest first."""
    average = sum(match.length for match in found[:ranked]) / max(1, len(found[:ranked]))
    matches = [
        Match(tree, row, score_of(counts, [1.0] * len(counts), length / (average or 1.0)))
        for tree, row, _, counts, length in found
    ]
    best, rest = (matches, []) if ranked is None else (matches[:ranked], matches[ranked:])
    for part in (best, rest):
        part.sort(key=lambda match: (match.created_ns, match.row[6]), reverse=True)
    best.sort(key=attrgetter("score"), reverse=True)
    return best + rest


def _conditions(namespace: str, query: SearchQuery, scope: Scope) -> tuple[list[str], dict[str, Any]]:
    """Conditions that a block must meet to have matches, and their values."""
    words = tsquery_of(query.wanted)
    limits = {f"ids{number}": list(ids) for number, ids in enumerate(scope.ids)}
    values = {
        "namespace": namespace,
        "words": words,
        "roles": list(query.roles),
        "tools": [_line_pattern(storable(tool)) for tool in query.tools],
        "models": [storable(model) for model in query.models],
        "files": [storable(file) for file in query.files],
        "before": query.before_ns,
        "after": query.after_ns,
        "upto": scope.upto_ns,
        **limits,
    }
    terms: tuple[tuple[str, object], ...] = (
        ("b.namespace = %(namespace)s", True),
        (f"({LEXEMES} @@ %(words)s::tsquery OR b.words IS NULL)", words),
        ("(string_to_array(b.roles, E'\\n') && %(roles)s::text[] OR b.is_stale)", query.roles),
        ("(EXISTS (SELECT 1 FROM unnest(%(tools)s::text[]) p WHERE b.tools ~ p) OR b.is_stale)", query.tools),
        (
            "(EXISTS (SELECT 1 FROM unnest(%(models)s::text[]) p WHERE strpos(b.models, p) > 0) OR b.is_stale)",
            query.models,
        ),
        (
            "(EXISTS (SELECT 1 FROM unnest(%(files)s::text[]) p WHERE strpos(b.files, p) > 0) OR b.is_stale)",
            query.files,
        ),
        ("b.oldest_ns < %(before)s", query.before_ns is not None),
        ("b.newest_ns >= %(after)s", query.after_ns is not None),
        ("b.oldest_ns <= %(upto)s", scope.upto_ns is not None),
    )
    return [*(term for term, is_asked in terms if is_asked), *(_WITHIN.format(name=name) for name in limits)], values


def tsquery_of(terms: Iterable[Term]) -> str:
    """The words that a block must have; every word is quoted, so none is taken for an operator."""
    return " & ".join(f"({_term(term)})" for term in terms)


def _term(term: Term) -> str:
    star = ":*" if term.is_prefix else ""
    phrases = []
    for tokens in term.alternatives:
        *body, last = (_quoted(token) for token in tokens)
        phrases.append("(" + " & ".join([*body, last + star]) + ")")
    return " | ".join(phrases)


def _quoted(token: str) -> str:
    """A lexeme as it is written in a tsquery; longer ones are cut to where the index cuts them."""
    plain = storable(token[:LONGEST_LEXEME]).replace("\\", "\\\\").replace("'", "''")
    return f"'{plain}'"


def _line_pattern(glob: str) -> str:
    """A shell pattern for one of several lines as a regular expression of PostgreSQL.

    >>> _line_pattern("read_*[!0-9]")
    '(?n)^read\\\\_[^\\\\n]*[^0-9]$'
    """
    return "(?n)^" + _WILDCARD.sub(_translated, glob) + "$"


def _translated(found: re.Match[str]) -> str:
    match found[0]:
        case "*":
            return r"[^\n]*"
        case "?":
            return r"[^\n]"
        case chosen if found["set"]:
            negation = "^" if chosen[1] == "!" else ""
            return "[" + negation + re.sub(r"[\\\[\]^]", r"\\\g<0>", found["set"]) + "]"
        case other:
            return "\\" + other
