"""What a name means wherever one is typed, to the command line or to the MCP server.

An id that is exactly the name always wins, then a label, then an id that begins or ends with the name. Names that were
typed as they are printed, without the control characters in them, mean the same.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from itertools import count as counting
from typing import TYPE_CHECKING

from sessiontree.render.cells import printable

if TYPE_CHECKING:
    from sessiontree.journal import Journal

__all__ = ["SIGNS", "address_of", "entries_named", "has_entry", "printed_as", "splits", "threads_named"]


SIGNS = ":@~^"
"""What may follow the id of a thread in the address of an entry."""

_MOST = 1_000_000


def threads_named(journal: Journal, name: str, *, limit: int) -> list[str]:
    """Return the ids of the threads that a name can mean: one if it is clear, none if there is no such thread."""
    return journal.thread_ids(name, limit=limit) if name else []


def entries_named(journal: Journal, thread_id: str, name: str, *, limit: int) -> list[str]:
    """Return the ids of the entries of a thread that a name can mean."""
    found = journal.entry_ids(thread_id, name, limit=limit) if name else []
    if found == [name]:
        return found
    labels = journal.labels(thread_id)
    if name in labels:
        return [labels[name]]
    if found:
        return found
    targets = {labels[label] for label in printed_as(name, labels)}
    return sorted(targets) or printed_as(name, journal.entry_ids(thread_id, "", limit=_MOST))


def has_entry(journal: Journal, thread_id: str, name: str) -> bool:
    """Return whether a name is exactly the id of an entry that the thread sees, or one of its labels."""
    return bool(name) and (journal.entry_ids(thread_id, name, limit=2) == [name] or name in journal.labels(thread_id))


def printed_as(name: str, names: Iterable[str]) -> list[str]:
    """Return the names that are printed like this one, but are not equal to it."""
    return sorted(one for one in names if not one.isprintable() and printable(one) == name) if name else []


def splits(address: str) -> dict[str, str]:
    """Return what may be the thread of an address, the longest first, each with the part about an entry.

    >>> splits("3a19:b21c~1")
    {'3a19:b21c~1': '', '3a19:b21c': '~1', '3a19': ':b21c~1'}
    """
    ends = [len(address), *(at for at in range(len(address) - 1, 0, -1) if address[at] in SIGNS)]
    return {address[:end]: address[end:] for end in ends}


def address_of(journal: Journal, thread: str, name: str) -> str:
    """Return the address of an entry as it is typed: ``a:b``, or ``a@:b`` beside a thread that is itself called ``a:b``.

    Beside a thread called ``a@`` as well it is ``a@{0}:b``, with as many zeros as are needed: no other split of it is a name.
    """
    joints = chain((":", "@:"), (f"@{{{'0' * zeros}}}:" for zeros in counting(1)))
    addresses = (f"{thread}{joint}{name}" for joint in joints)
    return next(address for address in addresses if not _names_longer(journal, address, thread))


def _names_longer(journal: Journal, address: str, thread: str) -> bool:
    """Whether an address means a thread with a longer name than that of its thread."""
    longer = (part for part in splits(address) if len(part) > len(thread))
    return any(journal.thread_ids(part, limit=1) for part in longer)
