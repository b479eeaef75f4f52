"""Open a journal by the address of its store."""

from __future__ import annotations

import os
from types import ModuleType
from typing import TYPE_CHECKING

from sessiontree._engine.embedded import EmbeddedStore
from sessiontree.errors import InvalidInputError, MissingExtraError, StoreUrlError
from sessiontree.ids import Clock, RandomSource, system_clock
from sessiontree.journal import Journal
from sessiontree.later import Later
from sessiontree.store import Backend, Durability
from sessiontree.url import Address, parse_url

if TYPE_CHECKING:
    from sessiontree import async_journal
    from sessiontree._engine import async_embedded
    from sessiontree.workspace import settings
else:
    # asyncio is slow to import.
    async_journal = Later("sessiontree.async_journal")
    async_embedded = Later("sessiontree._engine.async_embedded")
    settings = Later("sessiontree.workspace.settings")

__all__ = ["open", "open_async"]

_DURABILITIES = ("power_loss", "process_crash")


def open(  # noqa: A001  `st.open` reads as what it does
    url: str | os.PathLike[str],
    *,
    durability: Durability = "power_loss",
    clock: Clock = system_clock,
    random: RandomSource = os.urandom,
    workspace_settings: settings.Settings | None = None,
) -> Journal:
    """A journal on the store at ``url``, which is created if it is not there.

    >>> with open("memory:") as journal:
    ...     journal.create_thread(title="demo").title
    'demo'
    """
    address = parse_url(url)
    store = (
        _postgres().PostgresStore(address.target, durability=durability)
        if address.kind == "postgres"
        else EmbeddedStore(_backend(address, durability))
    )
    return Journal(store, clock=clock, random=random, workspace_settings=workspace_settings)


def open_async(
    url: str | os.PathLike[str],
    *,
    durability: Durability = "power_loss",
    clock: Clock = system_clock,
    random: RandomSource = os.urandom,
    workspace_settings: settings.Settings | None = None,
) -> async_journal.AsyncJournal:
    """The same for asyncio: ``async with open_async(url) as journal``."""
    address = parse_url(url)
    store = (
        _postgres().AsyncPostgresStore(address.target, durability=durability)
        if address.kind == "postgres"
        else async_embedded.AsyncEmbeddedStore(_backend(address, durability))
    )
    return async_journal.AsyncJournal(store, clock=clock, random=random, workspace_settings=workspace_settings)


def _postgres() -> ModuleType:
    try:
        from sessiontree.stores import postgres  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise MissingExtraError("the PostgreSQL store", "postgres") from error
    return postgres


def _backend(address: Address, durability: Durability) -> Backend:
    """Imports are here, so that a program loads only the store that it uses."""
    from pathlib import Path  # noqa: PLC0415

    if durability not in _DURABILITIES:
        raise InvalidInputError(f"durability is one of {_DURABILITIES}, not {durability!r}")
    # The real path, so that a change of folder or a link to the file cannot split one store into two.
    place = Path(os.path.realpath(address.target))
    match address.kind:
        case "memory":
            from sessiontree.stores.memory import MemoryBackend  # noqa: PLC0415

            return MemoryBackend()
        case "jsonl":
            from sessiontree.stores.jsonl import JsonlBackend  # noqa: PLC0415

            return JsonlBackend(place, durability=durability)
        case "sqlite":
            from sessiontree.stores.sqlite import SqliteBackend  # noqa: PLC0415

            return SqliteBackend(place, durability=durability)
        case kind:
            raise StoreUrlError(address.target, f"there is no store for {kind!r} here")
