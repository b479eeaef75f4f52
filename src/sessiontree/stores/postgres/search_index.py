"""The search index: PostgreSQL's full-text search, without extensions.

Text is split into words here, so that every store finds the same; the server stores them as lexemes with positions and
ranks. The index is brought up to date by searches: an append never waits for it, and a search finds everything that was
committed before it began.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple
from uuid import UUID

from sessiontree.model import Payload
from sessiontree.model._base import Record
from sessiontree.model.codec import decode_stored_payload
from sessiontree.search import Term
from sessiontree.stores.postgres.steps import BEGIN, COMMIT, Row, Statement, Steps

__all__ = ["FoundRow", "IndexedText", "catch_up", "find", "tsquery_of", "tsvectors_of"]


_BATCH = 500
_BATCH_BYTES = 8 << 20
# A tsvector is limited to positions up to 16,383 and to a megabyte; longer texts are cut into overlapping pieces. Each
# piece also has the words of the whole text, without positions, as far as they fit, so that words far apart are found
# together. A lexeme takes up to 8 bytes besides its text.
_PIECE = 8_000
_PIECE_BYTES = 500_000
_OVERLAP = 64
_VOCABULARY_BYTES = 60_000
_COMPOUND_BYTES = 200_000
_LEXEME_BYTES = 8
_LONGEST_LEXEME = 500
_GAP = 1_000
# A commit may be late, for example if it waits for a standby: threads are checked again for that long.
_LONGEST_COMMIT_MINUTES = 60
RANKED = 2_000
"""How many matches are ranked; the newest are."""

_PENDING = """
SELECT h.tree, h.id, h.key, h.indexed_seq, h.seq FROM sessiontree.head h
WHERE h.namespace = %(namespace)s AND h.seq > h.indexed_seq
    AND h.touched_minute >= %(since)s LIMIT 100"""
_HORIZON = """
SELECT extract(epoch FROM now())::bigint / 60,
    coalesce((SELECT minute FROM sessiontree.horizon WHERE namespace = %(namespace)s), 0)"""
_MOVE_HORIZON = """
INSERT INTO sessiontree.horizon (namespace, minute) VALUES (%(namespace)s, %(minute)s)
ON CONFLICT (namespace) DO UPDATE SET minute = greatest(horizon.minute, excluded.minute)"""
_UNREAD = """
SELECT seq, created_ns, body FROM (
    SELECT e.seq, e.created_ns, e.body,
        sum(octet_length(e.body)) OVER (ORDER BY e.seq) - octet_length(e.body) AS bytes_before
    FROM sessiontree.entry e
    WHERE e.tree = %(tree)s AND e.owner = %(owner)s AND e.seq > %(after)s ORDER BY e.seq LIMIT %(limit)s
) unread WHERE bytes_before < %(bytes)s ORDER BY seq"""
_PUT = """
INSERT INTO sessiontree.document (tree, owner, seq, piece, namespace, created_ns, role, tools, model, files, lexemes)
SELECT %(tree)s, %(owner)s, d.seq, d.piece, %(namespace)s, d.created_ns, d.role, d.tools, d.model, d.files,
    d.lexemes::tsvector
FROM unnest(%(seqs)s::bigint[], %(pieces)s::integer[], %(created)s::bigint[], %(roles)s::text[], %(tools)s::text[],
    %(models)s::text[], %(files)s::text[], %(lexemes)s::text[])
    AS d (seq, piece, created_ns, role, tools, model, files, lexemes)
JOIN sessiontree.entry e ON e.tree = %(tree)s AND e.owner = %(owner)s AND e.seq = d.seq
ON CONFLICT DO NOTHING"""
# A delete locks all heads of its tree: so no entry is deleted between the time it is read and the commit of
# its document.
_AGAINST_DELETE = "SELECT 1 FROM sessiontree.head WHERE tree = %(tree)s ORDER BY id FOR KEY SHARE"
_UNINDEXED_DELETED = """
SELECT tree, key FROM sessiontree.deleted_thread WHERE namespace = %(namespace)s AND NOT is_indexed LIMIT 100"""
_DELETED_THREAD_INDEXED = (
    "UPDATE sessiontree.deleted_thread SET is_indexed = true WHERE tree = %(tree)s AND key = %(owner)s"
)
_AT_ONCE = {"limit": _BATCH, "bytes": _BATCH_BYTES}
_DONE = """
UPDATE sessiontree.head SET indexed_seq = greatest(indexed_seq, %(seq)s) WHERE tree = %(tree)s AND id = %(thread)s"""
_FIND = """
SELECT tree, owner, seq, max(score)::float8, max(created_ns), max(max(created_ns)) OVER () FROM (
    SELECT d.tree, d.owner, d.seq, d.created_ns, {score} AS score FROM sessiontree.document d
    WHERE d.namespace = %(namespace)s AND {conditions}
    ORDER BY d.created_ns DESC, d.seq DESC LIMIT %(ranked)s
) found GROUP BY tree, owner, seq ORDER BY {order}, max(created_ns) DESC, seq DESC LIMIT %(limit)s OFFSET %(offset)s"""


# A long text is cut into pieces: an excluded word must not be in any of them.
_IN_NO_PIECE = """NOT EXISTS (SELECT 1 FROM sessiontree.document o
    WHERE o.tree = d.tree AND o.owner = d.owner AND o.seq = d.seq AND NOT o.lexemes @@ %(unwanted)s::tsquery)"""


class IndexedText(Record, frozen=True, kw_only=True):
    """The searchable content of an entry: its tokens in order, identifiers as one word, and values for filters."""

    tokens: Sequence[str]
    compounds: Sequence[str] = ()
    role: str = ""
    tools: str = ""
    model: str = ""
    files: str = ""


class FoundRow(NamedTuple):
    """A match: tree, thread key and number of the entry. A higher score is a better match.

    ``newest_ns`` is the time of the newest of all matches, on this page or not.
    """

    tree: UUID
    owner: int
    seq: int
    score: float
    created_ns: int
    newest_ns: int


def catch_up(namespace: str, document_of: Callable[[Payload], IndexedText | None]) -> Steps[int]:
    """Index what was committed since the last search and return the number of entries."""
    ((now, horizon),) = yield Statement(_HORIZON, {"namespace": namespace})
    since = horizon - _LONGEST_COMMIT_MINUTES
    count = 0
    while pending := (yield Statement(_PENDING, {"namespace": namespace, "since": since})):
        for row in pending:
            count += yield from _index_thread(namespace, document_of, _UnindexedThread(*row))
    while left := (yield Statement(_UNINDEXED_DELETED, {"namespace": namespace})):
        for tree, owner in left:
            added, _ = yield from _index_entries(namespace, document_of, _Own(tree, owner, 0))
            count += added
            yield Statement(_DELETED_THREAD_INDEXED, {"tree": tree, "owner": owner})
    if now > horizon:
        yield Statement(_MOVE_HORIZON, {"namespace": namespace, "minute": now})
    return count


def find(
    namespace: str,
    terms: Sequence[Term],
    *,
    conditions: Sequence[str] = (),
    values: dict[str, Any] | None = None,
    order: str = "best",
    limit: int = 20,
    offset: int = 0,
) -> Steps[list[FoundRow]]:
    """Entries with every wanted term and no excluded one; ``conditions`` are on ``document d``."""
    query = tsquery_of(terms)
    unwanted = tsquery_of([term for term in terms if term.is_excluded])
    words = ["d.lexemes @@ %(query)s::tsquery"] if query else []
    words += [_IN_NO_PIECE] if unwanted else []
    rows = yield Statement(
        _FIND.format(
            score="ts_rank_cd(d.lexemes, %(query)s::tsquery, 1)" if query else "0.0",
            conditions=" AND ".join([*words, *conditions]) or "true",
            order="max(score) DESC" if order == "best" else "max(created_ns) DESC",
        ),
        {
            "namespace": namespace,
            "query": query,
            "unwanted": unwanted,
            "ranked": RANKED if order == "best" else None,
            "limit": limit,
            "offset": offset,
            **(values or {}),
        },
    )
    return [FoundRow(*row) for row in rows]


def tsquery_of(terms: Sequence[Term]) -> str:
    """The terms as a tsquery; every word is quoted, so none is taken for an operator."""
    return " & ".join(f"!({_term(term)})" if term.is_excluded else f"({_term(term)})" for term in terms)


def tsvectors_of(document: IndexedText) -> Iterator[str]:
    """The lexemes of a document with their positions, in pieces that fit into a tsvector."""
    tokens = document.tokens
    bounds = list(_bounds(tokens))
    vocabulary = [] if len(bounds) == 1 else _within(_VOCABULARY_BYTES, tokens)
    for number, (start, end) in enumerate(bounds):
        piece = tokens[start : end + _OVERLAP]
        words = [f"{_quoted(token)}:{at}" for at, token in enumerate(piece, start=1)]
        if number == 0:
            compounds = _within(_COMPOUND_BYTES, document.compounds)[:_GAP]
            words += [f"{_quoted(word)}:{len(piece) + _GAP * at}" for at, word in enumerate(compounds, start=1)]
        yield " ".join([*words, *map(_quoted, vocabulary)])


def _bounds(tokens: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Start and end of each piece, so that none has too many words or bytes; without tokens there is one piece."""
    start = size = 0
    for at, token in enumerate(tokens):
        if at - start == _PIECE or size > _PIECE_BYTES:
            yield start, at
            start, size = at, 0
        size += _size(token)
    yield start, len(tokens)


def _within(most: int, words: Iterable[str]) -> list[str]:
    """Distinct words, in order, that take at most ``most`` bytes."""
    found: dict[str, None] = {}
    for word in words:
        if word not in found:
            most -= _size(word)
            if most < 0:
                break
            found[word] = None
    return list(found)


def _size(word: str) -> int:
    return len(word[:_LONGEST_LEXEME].encode()) + _LEXEME_BYTES


class _UnindexedThread(NamedTuple):
    """A thread with unindexed entries: those after the number ``after``, at least up to ``upto``."""

    tree: UUID
    thread: bytes
    owner: int
    after: int
    upto: int


class _Own(NamedTuple):
    """The entries appended through one thread, after a number."""

    tree: UUID
    owner: int
    after: int


def _index_thread(
    namespace: str, document_of: Callable[[Payload], IndexedText | None], pending: _UnindexedThread
) -> Steps[int]:
    tree, thread, owner, after, upto = pending
    count, last = yield from _index_entries(namespace, document_of, _Own(tree, owner, after))
    yield Statement(_DONE, {"tree": tree, "thread": thread, "seq": max(last, upto)})
    return count


def _index_entries(
    namespace: str, document_of: Callable[[Payload], IndexedText | None], own: _Own
) -> Steps[tuple[int, int]]:
    """Index entries and return their count and the number of the last one."""
    tree, owner, after = own
    count = 0
    while rows := (yield Statement(_UNREAD, {"tree": tree, "owner": owner, "after": after, **_AT_ONCE})):
        after = rows[-1][0]
        values = _columns(rows, document_of)
        if values["seqs"]:
            yield BEGIN
            yield Statement(_AGAINST_DELETE, {"tree": tree})
            yield Statement(_PUT, {"tree": tree, "owner": owner, "namespace": namespace, **values})
            yield COMMIT
        count += len(rows)
    return count, after


def _columns(rows: Sequence[Row], document_of: Callable[[Payload], IndexedText | None]) -> dict[str, list[Any]]:
    names = ("seqs", "pieces", "created", "roles", "tools", "models", "files", "lexemes")
    columns: dict[str, list[Any]] = {name: [] for name in names}
    for seq, created_ns, body in rows:
        document = document_of(decode_stored_payload(body))
        if document is None:
            continue
        facts = (document.role, document.tools, document.model, document.files)
        for piece, lexemes in enumerate(tsvectors_of(document)):
            row = (seq, piece, created_ns, *(fact.replace("\0", " ") for fact in facts), lexemes)
            for name, value in zip(names, row, strict=True):
                columns[name].append(value)
    return columns


def _term(term: Term) -> str:
    star = ":*" if term.is_prefix else ""
    phrases = []
    for tokens in term.alternatives:
        *body, last = (_quoted(token) for token in tokens)
        phrases.append("(" + " <-> ".join([*body, last + star]) + ")")
    return " | ".join(phrases)


def _quoted(token: str) -> str:
    plain = token[:_LONGEST_LEXEME].replace("\0", " ").replace("\\", "\\\\").replace("'", "''")
    return f"'{plain}'"
