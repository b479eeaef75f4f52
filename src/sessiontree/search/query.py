"""A query, taken apart."""

from __future__ import annotations

from sessiontree.model.record import Record

__all__ = ["SearchQuery", "Term"]


class Term(Record, frozen=True, kw_only=True):
    """Found where one of the alternatives stands as a phrase; with ``is_prefix`` its last token may go on."""

    alternatives: tuple[tuple[str, ...], ...]
    is_prefix: bool = False
    is_excluded: bool = False


class SearchQuery(Record, frozen=True, kw_only=True):
    """All terms must be found and every filter must hold; several values of one filter are alternatives.

    ``threads`` is every branch that a thread sees, ``branches`` the active path of a thread alone.
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
        return tuple(term for term in self.terms if not term.is_excluded)

    @property
    def excluded(self) -> tuple[Term, ...]:
        return tuple(term for term in self.terms if term.is_excluded)
