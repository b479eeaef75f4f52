"""What the generators of this store yield (``Statement``, ``Wait``), and which tree a thread is in (``TreeLookup``).

Every read and write is a generator of ``Steps``, written once; a blocking and an async driver run it on a connection.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar
from uuid import UUID

from sessiontree.errors import ThreadNotFoundError

__all__ = [
    "BEGIN",
    "COMMIT",
    "ROLLBACK",
    "Request",
    "Row",
    "Statement",
    "Steps",
    "TreeLookup",
    "Wait",
    "insert_rows",
    "numbered",
    "to_bytes",
    "to_text",
]


T = TypeVar("T")

_NAME = re.compile(r"%\((\w+)\)s")

Row = tuple[Any, ...]


class Statement(NamedTuple):
    """One round trip; the answer is its rows.

    ``is_planned_each_time`` is for statements whose best plan depends on their values: they are not prepared.
    """

    sql: str
    values: Mapping[str, Any] = {}
    is_planned_each_time: bool = False


class Wait(NamedTuple):
    """Return the connection to the pool, drop broken ones, and wait."""

    seconds: float


Request = Statement | Wait
Steps = Generator[Request, list[Row], T]

_ROWS_AT_ONCE = 50


def insert_rows(table: str, columns: Sequence[str], rows: Sequence[Row], otherwise: str = "") -> Iterator[Statement]:
    """Statements that insert rows, some at once.

    A distributed server sends rows that are written out to their nodes; rows of a query it copies, which no bound role
    may do.
    """
    for start in range(0, len(rows), _ROWS_AT_ONCE):
        some = rows[start : start + _ROWS_AT_ONCE]
        places = ", ".join(
            "(" + ", ".join(f"%({column}_{number})s" for column in columns) + ")" for number in range(len(some))
        )
        values = {
            f"{column}_{number}": value
            for number, row in enumerate(some)
            for column, value in zip(columns, row, strict=True)
        }
        yield Statement(f"INSERT INTO sessiontree.{table} ({', '.join(columns)}) VALUES {places} {otherwise}", values)


BEGIN = Statement("BEGIN ISOLATION LEVEL READ COMMITTED")
COMMIT = Statement("COMMIT")
ROLLBACK = Statement("ROLLBACK")


@functools.lru_cache(maxsize=1000)
def numbered(sql: str) -> tuple[bytes, tuple[str, ...]]:
    """Return a statement with numbered values, as PostgreSQL itself has them, and their names in that order.

    >>> numbered("a = %(x)s AND b = %(y)s OR c = %(x)s")
    (b'a = $1 AND b = $2 OR c = $1', ('x', 'y'))
    """
    names: dict[str, int] = {}
    replaced = _NAME.sub(lambda found: f"${names.setdefault(found[1], len(names) + 1)}", sql)
    return replaced.encode(), tuple(names)


def to_bytes(text: str) -> bytes:
    """Encode text for a bytea column: PostgreSQL's text has no NUL, and bytes sort the same under every locale."""
    return text.encode("utf-8", "surrogatepass")


def to_text(data: bytes) -> str:
    """Decode what ``to_bytes`` encoded."""
    return data.decode("utf-8", "surrogatepass")


_MAX_CACHED = 100_000
_FIND = "SELECT tree FROM sessiontree.home WHERE id = %(id)s AND namespace = %(namespace)s AND tree IS NOT NULL"


class TreeLookup:
    """The tree of each thread of a namespace, cached, and the channel of the namespace.

    An entry is only wrong after a thread was deleted and another created with its id. Statements that use it then find
    no row, and the caller calls ``refresh``.
    """

    def __init__(self, namespace: str) -> None:
        self.namespace = namespace
        self.channel = ""
        self._trees: dict[str, UUID] = {}

    def cached(self, thread_id: str) -> UUID | None:
        """The cached tree of a thread."""
        return self._trees.get(thread_id)

    def find(self, thread_id: str) -> Steps[UUID]:
        """The tree of a thread, cached or read; raise ThreadNotFoundError if there is no such thread."""
        known = self._trees.get(thread_id)
        if known is not None:
            return known
        return (yield from self.refresh(thread_id))

    def refresh(self, thread_id: str) -> Steps[UUID]:
        """The tree of a thread, read from the store."""
        rows = yield Statement(_FIND, {"id": to_bytes(thread_id), "namespace": self.namespace})
        if not rows:
            self.forget(thread_id)
            raise ThreadNotFoundError(thread_id)
        tree: UUID = rows[0][0]
        self.remember(thread_id, tree)
        return tree

    def remember(self, thread_id: str, tree: UUID) -> None:
        """Cache the tree of a thread."""
        if len(self._trees) >= _MAX_CACHED:
            self._trees.clear()
        self._trees[thread_id] = tree

    def forget(self, thread_id: str) -> None:
        """Drop a thread from the cache."""
        self._trees.pop(thread_id, None)
