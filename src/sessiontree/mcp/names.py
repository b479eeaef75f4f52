"""Ids as a model reads and writes them: the end of a generated id, which the command line accepts too.

>>> shown("019a8c5e-41f0-7a53-9c1e-5b0f7d2e3a19"), shown("odd-keys"), shown("two\\nlines")
('5b0f7d2e3a19', 'odd-keys', '"two\\\\nlines"')
"""

from __future__ import annotations

import json
import re

from sessiontree.errors import SessionTreeError
from sessiontree.journal import Journal
from sessiontree.render.names import entries_named, threads_named

__all__ = ["RequestError", "argument", "find_entry", "find_thread", "shown"]


_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-(?P<end>[0-9a-f]{12})")
_PLAIN = re.compile(r"[\w.:@/~+#-]+")
_CANDIDATES = 5


class RequestError(SessionTreeError):
    """A request that cannot be answered; the message tells the model what to do."""


def shown(name: str) -> str:
    """Return the last 12 digits of a UUID, which are random; another id whole, in quotes if it has odd characters."""
    found = _UUID.fullmatch(name)
    if found:
        return found["end"]
    return name if _PLAIN.fullmatch(name) else json.dumps(name)


def argument(name: str) -> str:
    """Return an id as the value of an argument."""
    found = _UUID.fullmatch(name)
    return json.dumps(found["end"] if found else name)


def find_thread(journal: Journal, name: str) -> str:
    """Return the id of the thread that a name means: its id, or an unambiguous start or end of it."""
    found = threads_named(journal, name, limit=_CANDIDATES + 1)
    return _only(name, "thread", "list and search show the ids", found)


def find_entry(journal: Journal, thread_id: str, name: str) -> str:
    """Return the id of the entry of a thread that a name means: its id, its label, or a start or end of it."""
    found = entries_named(journal, thread_id, name, limit=_CANDIDATES + 1)
    return _only(name, "entry", f"read(thread={argument(thread_id)}) shows the ids", found)


def _only(name: str, what: str, advice: str, found: list[str]) -> str:
    if len(found) == 1:
        return found[0]
    if not found:
        raise RequestError(f"There is no {what} {json.dumps(name[:200])}; {advice}.")
    candidates = ", ".join(json.dumps(one) for one in found[:_CANDIDATES])
    raise RequestError(f"{json.dumps(name[:200])} fits more than one {what}; use a whole id: {candidates}.")
