"""What a verb of this store may ask for while it runs. Verbs are generators; two small drivers answer them."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any, NamedTuple, TypeVar

__all__ = ["BEGIN", "COMMIT", "ROLLBACK", "Pause", "Request", "Row", "Statement", "Steps", "to_bytes", "to_text"]

T = TypeVar("T")

Row = tuple[Any, ...]


class Statement(NamedTuple):
    """One round trip; the reply is its rows."""

    sql: str
    values: Mapping[str, Any] = {}


class Pause(NamedTuple):
    """Give the connection back, drop the dead ones, and wait before going on."""

    seconds: float


Request = Statement | Pause
Steps = Generator[Request, list[Row], T]

BEGIN = Statement("BEGIN ISOLATION LEVEL READ COMMITTED")
COMMIT = Statement("COMMIT")
ROLLBACK = Statement("ROLLBACK")


def to_bytes(text: str) -> bytes:
    """Ids and words are kept as bytes: PostgreSQL's text knows no NUL, and bytes sort the same under every locale."""
    return text.encode("utf-8", "surrogatepass")


def to_text(data: bytes) -> str:
    return data.decode("utf-8", "surrogatepass")
