"""Open a journal by the address of its store."""

from __future__ import annotations

import os

from sessiontree.journal.address import default_url, load_postgres, open_backend, parse_url
from sessiontree.journal.journal_async import AsyncJournal
from sessiontree.journal.operations.entries import prepare_append
from sessiontree.model.ids import Clock, RandomSource, system_clock
from sessiontree.model.observed import Observer
from sessiontree.stores.embedded_async import AsyncEmbeddedStore
from sessiontree.stores.protocol import AsyncStore, Durability
from sessiontree.workspace import Settings

__all__ = ["open_async"]


def open_async(
    url: str | os.PathLike[str] | None = None,
    *,
    durability: Durability = "power_loss",
    clock: Clock = system_clock,
    random: RandomSource = os.urandom,
    workspace_settings: Settings | None = None,
    observer: Observer | None = None,
) -> AsyncJournal:
    """Open the journal of the store at ``url``, and create the store if it does not exist.

    Use it as a context manager: ``async with sessiontree.open_async("journal.db") as journal:``. The address is
    ``memory:``, ``sqlite:///file.db``, ``jsonl:///folder``, ``postgresql://host/db`` or a plain path. Without
    one, it is that of the environment variable ``SESSIONTREE_STORE``, or ``journal.db`` in the platform's data folder,
    which is the default of the command line too. ``durability`` says what an acknowledged write survives: a power
    loss, or only a crash of this process. ``clock`` and ``random`` replace the sources of times and ids, for tests.
    ``observer`` is told how long everything took: see ``sessiontree.observe``.
    """
    address = parse_url(default_url() if url is None else url)
    store: AsyncStore
    if address.kind == "postgres":
        store = load_postgres().AsyncPostgresStore(address.target, durability=durability)
    else:
        store = AsyncEmbeddedStore(open_backend(address.kind, address.target, durability))
    if observer is not None:
        store = _observed(store, observer)
    if True:  # ASYNC
        prepare_append()
    return AsyncJournal(store, clock=clock, random=random, workspace_settings=workspace_settings, observer=observer)


def _observed(store: AsyncStore, observer: Observer) -> AsyncStore:
    from sessiontree.stores.observed_async import AsyncObservedStore  # noqa: PLC0415  most programs have no observer

    groups = store.observe_groups(observer) if isinstance(store, AsyncEmbeddedStore) else None
    return AsyncObservedStore(store, observer, groups)
