"""Addresses of stores: ``memory:``, ``sqlite:///file.db``, ``jsonl:///folder``, ``postgresql://…`` or a plain path."""

from __future__ import annotations

import os
import re

from sessiontree.errors import StoreUrlError

__all__ = ["Address", "parse_url"]

from sessiontree.model.record import Record

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
