"""Options of the PostgreSQL store, in its URL or as a record."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode

import msgspec
import psycopg

from sessiontree.errors import InvalidInputError, StoreUrlError
from sessiontree.model._base import Record, convert
from sessiontree.model.sanitize import is_unicode

__all__ = ["PostgresOptions", "checked", "conninfo_of", "parse_options", "place_of"]


class PostgresOptions(Record, frozen=True, kw_only=True):
    """Options; each may also be given in the URL: ``postgresql://host/db?namespace=acme&pool_size=20``.

    ``namespace`` separates tenants. ``retry_seconds`` limits the retries after a lost connection, ``open_retry_seconds``
    how long opening waits for a server that is down or starting. ``listen_url`` is a direct address of the server for
    ``watch``, if the main address is that of a pooler.
    """

    namespace: str = ""
    pool_size: int = 10
    pool_timeout_seconds: float = 30.0
    connect_timeout_seconds: int = 10
    statement_timeout_seconds: float = 0.0
    retry_seconds: float = 30.0
    open_retry_seconds: float = 10.0
    listen_url: str = ""


_NAMES = frozenset(PostgresOptions.__struct_fields__)
_PLACE_OPTIONS = frozenset({"host", "hostaddr", "port", "dbname", "user", "namespace"})
_DURATIONS = tuple(name for name in PostgresOptions.__struct_fields__ if name.endswith("_seconds"))
_MAX_SECONDS = 1_000_000
_PASSWORD = re.compile(r"(//[^/@:]*):.*@", re.DOTALL)


def parse_options(url: str) -> tuple[str, PostgresOptions]:
    """The URL without our options, for libpq, and the options.

    >>> parse_options("postgresql://host/db?sslmode=require&namespace=acme")
    ('postgresql://host/db?sslmode=require', PostgresOptions(namespace='acme'))
    """
    address, _, query = url.partition("?")
    pairs = parse_qsl(query, keep_blank_values=True)
    ours = {name: value for name, value in pairs if name in _NAMES}
    rest = urlencode([pair for pair in pairs if pair[0] not in _NAMES], quote_via=quote)
    try:
        options = convert(ours, PostgresOptions, strict=False)
    except msgspec.ValidationError as error:
        raise StoreUrlError(place_of(url), f"invalid option: {error}") from error
    return address + ("?" + rest if rest else ""), checked(options)


def checked(options: PostgresOptions) -> PostgresOptions:
    """Return the options; raise InvalidInputError if one is out of range."""
    if "\x00" in options.namespace or not is_unicode(options.namespace):
        raise InvalidInputError(f"namespace {options.namespace!r} contains NUL or invalid Unicode")
    if options.pool_size < 1:
        raise InvalidInputError(f"pool_size must be at least 1, not {options.pool_size}")
    for name in _DURATIONS:
        seconds = getattr(options, name)
        if not 0 <= seconds <= _MAX_SECONDS:
            raise InvalidInputError(f"{name} must be a number of seconds from 0 to {_MAX_SECONDS}, not {seconds}")
    return options


def conninfo_of(url: str, options: PostgresOptions, *, is_durable: bool) -> str:
    """The libpq connection string of a URL, with timeouts that detect a dead server unless the URL sets them."""
    from psycopg.conninfo import conninfo_to_dict, make_conninfo  # noqa: PLC0415  the extra may be missing

    try:
        given = conninfo_to_dict(url)
    except psycopg.ProgrammingError as error:
        raise StoreUrlError(
            place_of(url), f"{str(error).strip()}; options of sessiontree are {', '.join(sorted(_NAMES))}"
        ) from error
    for port in str(given.get("port") or "").split(","):
        if not port.isdecimal() and port:
            raise StoreUrlError(place_of(url), f"the port {port!r} is not a number")
    settings: dict[str, Any] = {
        "connect_timeout": options.connect_timeout_seconds,
        "tcp_user_timeout": 1000 * options.connect_timeout_seconds,
        "keepalives_idle": 30,
        "application_name": "sessiontree",
        **({"target_session_attrs": "read-write"} if "," in str(given.get("host") or "") else {}),
        **given,
        "client_encoding": "utf8",
    }
    words = [str(given.get("options") or "")]
    if options.statement_timeout_seconds:
        words.append(f"-c statement_timeout={int(options.statement_timeout_seconds * 1000)}")
    if not is_durable:
        words.append("-c synchronous_commit=off")
    if any(words):
        settings["options"] = " ".join(word for word in words if word)
    return make_conninfo(**settings)


def place_of(url: str, options: PostgresOptions | None = None) -> str:
    """The address for messages and comparisons: server, database and namespace, without the password.

    >>> place_of("postgresql://me:secret@host/db?sslmode=require&namespace=acme")
    'postgresql://me@host/db?namespace=acme'
    """
    address, _, query = url.partition("?")
    kept = {name: value for name, value in parse_qsl(query) if name in _PLACE_OPTIONS}
    if options is not None:
        kept["namespace"] = options.namespace
    where = urlencode({name: value for name, value in kept.items() if value}, quote_via=quote, safe="/")
    return _PASSWORD.sub(r"\1@", address) + ("?" + where if where else "")
