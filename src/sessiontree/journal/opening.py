"""Open a journal by the address of its store.

Addresses of stores: ``memory:``, ``sqlite:///file.db``, ``jsonl:///folder``, ``postgresql://…`` or a plain path.
"""

from __future__ import annotations

import os
import re
from types import ModuleType
from typing import TYPE_CHECKING

from sessiontree.errors import InvalidInputError, MissingExtraError, StoreUrlError
from sessiontree.journal import Journal
from sessiontree.model._base import Record
from sessiontree.model.ids import Clock, RandomSource, system_clock
from sessiontree.model.later import Later
from sessiontree.stores.embedded import EmbeddedStore
from sessiontree.stores.protocol import Backend, Durability

if TYPE_CHECKING:
    from sessiontree.journal import journal_async
    from sessiontree.stores import embedded_async
    from sessiontree.workspace import ignore
else:
    # asyncio is slow to import.
    journal_async = Later("sessiontree.journal.journal_async")
    embedded_async = Later("sessiontree.stores.embedded_async")
    ignore = Later("sessiontree.workspace.ignore")

__all__ = ["Address", "open", "open_async", "parse_url"]


_SCHEME = re.compile(r"^([a-zA-Z][a-zA-Z0-9+.-]+):")


class Address(Record, frozen=True, kw_only=True):
    """What an address names: the kind of store, and its path or whole URL."""

    kind: str
    target: str = ""


def parse_url(url: str | os.PathLike[str]) -> Address:
    """The store that an address names.

    >>> parse_url("sqlite:///relative.db")
    Address(kind='sqlite', target='relative.db')
    >>> parse_url("sqlite:////var/lib/absolute.db").target
    '/var/lib/absolute.db'
    >>> parse_url("notes/journal.db").kind
    'sqlite'
    """
    if isinstance(url, os.PathLike):
        return _plain_path(os.fspath(url))
    if not isinstance(url, str):
        raise StoreUrlError(repr(url), "an address is a text or a path")
    scheme = _SCHEME.match(url)
    if scheme is None:
        return _plain_path(url)
    match scheme[1].lower():
        case "memory" if url[len("memory:") :].strip("/") == "":
            return Address(kind="memory")
        case "sqlite" | "jsonl" as kind:
            return Address(kind=kind, target=_path_in(url, kind))
        case "postgresql" | "postgres":
            return Address(kind="postgres", target=url)
        case _:
            raise StoreUrlError(url, f"there is no store for {scheme[1]!r}")


def _plain_path(path: str) -> Address:
    if not path:
        raise StoreUrlError(path, "the address is empty")
    if "\0" in path or not _is_text(path):
        raise StoreUrlError(repr(path), "a path holds neither NUL nor lone surrogates")
    is_folder = path.endswith(("/", ".jsonl")) or os.path.isdir(path)  # noqa: PTH112  pathlib is slow to import
    return Address(kind="jsonl" if is_folder else "sqlite", target=path)


def _path_in(url: str, kind: str) -> str:
    prefix = f"{kind}:///"
    if not url.startswith(prefix) or len(url) == len(prefix):
        raise StoreUrlError(
            url, f"a path is missing; three slashes, then the path: {kind}:///relative or {kind}:////absolute"
        )
    from urllib.parse import unquote  # noqa: PLC0415  slow to import, and seldom needed

    return _plain_path(unquote(url[len(prefix) :])).target


def _is_text(path: str) -> bool:
    return path.isascii() or path.encode("utf-8", "ignore").decode() == path


_DURABILITIES = ("power_loss", "process_crash")


def open(  # noqa: A001  `st.open` reads as what it does
    url: str | os.PathLike[str],
    *,
    durability: Durability = "power_loss",
    clock: Clock = system_clock,
    random: RandomSource = os.urandom,
    workspace_settings: ignore.Settings | None = None,
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
    workspace_settings: ignore.Settings | None = None,
) -> journal_async.AsyncJournal:
    """The same for asyncio: ``async with open_async(url) as journal``."""
    address = parse_url(url)
    store = (
        _postgres().AsyncPostgresStore(address.target, durability=durability)
        if address.kind == "postgres"
        else embedded_async.AsyncEmbeddedStore(_backend(address, durability))
    )
    return journal_async.AsyncJournal(store, clock=clock, random=random, workspace_settings=workspace_settings)


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
