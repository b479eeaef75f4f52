"""What an operation may ask for while it runs; the drivers answer, sync or async."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, TypeVar

from sessiontree.commands import Command
from sessiontree.ids import Clock, IdSource
from sessiontree.model.record import Record
from sessiontree.operations.setbacks import Setbacks
from sessiontree.queries import AnyQuery

__all__ = ["Call", "Operation", "Pause", "Request", "Sources", "Work"]

T = TypeVar("T")


class Sources(Record, frozen=True, kw_only=True):
    """Where time and ids come from, and what automatic compactions have to be patient with."""

    clock: Clock
    ids: IdSource
    setbacks: Setbacks


class Call(Record, frozen=True, kw_only=True):
    """Run a caller's function, which may be sync or, under the async driver, a coroutine function."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...] = ()


class Work(Record, frozen=True, kw_only=True):
    """Run a function that blocks on files; the async driver does it in a thread."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...] = ()


class Pause(Record, frozen=True, kw_only=True):
    """Let time pass without holding anybody up."""

    seconds: float


Request = Command | AnyQuery | Call | Work | Pause
Operation = Generator[Request, Any, T]
"""A verb, written once: it yields requests and returns its answer."""
