"""The three stores, for tests that must hold on each."""

import sessiontree as st

DURABLE = ("sqlite", "jsonl")
ALL = ("memory", *DURABLE)


def url_of(store, folder):
    return "memory:" if store == "memory" else f"{store}:///{folder / 'journal'}"


def open_journal(store, folder, **options):
    return st.open(url_of(store, folder), **options)


def reopened(journal, store, folder, **options):
    """The journal after a restart; memory has none."""
    if store == "memory":
        return journal
    journal.close()
    return open_journal(store, folder, **options)


def fill(journal, thread_id, *names):
    return journal.append_many(thread_id, [st.NewEntry(content=st.user(name), id=name) for name in names])


def ids(entries):
    return [entry.id for entry in entries]


class Interrupted(Exception):  # noqa: N818
    pass


class FailingStore:
    """A store that gives up after some commits."""

    def __init__(self, store, commits):
        self._store = store
        self._left = commits

    def __getattr__(self, name):
        return getattr(self._store, name)

    def commit(self, command):
        self._left -= 1
        if self._left < 0:
            raise Interrupted
        return self._store.commit(command)
