"""The three stores, for tests that must hold on each."""

from pathlib import Path
from typing import Any

import sessiontree as st
from known import of_kind
from sessiontree.stores.commands import Command, Result
from sessiontree.stores.embedded import EmbeddedStore
from sessiontree.stores.protocol import Backend, Store
from sessiontree.stores.sqlite import SqliteBackend

DURABLE = ("sqlite", "jsonl")
ALL = ("memory", *DURABLE)


def url_of(store: str, folder: Path) -> str:
    return "memory:" if store == "memory" else f"{store}:///{folder / 'journal'}"


def open_journal(store: str, folder: Path, **options: Any) -> st.Journal:
    return st.open(url_of(store, folder), **options)


def reopened(journal: st.Journal, store: str, folder: Path, **options: Any) -> st.Journal:
    """The journal after a restart; memory has none."""
    if store == "memory":
        return journal
    journal.close()
    return open_journal(store, folder, **options)


def backend_of(journal: st.Journal) -> Backend:
    return of_kind(EmbeddedStore, journal.store).backend


def sqlite_backend(journal: st.Journal) -> SqliteBackend:
    return of_kind(SqliteBackend, backend_of(journal))


def fill(journal: st.Journal, thread_id: str, *names: str) -> list[st.Entry]:
    return journal.append_many(thread_id, [st.NewEntry(content=st.user(name), id=name) for name in names])


def ids(entries: list[st.Entry]) -> list[str]:
    return [entry.id for entry in entries]


class Interrupted(Exception):  # noqa: N818
    pass


class FailingStore:
    """A store that gives up after some commits."""

    def __init__(self, store: Store, commits: int) -> None:
        self._store = store
        self._left = commits

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def commit(self, command: Command) -> Result:
        self._left -= 1
        if self._left < 0:
            raise Interrupted
        return self._store.commit(command)
