"""What can be found of an entry, and matching and ranking without an index."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from typing import Any

from sessiontree.model import (
    BranchSummary,
    Compaction,
    Custom,
    FilePart,
    Label,
    Memory,
    Message,
    OpaquePart,
    Payload,
    ReasoningPart,
    RunFailure,
    TextPart,
    ThreadInfo,
    ToolCallPart,
    ToolResultPart,
)
from sessiontree.model._base import Record
from sessiontree.model.entry import AssistantMessage, ToolCallMessage
from sessiontree.model.tool_arguments import decode_arguments, paths_in
from sessiontree.search.query import SearchQuery, Term
from sessiontree.search.words import compounds_of, tokens_of

__all__ = [
    "Document",
    "Searchable",
    "document_of",
    "occurrences_of",
    "ranked",
    "satisfies",
    "score_of",
    "searchable",
]


class Searchable(Record, frozen=True, kw_only=True):
    """The text of an entry and what filters compare. ``tools``, ``model`` and ``files`` are case-folded, one a line."""

    text: str
    role: str = ""
    tools: str = ""
    model: str = ""
    files: str = ""


def searchable(payload: Payload) -> Searchable | None:
    """Return what can be found of a payload; None if it has no text, as turn markers, usage, events and unknown types."""
    match payload:
        case Custom(name=name, message=None, data=data):
            return Searchable(text="\n".join([name, *_strings(data)]))
        case Custom(message=message) if message is not None:
            return _of_message(message, "")
        case Compaction(summary=summary, files_read=read, files_modified=modified):
            return Searchable(text=summary, files=_lines((*read, *modified))) if summary else None
        case BranchSummary(summary=text) | ThreadInfo(text=text) | Memory(text=text) | RunFailure(error=text):
            return Searchable(text=text)
        case Label(label=text):
            return Searchable(text=text) if text else None
        case AssistantMessage(message=message, model=model) | ToolCallMessage(message=message, model=model):
            return _of_message(message, model)
        case _:
            message = getattr(payload, "message", None)
            return _of_message(message, "") if isinstance(message, Message) else None


def _of_message(message: Message, model: str) -> Searchable:
    texts: list[str] = []
    tools: list[str] = []
    files: list[str] = []
    for part in message.parts:
        match part:
            case TextPart(text=text) | ReasoningPart(text=text):
                texts.append(text)
            case ToolCallPart(name=name, arguments=arguments):
                values = decode_arguments(arguments)
                tools.append(name)
                texts += [name, *(_strings(values) if values is not None else [arguments])]
                files += paths_in(values)
            case ToolResultPart(name=name, parts=parts):
                tools.append(name)
                texts += [inner.text for inner in parts if isinstance(inner, TextPart)]
                texts += [words for inner in parts if isinstance(inner, OpaquePart) for words in inner.words]
                files += [inner.name for inner in parts if isinstance(inner, FilePart)]
            case OpaquePart():
                texts += part.words
            case FilePart(name=name):
                texts.append(name)
                files.append(name)
    return Searchable(
        text="\n".join(filter(None, texts)),
        role=message.role,
        tools=_lines(tools),
        model=model.casefold(),
        files=_lines(files),
    )


def _strings(value: Any, key: str = "") -> Iterator[str]:
    """Yield every key, text and number inside a JSON value, in order."""
    match value:
        case str():
            yield value
        case dict():
            for name, item in value.items():
                yield str(name)
                yield from _strings(item, str(name))
        case list():
            for item in value:
                yield from _strings(item, key)
        case bool() | None:
            return
        case int() | float():
            yield str(value)


def _lines(values: Iterable[str]) -> str:
    return "\n".join(dict.fromkeys(value.casefold() for value in values if value))


# The usual constants of BM25, which SQLite's FTS5 uses too.
_SATURATION = 1.2
_LENGTH_WEIGHT = 0.75
_RARE = 1e-6


class Document(Record, frozen=True, kw_only=True):
    """A text as tokens in order, and its identifiers written as one word."""

    tokens: tuple[str, ...]
    compounds: tuple[str, ...]

    @property
    def length(self) -> int:
        """How many words there are."""
        return len(self.tokens) + len(self.compounds)


def document_of(content: Searchable) -> Document:
    """Return the tokens of a text."""
    return Document(
        tokens=tuple(tokens_of(content.text)),
        compounds=tuple(compounds_of(content.text).split()),
    )


def satisfies(content: Searchable, created_ns: int, query: SearchQuery) -> bool:
    """Return whether an entry passes the filters that concern the entry alone."""
    return (
        (not query.roles or content.role in query.roles)
        and (not query.tools or _any_matches(content.tools, query.tools))
        and (not query.models or any(model in content.model for model in query.models))
        and (not query.files or any(file in content.files for file in query.files))
        and (query.before_ns is None or created_ns < query.before_ns)
        and (query.after_ns is None or created_ns >= query.after_ns)
    )


def ranked(documents: Sequence[Document], query: SearchQuery) -> list[tuple[int, float]]:
    """Return the indexes and scores of the documents with every term and no excluded one, in the given order."""
    found: list[tuple[int, list[int]]] = []
    for number, document in enumerate(documents):
        counts = occurrences_of(document, query)
        if counts is not None:
            found.append((number, counts))
    lengths = [document.length for document in documents]
    average = sum(lengths) / len(lengths) if lengths else 1.0
    weights = [_weight(documents, term) for term in query.wanted]
    return [(number, score_of(counts, weights, lengths[number] / (average or 1.0))) for number, counts in found]


def occurrences_of(document: Document, query: SearchQuery) -> list[int] | None:
    """Return how often each wanted term occurs; None if one does not, or if an excluded one does."""
    counts = [_count(term, document) for term in query.wanted]
    is_match = all(counts) and not any(_count(term, document) for term in query.excluded)
    return counts if is_match else None


def score_of(counts: Iterable[int], weights: Iterable[float], relative_length: float) -> float:
    """Return the score of a match: of the terms' counts and weights, and of its length relative to the average."""
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
