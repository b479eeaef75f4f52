"""After an erasure no table has the text, and once a table is rewritten its file has not either."""

from __future__ import annotations

import secrets
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.sql import SQL

import sessiontree as st
from postgres_server import Server, process_database, with_options
from property_settings import IS_DEEP
from tcp_proxy import Proxy

_WORDS = "battery-staple-correct-horse"


def _tables_with(connection: psycopg.Connection[tuple[Any, ...]], text: str) -> list[str]:
    tables = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'sessiontree'").fetchall()
    patterns = (f"%{text}%", f"%{text.encode().hex()}%")
    found = "SELECT 1 FROM sessiontree.{} AS r WHERE r::text LIKE %s OR r::text LIKE %s"
    return [name for (name,) in tables if connection.execute(SQL(found.format(name)), patterns).fetchall()]


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


def _fill(journal: st.Journal, thread_id: str) -> None:
    journal.create_thread(thread_id)
    reference = journal.put_artifact(f"{_WORDS} {thread_id}".encode(), mime="text/plain")
    journal.append(thread_id, st.user([st.TextPart(text=_WORDS), st.FilePart(artifact=reference)]), id="secret")
    journal.fork(thread_id, new_id=f"{thread_id} fork")
    assert journal.search(_WORDS).hits


def test_an_erasure_whose_connection_is_cut_at_any_step_erases_all(tcp_server: Server) -> None:
    """The journal repeats it: afterwards no table has the text, and the erasure happened once."""
    direct = f"postgresql://postgres@127.0.0.1:{tcp_server.port}/postgres"
    with Proxy(tcp_server.port) as proxy, psycopg.connect(direct, autocommit=True) as connection:
        address = with_options(
            f"postgresql://postgres@127.0.0.1:{proxy.port}/postgres", namespace=f"cut erasures {secrets.token_hex(4)}"
        )
        cuts = 0
        for step in range(0, 100, 1 if IS_DEEP else 9):
            with st.open(address) as journal:
                _fill(journal, f"t{step}")
                proxy.cut_at(after=step % 4 == 0, skip=step)
                assert journal.erase(f"t{step}", ["secret"]).entries == 1
                was_cut = proxy.was_cut.is_set()
                proxy.disarm()
                assert [entry.type for entry in journal.path(f"t{step} fork")] == ["custom"]
                assert _tables_with(connection, _WORDS) == []
                assert journal.check() == []
            cuts += was_cut
            if not was_cut:
                break
        assert cuts > 1


@pytest.mark.deep
def test_an_erasure_goes_on_after_the_server_died(own_server: Server) -> None:
    address = f"postgresql://postgres@127.0.0.1:{own_server.port}/postgres"
    with st.open(address) as journal:
        _fill(journal, "t")
        with suppress(psycopg.OperationalError), psycopg.connect(address) as blocker:
            blocker.execute("SELECT 1 FROM sessiontree.head FOR UPDATE")
            erasing = threading.Thread(target=journal.erase, args=("t", ["secret"]))
            erasing.start()
            with psycopg.connect(address, autocommit=True) as observer:
                waiting = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
                while not observer.execute(waiting).fetchone():
                    pass
            own_server.stop("immediate")
        own_server.start()
        erasing.join(60)
        with psycopg.connect(address, autocommit=True) as connection:
            assert _tables_with(connection, _WORDS) == []
        assert [entry.type for entry in journal.path("t fork")] == ["custom"]
