"""Importing a framework, which is an optional package."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata

from sessiontree.errors import MissingExtraError

__all__ = ["imports_of_extra"]


@contextmanager
def imports_of_extra(extra: str) -> Iterator[None]:
    """Raise MissingExtraError if an import of this block fails: the framework is missing, or older than the extra asks for."""
    try:
        yield
    except ImportError as error:
        raise MissingExtraError(f"the adapter for {extra}", extra, packages=tuple(_packages(extra))) from error


def _packages(extra: str) -> Iterator[str]:
    """What the extra asks for, and the versions that are installed: ``langgraph>=1 (0.6.1 is installed)``."""
    for requirement in _requirements():
        wanted, _, condition = requirement.partition(";")
        if condition.replace("'", '"').strip() != f'extra == "{extra}"':
            continue
        name = wanted.partition(">=")[0].strip()
        try:
            yield f"{wanted.strip()} ({metadata.version(name)} is installed)"
        except metadata.PackageNotFoundError:
            yield f"{wanted.strip()} (not installed)"


def _requirements() -> list[str]:
    try:
        return metadata.requires("sessiontree") or []
    except metadata.PackageNotFoundError:  # used without being installed
        return []
