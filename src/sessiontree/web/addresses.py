"""Ids in addresses. Any string is a legal id, so the characters that mean something in a path are escaped.

>>> [segment(name) for name in ("3a19", "a/b", "..", "x.json", "ä b", "~", "")]
['3a19', 'a~1b', '~2~2', 'x~2json', '%C3%A4%20b', '~0', '~']
>>> all(id_in(unquote(segment(name))) == name for name in ("3a19", "a/b", "..", "x.json", "~1", "~", ""))
True
"""

from __future__ import annotations

import re
from urllib.parse import quote, unquote, urlencode

__all__ = ["entry_url", "fragment", "id_in", "segment", "thread_url", "unquote", "with_query"]


_SIGNS = {"~": "~0", "/": "~1", ".": "~2"}
_IDS = {code: sign for sign, code in _SIGNS.items()}


def segment(name: str) -> str:
    """Return an id as one segment of a path."""
    return quote(re.sub("[~/.]", lambda found: _SIGNS[found[0]], name), safe="~") if name else "~"


def id_in(part: str) -> str:
    """Return the id that a decoded segment stands for."""
    return "" if part == "~" else re.sub("~[012]", lambda found: _IDS[found[0]], part)


def thread_url(thread_id: str, below: str = "", **query: str | int | None) -> str:
    """Return the address of a thread, or of something below it."""
    return with_query(f"/t/{segment(thread_id)}{below}", **query)


def entry_url(thread_id: str, entry_id: str) -> str:
    """Return the address of an entry: its thread, opened at the entry."""
    return f"{thread_url(thread_id, at=entry_id)}#{fragment(entry_id)}"


def fragment(entry_id: str) -> str:
    """Return the id of the element that shows an entry."""
    return f"e-{segment(entry_id)}"


def with_query(path: str, **query: str | int | None) -> str:
    """Return an address with the parameters that are not None."""
    given = {name: value for name, value in query.items() if value is not None}
    return f"{path}?{urlencode(given)}" if given else path
