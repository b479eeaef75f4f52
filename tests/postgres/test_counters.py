"""Statistics come from counters of every thread, which are those of a recount whatever was done."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

import sessiontree as st
from postgres_server import process_database, with_options
from sessiontree.stores.queries import ReadThreadSizes

RECOUNT = """
SELECT (SELECT count(*) FROM sessiontree.thread WHERE namespace = %(namespace)s),
    (SELECT count(*) FROM sessiontree.entry WHERE namespace = %(namespace)s),
    (SELECT count(*) FROM sessiontree.move WHERE namespace = %(namespace)s),
    (SELECT sum(octet_length(body)) FROM sessiontree.entry WHERE namespace = %(namespace)s)"""


@pytest.fixture
def namespace(tmp_path: Path) -> str:
    return str(tmp_path)


@pytest.fixture
def journal(namespace: str) -> st.Journal:
    return st.open(with_options(process_database(), namespace=namespace))


def recount(namespace: str) -> tuple[int, ...]:
    with psycopg.connect(process_database()) as connection:
        (row,) = connection.execute(RECOUNT, {"namespace": namespace}).fetchall()
    return row


def counted(journal: st.Journal) -> tuple[int, ...]:
    stats = journal.stats()
    return (stats.threads, stats.entries, stats.moves, stats.bytes)


def test_statistics_are_those_of_a_recount(journal: st.Journal, namespace: str) -> None:
    def check() -> None:
        assert counted(journal) == recount(namespace)
        assert journal.check() == []

    with journal:
        journal.create_thread("t", contents=[st.user("first"), st.assistant("second")])
        journal.append("t", st.user("one"), id="a")
        journal.append_many("t", [st.assistant("x" * 5_000), st.user("two")])
        check()
        journal.append("t", st.user("with fields"), fields={"title": "New"})
        journal.append("t", st.user("beside"), parent="a")
        journal.rewind("t", "a")
        journal.fork("t", new_id="f")
        journal.append("f", st.user("in the fork"))
        check()
        journal.erase("t", ["a"])
        check()
        journal.delete_thread("t")
        check()
        assert counted(journal)[1] == 4  # three that the fork keeps, and its own
        journal.erase("f", ["a"])
        journal.commit(st.Changes().append("new", st.user("made"), create=True).delete_thread("f"))
        check()


def test_sizes_of_threads_are_those_of_their_own_entries(journal: st.Journal) -> None:
    with journal:
        journal.append("t", st.user("one"), create=True)
        journal.fork("t", new_id="f")
        size = journal.stats().bytes
        journal.append("f", st.user("two, which is longer"))
        assert journal.store.read(ReadThreadSizes()) == {"t": size, "f": journal.stats().bytes - size}


def test_a_counter_that_is_wrong_is_found(journal: st.Journal, namespace: str) -> None:
    with journal, psycopg.connect(process_database(), autocommit=True) as connection:
        journal.append("t", st.user("one"), create=True)
        for column in ("bytes", "seq"):
            for step in (1, -1):
                connection.execute(
                    f"UPDATE sessiontree.head SET {column} = {column} + {step} WHERE namespace = '{namespace}'".encode()
                )
                assert ("counter" in {finding.kind for finding in journal.check()}) is (step == 1)
