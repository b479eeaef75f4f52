"""Parts of titles are found by an index, with the same answers as on the memory store."""

from __future__ import annotations

import secrets

import psycopg

import sessiontree as st
from postgres_server import empty_database, make_schema
from sessiontree.stores.postgres.schema import MIGRATIONS, TITLE_PARTS

TITLES = [
    "Mend the build", "rebuild everything", "50% done", "50 done", "a_b", "axb", "back\\slash", "caché", "cache",
    "日本語のタイトル", "quote ' here", "nul\0inside", "345", "\\345", "ab", "",
]  # fmt: skip
PARTS = [
    "build",
    "BUILD",
    "%",
    "_",
    "\\",
    "é",
    "本語",
    "'",
    "\0",
    "345",
    "34",
    "e",
    "",
    "no such title",
    "50%",
    "a_b",
    "ldb",
]


def test_titles_are_found_by_any_part() -> None:
    with st.open(empty_database()) as journal, st.open("memory:") as memory:
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


def test_a_part_of_a_title_is_looked_up_in_the_index() -> None:
    url = empty_database()
    st.open(url).close()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SET enable_seqscan = off")
        plan = connection.execute(
            f"EXPLAIN SELECT 1 FROM sessiontree.thread WHERE {TITLE_PARTS} @> sessiontree.title_parts('build'::bytea)"
        )
        assert "thread_title_parts" in " ".join(row[0] for row in plan)


def test_an_earlier_index_of_titles_gives_way() -> None:
    """Schemas before version 12 had one if the server had pg_trgm."""
    url = empty_database()
    make_schema(url, MIGRATIONS[:11])
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE INDEX thread_title ON sessiontree.thread (encode(title_folded, 'escape'))")
        with st.open(url) as journal:
            journal.create_thread("t", title="Mend the build")
            assert [thread.id for thread in journal.list_threads(title_contains="the bui")] == ["t"]
        rows = connection.execute("SELECT indexname FROM pg_indexes WHERE indexname LIKE 'thread_title%'")
        assert [row[0] for row in rows] == ["thread_title_parts"]
