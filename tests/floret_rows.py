"""What the tests of floret's symbols share."""

from __future__ import annotations

import sessiontree as st
from sessiontree.model import Entry


def both(*verbs: str) -> tuple[str, ...]:
    """The rows of methods that FileRepo and MemoryRepo share."""
    return tuple(f"{repo}.{verb}" for repo in ("FileRepo", "MemoryRepo") for verb in verbs)


def everywhere(*verbs: str) -> tuple[str, ...]:
    """The rows of methods of the interface and both of its implementations."""
    return (*(f"Repo.{verb}" for verb in verbs), *both(*verbs))


def ids(entries: list[Entry]) -> list[str]:
    return [entry.id for entry in entries]


def threads(page: st.Page) -> list[str]:
    return [thread.id for thread in page]


def say(journal: st.Journal, thread_id: str, *names: str) -> None:
    for name in names:
        journal.append(thread_id, st.user(name), id=name)
