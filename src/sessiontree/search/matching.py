"""Whether an entry is found, and how well: the plain reading of a query, without an index."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

from sessiontree.model.record import Record
from sessiontree.search.content import Searchable
from sessiontree.search.query import SearchQuery, Term
from sessiontree.search.words import compounds_of, tokens_of

__all__ = ["Document", "document_of", "ranked", "satisfies"]

# The usual constants of BM25, which SQLite's FTS5 uses too.
_SATURATION = 1.2
_LENGTH_WEIGHT = 0.75
_RARE = 1e-6


class Document(Record, frozen=True, kw_only=True):
    """A text as its tokens: those in order, and identifiers written as one word."""

    tokens: tuple[str, ...]
    compounds: tuple[str, ...]


def document_of(content: Searchable) -> Document:
    return Document(
        tokens=tuple(tokens_of(content.text)),
        compounds=tuple(compounds_of(content.text).split()),
    )


def satisfies(content: Searchable, created_ns: int, query: SearchQuery) -> bool:
    """Whether the filters hold that an entry can answer by itself."""
    return (
        (not query.roles or content.role in query.roles)
        and (not query.tools or _any_matches(content.tools, query.tools))
        and (not query.models or any(model in content.model for model in query.models))
        and (not query.files or any(file in content.files for file in query.files))
        and (query.before_ns is None or created_ns < query.before_ns)
        and (query.after_ns is None or created_ns >= query.after_ns)
    )


def ranked(documents: Sequence[Document], query: SearchQuery) -> list[tuple[int, float]]:
    """Numbers and scores of the documents in which every term is found and no excluded one, in the given order."""
    found: list[tuple[int, list[int]]] = []
    for number, document in enumerate(documents):
        counts = [_count(term, document) for term in query.wanted]
        if all(counts) and not any(_count(term, document) for term in query.excluded):
            found.append((number, counts))
    lengths = [len(document.tokens) + len(document.compounds) for document in documents]
    average = sum(lengths) / len(lengths) if lengths else 1.0
    weights = [_weight(documents, term) for term in query.wanted]
    return [(number, _score(counts, weights, lengths[number] / (average or 1.0))) for number, counts in found]


def _score(counts: Iterable[int], weights: Iterable[float], relative_length: float) -> float:
    drag = _SATURATION * (1 - _LENGTH_WEIGHT + _LENGTH_WEIGHT * relative_length)
    return sum(
        weight * count * (_SATURATION + 1) / (count + drag) for count, weight in zip(counts, weights, strict=True)
    )


def _weight(documents: Sequence[Document], term: Term) -> float:
    hits = sum(1 for document in documents if _count(term, document))
    return max(_RARE, math.log((len(documents) - hits + 0.5) / (hits + 0.5)))


def _count(term: Term, document: Document) -> int:
    streams = (document.tokens, document.compounds)
    return sum(_occurrences(phrase, stream, term) for phrase in term.alternatives for stream in streams)


def _occurrences(phrase: tuple[str, ...], stream: tuple[str, ...], term: Term) -> int:
    width = len(phrase)
    if not term.is_prefix and phrase[0] not in stream:
        return 0
    starts = range(len(stream) - width + 1)
    if not term.is_prefix:
        return sum(stream[start : start + width] == phrase for start in starts)
    body, last = phrase[:-1], phrase[-1]
    return sum(
        stream[start : start + width - 1] == body and stream[start + width - 1].startswith(last) for start in starts
    )


def _any_matches(lines: str, patterns: Iterable[str]) -> bool:
    values = lines.split("\n")
    return any(fnmatchcase(value, pattern) for pattern in patterns for value in values if value)
