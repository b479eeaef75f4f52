"""Store addresses: ``memory:``, ``sqlite:///file.db``, ``jsonl:///folder``, ``postgresql://…`` or a plain path."""

from __future__ import annotations

import os
import re
from types import ModuleType
from typing import Literal

from sessiontree.errors import InvalidInputError, MissingExtraError, StoreUrlError
from sessiontree.model._base import Record
from sessiontree.model.passwords import address_without_password
from sessiontree.model.sanitize import is_unicode
from sessiontree.stores.forking import NOT_WHILE_FORKING
from sessiontree.stores.protocol import Backend, Durability

__all__ = [
    "STORE_VARIABLE",
    "StoreAddress",
    "data_file",
    "default_url",
    "is_connection_string",
    "load_postgres",
    "open_backend",
    "parse_url",
]


STORE_VARIABLE = "SESSIONTREE_STORE"
"""The environment variable that names the store to use by default."""

_SCHEME = re.compile(r"^([a-zA-Z][a-zA-Z0-9+.-]+):")
_CONNECTION_STRING = re.compile(r"(?:^|\s)(?:host|hostaddr|port|dbname|user|password|service)\s*=\s*\S")
_ODD_PASSWORD = re.compile(r"\s|://[^:/?@]*:(?!\d*(?:/|$))[^@/?#]*[?/#][^@]*@")
_LOGIN = re.compile(r"[^:@/\\]+:(?![/\\])[^@]+@")
_AS_URL = "write it as a URL: postgresql://user:password@host/database"
_DURABILITIES = ("power_loss", "process_crash")

Embedded = Literal["memory", "jsonl", "sqlite"]


class StoreAddress(Record, frozen=True, kw_only=True):
    """What an address names: the kind of store, and its path or whole URL."""

    kind: Embedded | Literal["postgres"]
    target: str = ""


def parse_url(url: str | os.PathLike[str]) -> StoreAddress:
    """Return the store that an address names. Raises StoreUrlError if it names none.

    >>> parse_url("sqlite:///relative.db")
    StoreAddress(kind='sqlite', target='relative.db')
    >>> parse_url("sqlite:////var/lib/absolute.db").target
    '/var/lib/absolute.db'
    >>> parse_url("notes/journal.db").kind
    'sqlite'
    """
    if isinstance(url, os.PathLike):
        return _plain_path(os.fspath(url))
    if not isinstance(url, str):
        raise StoreUrlError(repr(url), "an address must be a string or a path")
    scheme = _SCHEME.match(url)
    if scheme is None and _LOGIN.match(url):
        raise StoreUrlError(
            address_without_password(url), f"{_AS_URL}; a file of that name is ./{address_without_password(url)}"
        )
    if scheme is None:
        return _plain_path(url)
    match scheme[1].lower():
        case "memory" if url[len("memory:") :].strip("/") == "":
            return StoreAddress(kind="memory")
        case "sqlite" | "jsonl" as kind:
            return StoreAddress(kind=kind, target=_path_in(url, kind))
        case "postgresql" | "postgres":
            return StoreAddress(kind="postgres", target=_checked_url(url))
        case _:
            raise StoreUrlError(address_without_password(url), f"there is no store for {scheme[1]!r}")


def default_url() -> str:
    """Return the address of the store that is used if none is named.

    That is what the environment variable ``SESSIONTREE_STORE`` names, or ``journal.db`` in the platform's data folder.
    """
    return os.environ.get(STORE_VARIABLE) or data_file()


def data_file() -> str:
    """Return the path of ``journal.db`` in the folder ``sessiontree`` of the platform's data folder."""
    if os.name == "posix" and os.environ.get("XDG_DATA_HOME"):
        folder = os.environ["XDG_DATA_HOME"]
        return os.path.join(folder, "sessiontree", "journal.db")  # noqa: PTH118  pathlib is slow to import
    from platformdirs import user_data_path  # noqa: PLC0415  only needed for the default

    return str(user_data_path("sessiontree", appauthor=False) / "journal.db")


def _plain_path(path: str) -> StoreAddress:
    if not path:
        raise StoreUrlError(path, "the address is empty")
    if "\0" in path or not is_unicode(path):
        raise StoreUrlError(repr(path), "path contains NUL or invalid Unicode")
    if is_connection_string(path):
        raise StoreUrlError(address_without_password(path), _AS_URL)
    path = _in_home(path)
    is_folder = path.endswith(("/", ".jsonl")) or os.path.isdir(path)  # noqa: PTH112  pathlib is slow to import
    return StoreAddress(kind="jsonl" if is_folder else "sqlite", target=path)


def _checked_url(url: str) -> str:
    """A URL that libpq reads as it is meant. Its own messages about others would quote the password."""
    if "://" not in url:
        raise StoreUrlError(address_without_password(url), "two slashes are missing: postgresql://host/database")
    if _ODD_PASSWORD.search(url):
        problem = "odd characters of a password are written as %20, %3F, %2F and so on"
        raise StoreUrlError(address_without_password(url), problem)
    return url


def is_connection_string(text: str) -> bool:
    """Return whether a text has the form of libpq, as ``host=db password=x``: a file of that name is not meant."""
    return _CONNECTION_STRING.search(text) is not None


def _in_home(path: str) -> str:
    """A path below the user's folder, which a shell leaves as it is behind ``--store=`` and in quotes."""
    return os.path.expanduser(path) if path.startswith("~") else path  # noqa: PTH111  pathlib is slow to import


def _path_in(url: str, kind: str) -> str:
    prefix = f"{kind}:///"
    if not url.startswith(prefix) or len(url) == len(prefix):
        raise StoreUrlError(
            address_without_password(url),
            f"the path is missing; write three slashes, then the path: {prefix}relative or {prefix}/absolute",
        )
    from urllib.parse import unquote  # noqa: PLC0415  slow to import, and seldom needed

    path = unquote(url[len(prefix) :])
    if _looks_absolute(path):
        raise StoreUrlError(url, f"did you mean {prefix}/{path}? Write {prefix}./{path} for a folder below this one")
    return _plain_path(path).target


def _looks_absolute(path: str) -> bool:
    """Whether a relative path was probably meant to be absolute: its first folder is at the root, and not here."""
    first, slash, _ = path.partition("/")
    # pathlib is slow to import.
    is_here = os.path.isdir(first)  # noqa: PTH112
    return bool(slash) and first not in {"", ".", ".."} and not is_here and os.path.isdir(f"/{first}")  # noqa: PTH112


def load_postgres() -> ModuleType:
    """Import the PostgreSQL store. Raises MissingExtraError without psycopg."""
    try:
        from sessiontree.stores import postgres  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise MissingExtraError("the PostgreSQL store", "postgres") from error
    return postgres


def open_backend(kind: Embedded, target: str, durability: Durability) -> Backend:
    """Open an embedded store. Imports are in here so that a program loads only the store that it uses."""
    from pathlib import Path  # noqa: PLC0415

    if durability not in _DURABILITIES:
        raise InvalidInputError(f"durability must be one of {_DURABILITIES}, not {durability!r}")
    # The real path, so that a change of folder or a link to the file cannot split one store into two.
    path = Path(os.path.realpath(target))
    match kind:
        case "memory":
            from sessiontree.stores.memory import MemoryBackend  # noqa: PLC0415

            return MemoryBackend()
        case "jsonl":
            from sessiontree.stores.jsonl import JsonlBackend  # noqa: PLC0415

            with NOT_WHILE_FORKING:
                return JsonlBackend(path, durability=durability)
        case "sqlite":
            from sessiontree.stores.sqlite import SqliteBackend  # noqa: PLC0415

            with NOT_WHILE_FORKING:
                return SqliteBackend(path, durability=durability)
