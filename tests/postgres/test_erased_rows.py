"""After an erasure no table has the text, and once a table is rewritten its file has not either."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psycopg
from psycopg.sql import SQL

import sessiontree as st
from postgres_server import process_database, with_options

_WORDS = "battery-staple-correct-horse"


def _tables_with(connection: psycopg.Connection[tuple[Any, ...]], text: str) -> list[str]:
    tables = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'sessiontree'").fetchall()
    patterns = (f"%{text}%", f"%{text.encode().hex()}%")
    found = "SELECT 1 FROM sessiontree.{} AS r WHERE r::text LIKE %s OR r::text LIKE %s"
    return [name for (name,) in tables if connection.execute(SQL(found.format(name)), patterns).fetchall()]  # type: ignore[arg-type]


def test_no_table_and_no_file_of_one_has_an_erased_text(tmp_path: Path) -> None:
    address = process_database()
    with st.open(with_options(address, namespace=tmp_path)) as journal, psycopg.connect(address) as connection:
        connection.autocommit = True
        journal.create_thread("t")
        journal.append("t", st.user(_WORDS), id="secret")
        journal.fork("t", new_id="f")
        assert journal.search(_WORDS).hits
        assert {"entry", "thread"} <= set(_tables_with(connection, _WORDS))
        journal.erase("t", ["secret"])
        assert _tables_with(connection, _WORDS) == []
        connection.execute("VACUUM FULL sessiontree.entry")
        connection.execute("CHECKPOINT")
        ((content,),) = connection.execute("SELECT pg_read_binary_file(pg_relation_filepath('sessiontree.entry'))")
        assert _WORDS.encode() not in content
        assert journal.check() == []
