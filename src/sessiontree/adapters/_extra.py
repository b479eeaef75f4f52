"""Importing a framework, which is an optional package."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sessiontree.errors import MissingExtraError

__all__ = ["imports_of_extra"]


@contextmanager
def imports_of_extra(extra: str) -> Iterator[None]:
    """Raise MissingExtraError if an import of this block fails: the framework is missing, or older than the extra asks for."""
    try:
        yield
    except ImportError as error:
        raise MissingExtraError(f"the adapter for {extra}", extra) from error
