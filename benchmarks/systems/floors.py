"""The least that one could do with the same storage: what the peers and sessiontree stand on."""

from __future__ import annotations

import contextlib
import os
import secrets
import sqlite3
import threading
import time
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
import psycopg

import sessiontree as st
from benchmarks import postgres
from benchmarks.system import System
from sessiontree.model.codec import decode_payload, encode_payload


class PlainFile(System):
    """One line, one fdatasync."""

    name = "write + fdatasync"
    family = "floor"

    def open(self) -> None:
        self.file = os.open(self.folder / "lines.jsonl", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def close(self) -> None:
        os.close(self.file)

    def fill(self, chat: str, messages: Sequence[str]) -> None:
        os.write(self.file, b"".join(_line(message) for message in messages))

    def append(self, chat: str, message: str) -> None:
        os.write(self.file, _line(message))
        os.fdatasync(self.file)

    def read(self, chat: str) -> Any:
        lines = (self.folder / "lines.jsonl").read_bytes().splitlines()
        return [decode_payload(line) for line in lines]


class RawSqlite(System):
    """A WAL database in FULL mode, one table, one insert a transaction; a connection for each thread."""

    name = "sqlite3 WAL FULL"
    most_chats = 100_000
    family = "floor"
    most_processes = 64
    insert = "INSERT INTO entry (chat, id, created_ns, body) VALUES (?, ?, ?, ?)"

    def open(self) -> None:
        self.here = threading.local()
        self.connection.execute(
            "CREATE TABLE IF NOT EXISTS entry"
            " (seq INTEGER PRIMARY KEY, chat TEXT, id TEXT UNIQUE, created_ns INTEGER, body BLOB)"
        )
        self.connection.execute("CREATE INDEX IF NOT EXISTS by_chat ON entry (chat, seq)")
        self.connection.execute("CREATE TABLE IF NOT EXISTS chat (id TEXT PRIMARY KEY, updated_ns INTEGER, body BLOB)")
        self.connection.execute("CREATE INDEX IF NOT EXISTS by_time ON chat (updated_ns)")

    @property
    def connection(self) -> sqlite3.Connection:
        found = getattr(self.here, "connection", None)
        if found is None:
            found = self.here.connection = sqlite3.connect(
                self.folder / "raw.db", isolation_level=None, timeout=60, check_same_thread=False
            )
            assert found.execute("PRAGMA journal_mode = wal").fetchone()[0] == "wal"
            found.execute(f"PRAGMA synchronous = {'OFF' if self.is_filling else 'FULL'}")
        return found

    def close(self) -> None:
        self.connection.close()

    def fill(self, chat: str, messages: Sequence[str]) -> None:
        self.connection.execute("BEGIN")
        self.connection.executemany(self.insert, [_row(chat, message) for message in messages])
        now = time.time_ns()
        body = msgspec.json.encode(st.Thread(id=chat, tree=chat, created_ns=now, updated_ns=now, title="A chat"))
        self.connection.execute("INSERT OR REPLACE INTO chat VALUES (?, ?, ?)", (chat, now, body))
        self.connection.execute("COMMIT")

    def append(self, chat: str, message: str) -> None:
        self.connection.execute(self.insert, _row(chat, message))

    def last(self, chat: str, count: int) -> Any:
        rows = self.connection.execute(
            "SELECT id, created_ns, body FROM entry WHERE chat = ? ORDER BY seq DESC LIMIT ?", (chat, count)
        ).fetchall()
        return _entries(chat, reversed(rows))

    def read(self, chat: str) -> Any:
        return _entries(
            chat, self.connection.execute("SELECT id, created_ns, body FROM entry WHERE chat = ? ORDER BY seq", (chat,))
        )

    def list_chats(self, count: int) -> Any:
        """The last changed chats, from a table that only this case fills."""
        rows = self.connection.execute("SELECT body FROM chat ORDER BY updated_ns DESC LIMIT ?", (count,))
        return [_thread_decoder.decode(body) for (body,) in rows]


class RawPostgres(System):
    """What psycopg does by itself: INSERT and commit, three round trips; a connection for each thread."""

    name = "psycopg INSERT + commit"
    family = "floor"
    packages = ("psycopg",)
    is_remote = True
    most_processes = 8
    is_autocommit = False
    insert = "INSERT INTO entry (chat, id, created_ns, body) VALUES (%s, %s, %s, %s)"

    def open(self) -> None:
        self.url = postgres.database(self.folder)
        self.here = threading.local()
        # Two processes that create a table at the same time can fail although both say IF NOT EXISTS.
        with contextlib.suppress(psycopg.errors.UniqueViolation), psycopg.connect(self.url) as connection:
            connection.execute(
                "CREATE TABLE IF NOT EXISTS entry (seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,"
                " chat text, id text UNIQUE, created_ns bigint, body bytea)"
            )
            connection.execute("CREATE INDEX IF NOT EXISTS by_chat ON entry (chat, seq)")

    @property
    def connection(self) -> psycopg.Connection:
        found = getattr(self.here, "connection", None)
        if found is None:
            found = self.here.connection = psycopg.connect(self.url, autocommit=self.is_autocommit)
        return found

    def close(self) -> None:
        self.connection.close()

    def fill(self, chat: str, messages: Sequence[str]) -> None:
        self.connection.cursor().executemany(self.insert, [_row(chat, message) for message in messages])
        self.connection.commit()

    def append(self, chat: str, message: str) -> None:
        self.connection.execute(self.insert, _row(chat, message))
        if not self.is_autocommit:
            self.connection.commit()

    def last(self, chat: str, count: int) -> Any:
        rows = self.connection.execute(
            "SELECT id, created_ns, body FROM entry WHERE chat = %s ORDER BY seq DESC LIMIT %s",
            (chat, count),
            binary=True,
        ).fetchall()
        self.connection.commit()
        return _entries(chat, reversed(rows))

    def read(self, chat: str) -> Any:
        rows = self.connection.execute(
            "SELECT id, created_ns, body FROM entry WHERE chat = %s ORDER BY seq", (chat,), binary=True
        ).fetchall()
        self.connection.commit()
        return _entries(chat, rows)

    def bytes_on_disk(self) -> int:
        return postgres.database_bytes(self.url)


class LeastPostgres(RawPostgres):
    """One round trip: INSERT in autocommit mode."""

    name = "psycopg autocommit"
    is_autocommit = True


def _body(message: str) -> bytes:
    return encode_payload(st.user(message))


def _line(message: str) -> bytes:
    return _body(message) + b"\n"


def _row(chat: str, message: str) -> tuple[str, str, int, bytes]:
    return chat, secrets.token_hex(18), time.time_ns(), _body(message)


def _entries(chat: str, rows: Iterable[tuple[str, int, bytes]]) -> list[st.Entry]:
    """The typed entries that sessiontree returns, in which each one is the parent of the next."""
    found: list[st.Entry] = []
    parent: str | None = None
    for entry_id, created_ns, body in rows:
        payload = decode_payload(body)
        found.append(st.Entry(id=entry_id, thread_id=chat, parent=parent, created_ns=created_ns, payload=payload))
        parent = entry_id
    return found


_thread_decoder = msgspec.json.Decoder(st.Thread)

SYSTEMS = [PlainFile, RawSqlite, RawPostgres, LeastPostgres]
