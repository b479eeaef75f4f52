"""The search index: the words of blocks of entries, in PostgreSQL's full-text index, without extensions.

A block is a run of entries that were appended through one thread. The index only says which blocks may have matches; their
entries are compared as in every store (``search.matching``). So it needs no positions, and is smaller than the entries.

Searches bring it up to date: an append never waits for it. Each search indexes a limited number of entries, the threads
with the newest ones first, and reports how many are left. The last block of a thread is written again until it is full.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple
from uuid import UUID

from sessiontree.model.codec import decode_stored_payload
from sessiontree.search.matching import searchable
from sessiontree.search.words import compounds_of, tokens_of
from sessiontree.stores.postgres.steps import Row, Statement, Steps
from sessiontree.stores.rules.state import ERASED_BODY

__all__ = ["LONGEST_LEXEME", "Block", "Progressed", "blocks_of", "catch_up", "storable"]


_STEP_ENTRIES = 1_000
_STEP_THREADS = 1_000
_BLOCK_ENTRIES = 64
_BLOCK_BYTES = 64 << 10
# What is read and indexed at once; an event loop does nothing else in the time.
_BATCH_BLOCKS = 4
_BATCH_BYTES = 8 << 20
# A tsvector is limited to a megabyte. A block with more words has none: it is searched directly.
_MOST_WORD_BYTES = 500_000
_LEXEME_BYTES = 8
LONGEST_LEXEME = 500
# A commit may be late, for example if it waits for a standby: threads are checked again for that long.
_LONGEST_COMMIT_MINUTES = 60

_HORIZON = """
SELECT extract(epoch FROM now())::bigint / 60,
    coalesce((SELECT minute FROM sessiontree.horizon WHERE namespace = %(namespace)s), 0)"""
_MOVE_HORIZON = """
INSERT INTO sessiontree.horizon (namespace, minute) VALUES (%(namespace)s, %(minute)s)
ON CONFLICT (namespace) DO UPDATE SET minute = greatest(horizon.minute, excluded.minute)"""
_LAST_BLOCK = """(SELECT max(b.first_seq) - 1 FROM sessiontree.search_block b
    WHERE b.tree = {table}.tree AND b.owner = {table}.key AND b.namespace = {table}.namespace)"""
_IS_PENDING = "h.namespace = %(namespace)s AND h.seq > h.indexed_seq AND h.touched_minute >= %(since)s"
_PENDING = f"""
SELECT h.tree, h.key, coalesce({_LAST_BLOCK.format(table="h")}, h.key), h.seq FROM sessiontree.head h
WHERE {_IS_PENDING} ORDER BY h.touched_minute DESC LIMIT %(limit)s"""
_DELETED = f"""
SELECT d.tree, d.key, coalesce({_LAST_BLOCK.format(table="d")}, d.key),
    (SELECT max(e.seq) FROM sessiontree.entry e
        WHERE e.tree = d.tree AND e.owner = d.key AND e.namespace = d.namespace)
FROM sessiontree.deleted_thread d
WHERE d.namespace = %(namespace)s AND NOT d.is_indexed LIMIT %(limit)s"""
_STALE = """
SELECT b.tree, b.owner, b.first_seq, b.last_seq FROM sessiontree.search_block b
WHERE b.namespace = %(namespace)s AND b.is_stale LIMIT %(limit)s"""
_LEFT = f"""
SELECT (SELECT coalesce(sum(h.seq - h.indexed_seq), 0)::bigint FROM sessiontree.head h WHERE {_IS_PENDING})
    + (SELECT count(*) FROM sessiontree.deleted_thread d JOIN sessiontree.entry e ON e.tree = d.tree
        AND e.owner = d.key AND e.namespace = d.namespace WHERE d.namespace = %(namespace)s AND NOT d.is_indexed)"""
_SIZES = """
SELECT e.tree, e.owner, e.seq, octet_length(e.body)
FROM unnest(%(trees)s::uuid[], %(owners)s::bigint[], %(afters)s::bigint[], %(uptos)s::bigint[])
    AS x (tree, owner, after, upto)
JOIN sessiontree.entry e ON e.tree = x.tree AND e.owner = x.owner AND e.seq > x.after AND e.seq <= x.upto
    AND e.namespace = %(namespace)s
ORDER BY 1, 2, 3 LIMIT %(limit)s"""
_ENTRIES = """
SELECT e.tree, e.owner, e.seq, e.created_ns, e.body
FROM unnest(%(trees)s::uuid[], %(owners)s::bigint[], %(firsts)s::bigint[], %(lasts)s::bigint[])
    AS x (tree, owner, first, last)
JOIN sessiontree.entry e ON e.tree = x.tree AND e.owner = x.owner AND e.seq BETWEEN x.first AND x.last
    AND e.namespace = %(namespace)s"""
_PUT = """
SELECT sessiontree.put_search_block(x.tree, %(namespace)s, x.owner, x.first, x.last, x.entries, x.oldest, x.newest,
    x.roles, x.tools, x.models, x.files, x.words)
FROM unnest(%(trees)s::uuid[], %(owners)s::bigint[], %(firsts)s::bigint[], %(lasts)s::bigint[], %(entries)s::bigint[],
    %(oldest)s::bigint[], %(newest)s::bigint[], %(roles)s::text[], %(tools)s::text[], %(models)s::text[],
    %(files)s::text[], %(words)s::text[])
    AS x (tree, owner, first, last, entries, oldest, newest, roles, tools, models, files, words)"""
_COLUMNS = ("entries", "oldest", "newest", "roles", "tools", "models", "files", "words")
_MARK_INDEXED = """
UPDATE sessiontree.deleted_thread SET is_indexed = true
WHERE tree = %(tree)s AND key = %(owner)s AND namespace = %(namespace)s"""

_BEHIND_BLOCKS = """
SELECT 1 FROM sessiontree.entry e WHERE e.tree = %(tree)s AND e.owner = %(owner)s AND e.namespace = %(namespace)s
    AND e.seq > coalesce((SELECT max(b.last_seq) FROM sessiontree.search_block b WHERE b.tree = %(tree)s
        AND b.owner = %(owner)s AND b.namespace = %(namespace)s), 0) LIMIT 1"""


class Block(NamedTuple):
    """A run of entries of one thread: tree and key of the thread, and the numbers of the first and the last one."""

    tree: UUID
    owner: int
    first: int
    last: int


class _SizedBlock(NamedTuple):
    """A block to index, and how many bytes its entries have."""

    block: Block
    size: int


class _Unindexed(NamedTuple):
    """Entries to index: those of a thread after a number, up to another one."""

    tree: UUID
    owner: int
    after: int
    upto: int


class Progressed(NamedTuple):
    """How many entries were indexed, and how many are not indexed yet."""

    indexed: int
    left: int


def catch_up(namespace: str) -> Steps[Progressed]:
    """Index a limited number of the entries that were committed since the last search."""
    values = {"namespace": namespace, "limit": _STEP_THREADS}
    ((now, horizon),) = yield Statement(_HORIZON, values)
    values["since"] = horizon - _LONGEST_COMMIT_MINUTES
    pending = [_Unindexed(*row) for row in (yield Statement(_PENDING, values))]
    deleted = [_Unindexed(*row) for row in (yield Statement(_DELETED, values))]
    stale = yield Statement(_STALE, {"namespace": namespace, "limit": _STEP_ENTRIES // _BLOCK_ENTRIES})
    count = left = 0
    if pending or deleted or stale:
        sizes = yield from _sizes(namespace, [*_step(pending), *deleted])
        blocks = [*blocks_of(sizes), *(_SizedBlock(Block(*row), _BLOCK_BYTES) for row in stale)]
        yield from _index(namespace, sorted(blocks))
        for thread in deleted:
            yield from _mark_indexed(namespace, thread)
        count = len(sizes)
        ((left,),) = yield Statement(_LEFT, values)
    if now > horizon and not left:
        yield Statement(_MOVE_HORIZON, {"namespace": namespace, "minute": now})
    return Progressed(count, left)


def blocks_of(sizes: Iterable[Row]) -> Iterator[_SizedBlock]:
    """Cut entries, given as rows of tree, owner, number and size in order, into blocks."""
    tree: UUID | None = None
    owner = first = last = count = size = 0
    for next_tree, next_owner, seq, length in sizes:
        is_full = count == _BLOCK_ENTRIES or (count and size + length > _BLOCK_BYTES)
        if tree is not None and (is_full or (next_tree, next_owner) != (tree, owner)):
            yield _SizedBlock(Block(tree, owner, first, last), size)
            count = size = 0
        if not count:
            tree, owner, first = next_tree, next_owner, seq
        last, count, size = seq, count + 1, size + length
    if tree is not None:
        yield _SizedBlock(Block(tree, owner, first, last), size)


def storable(text: str) -> str:
    """Replace NUL, which PostgreSQL's text cannot contain, by a blank."""
    return text.replace("\0", " ")


def _step(unindexed: Iterable[_Unindexed]) -> Iterator[_Unindexed]:
    """The first of the entries to index, as many as one search indexes."""
    left = _STEP_ENTRIES
    for thread in unindexed:
        if left <= 0:
            return
        upto = min(thread.upto, thread.after + left)
        left -= upto - thread.after
        yield thread._replace(upto=upto)


def _sizes(namespace: str, step: Sequence[_Unindexed]) -> Steps[list[Row]]:
    """Tree, owner, number and size of entries to index, in this order."""
    if not step:
        return []
    trees, owners, afters, uptos = map(list, zip(*step, strict=True))
    values = {"trees": trees, "owners": owners, "afters": afters, "uptos": uptos}
    return (yield Statement(_SIZES, {**values, "namespace": namespace, "limit": 2 * _STEP_ENTRIES}))


def _index(namespace: str, blocks: Sequence[_SizedBlock]) -> Steps[None]:
    """Write blocks. They are in order, so that two searches lock trees in the same order."""
    for batch in _batches(blocks):
        rows = yield Statement(_ENTRIES, {**_columns_of(batch), "namespace": namespace})
        entries: dict[tuple[UUID, int], list[Row]] = {}
        for row in sorted(rows, key=lambda row: row[2]):
            entries.setdefault((row[0], row[1]), []).append(row)
        columns: dict[str, list[Any]] = {name: [] for name in _COLUMNS}
        for block in batch:
            own = [row for row in entries.get(block[:2], ()) if block.first <= row[2] <= block.last]
            for name, value in zip(_COLUMNS, _content_of(own), strict=True):
                columns[name].append(value)
        yield Statement(_PUT, {**_columns_of(batch), **columns, "namespace": namespace})


def _batches(blocks: Iterable[_SizedBlock]) -> Iterator[list[Block]]:
    """Blocks that are read together."""
    batch: list[Block] = []
    total = 0
    for block, size in blocks:
        if batch and (len(batch) == _BATCH_BLOCKS or total + size > _BATCH_BYTES):
            yield batch
            batch, total = [], 0
        batch.append(block)
        total += size
    if batch:
        yield batch


def _columns_of(blocks: Sequence[Block]) -> dict[str, list[Any]]:
    trees, owners, firsts, lasts = map(list, zip(*blocks, strict=True))
    return {"trees": trees, "owners": owners, "firsts": firsts, "lasts": lasts}


def _content_of(rows: Sequence[Row]) -> tuple[int | str | None, ...]:
    """What is stored of a block: the values of ``_COLUMNS``."""
    words: dict[str, None] = {}
    roles: dict[str, None] = {}
    tools: dict[str, None] = {}
    models: dict[str, None] = {}
    files: dict[str, None] = {}
    kept = [row for row in rows if row[4] != ERASED_BODY]
    for row in kept:
        content = searchable(decode_stored_payload(row[4]))
        if content is None:
            continue
        words |= dict.fromkeys(tokens_of(content.text)) | dict.fromkeys(compounds_of(content.text).split())
        roles[content.role] = None
        tools |= dict.fromkeys(content.tools.split("\n"))
        models[content.model] = None
        files |= dict.fromkeys(content.files.split("\n"))
    times = [row[3] for row in rows] or [0]
    facts = [storable("\n".join(filter(None, lines))) for lines in (tools, models, files)]
    size = sum(len(word[:LONGEST_LEXEME].encode()) + _LEXEME_BYTES for word in words)
    text = " ".join(sorted(word[:LONGEST_LEXEME] for word in words)) if size <= _MOST_WORD_BYTES else None
    return len(kept), min(times), max(times), "\n".join(roles), *facts, text


def _mark_indexed(namespace: str, thread: _Unindexed) -> Steps[None]:
    """Mark a deleted thread if all its entries are in blocks."""
    values = {"tree": thread.tree, "owner": thread.owner, "namespace": namespace}
    if not (yield Statement(_BEHIND_BLOCKS, values)):
        yield Statement(_MARK_INDEXED, values)
