"""Titles are looked through with pg_trgm where the server has it, with the same answers as without."""

import secrets

import psycopg
import pytest

import sessiontree as st
from postgres_server import empty_database
from sessiontree.stores.postgres.schema import TITLE_INDEX

TITLES = [
    "Mend the build", "rebuild everything", "50% done", "50 done", "a_b", "axb", "back\\slash", "caché", "cache",
    "日本語のタイトル", "quote ' here", "nul\0inside", "345", "\\345", "",
]  # fmt: skip
PARTS = ["build", "BUILD", "%", "_", "\\", "é", "本語", "'", "\0", "345", "34", "e", "", "no such title", "50%", "a_b"]


def plan_of(connection, part):
    """What the server does for a title when it may choose among many threads."""
    connection.execute("SET enable_seqscan = off")
    sql = "EXPLAIN SELECT 1 FROM sessiontree.thread t WHERE encode(t.title_folded, 'escape') LIKE %s"
    return " ".join(row[0] for row in connection.execute(sql, [f"%{part}%"]))


@pytest.mark.parametrize("place", [None, "public", "elsewhere"])
def test_titles_are_found_by_any_part_with_and_without_trigrams(place):
    url = empty_database()
    with psycopg.connect(url, autocommit=True) as connection:
        if place is not None:
            try:
                connection.execute(f"CREATE SCHEMA IF NOT EXISTS {place}")
                connection.execute(f"CREATE EXTENSION pg_trgm SCHEMA {place}")
            except psycopg.errors.FeatureNotSupported:
                pytest.skip("this server does not have pg_trgm; set SESSIONTREE_TEST_DSN to one that does")
        with st.open(url) as journal, st.open("memory:") as memory:
            for title in TITLES:
                name = secrets.token_hex(8)
                for store in (journal, memory):
                    store.create_thread(name, title=title)
            for part in PARTS:
                found, expected = (
                    sorted(thread.title for thread in store.list_threads(title_contains=part, limit=100))
                    for store in (journal, memory)
                )
                assert found == expected, part
        assert (TITLE_INDEX in plan_of(connection, "build")) == (place is not None)
