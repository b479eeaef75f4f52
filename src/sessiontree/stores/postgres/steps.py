"""What a verb of this store may ask for while it runs. Verbs are generators; two small drivers answer them.

Which tree a thread lives in. The answer hardly ever changes, so it is remembered and checked by use.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Generator, Mapping
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
    "numbered",
    "to_bytes",
    "to_text",
]


T = TypeVar("T")

_NAME = re.compile(r"%\((\w+)\)s")

Row = tuple[Any, ...]


class Statement(NamedTuple):
    """One round trip; the reply is its rows."""

    sql: str
    values: Mapping[str, Any] = {}


class Wait(NamedTuple):
    """Give the connection back, drop the dead ones, and wait before going on."""

    seconds: float


Request = Statement | Wait
Steps = Generator[Request, list[Row], T]

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
    """Ids and words are kept as bytes: PostgreSQL's text knows no NUL, and bytes sort the same under every locale."""
    return text.encode("utf-8", "surrogatepass")


def to_text(data: bytes) -> str:
    return data.decode("utf-8", "surrogatepass")


_MOST_REMEMBERED = 100_000
_FIND = "SELECT tree FROM sessiontree.home WHERE id = %(id)s AND namespace = %(namespace)s AND tree IS NOT NULL"


class TreeLookup:
    """Thread id to tree, for one namespace."""

    def __init__(self, namespace: str) -> None:
        self.namespace = namespace
        self._trees: dict[str, UUID] = {}

    def get(self, thread_id: str) -> UUID | None:
        """What is remembered."""
        return self._trees.get(thread_id)

    def find(self, thread_id: str) -> Steps[UUID]:
        known = self._trees.get(thread_id)
        if known is not None:
            return known
        return (yield from self.look_up(thread_id))

    def look_up(self, thread_id: str) -> Steps[UUID]:
        """Ask the store, whatever is remembered."""
        rows = yield Statement(_FIND, {"id": to_bytes(thread_id), "namespace": self.namespace})
        if not rows:
            self.forget(thread_id)
            raise ThreadNotFoundError(thread_id)
        tree: UUID = rows[0][0]
        self.remember(thread_id, tree)
        return tree

    def remember(self, thread_id: str, tree: UUID) -> None:
        if len(self._trees) >= _MOST_REMEMBERED:
            self._trees.clear()
        self._trees[thread_id] = tree

    def forget(self, thread_id: str) -> None:
        self._trees.pop(thread_id, None)
