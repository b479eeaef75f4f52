"""Conversations in bulk for ``postgres_volume.py``: rows as the PostgreSQL store writes them, sent with COPY.

A thread has a title, a workspace, a vendor, a model, a session key and tags; its entries are requests, answers, tool calls
and tool results of pseudo-words whose frequencies follow Zipf's law.
"""

from __future__ import annotations

import random
import secrets
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple
from uuid import UUID

import psycopg

import sessiontree as st
from sessiontree.model.codec import encode_payload, encode_record
from sessiontree.model.ids import IdSource

START_NS = 1_780_000_000_000_000_000
SPAN_NS = 90 * 86_400_000_000_000
MINUTE_NS = 60_000_000_000
VOCABULARY = 50_000
BATCH = 2_000

Row = tuple[Any, ...]
COLUMNS = {
    "home": "id, namespace, tree, named_tree",
    "thread": "tree, key, namespace, id, base, created_ns, is_archived, tree_id, title_folded, workspace, vendor, model,"
    " agent, channel, peer, key_thread, state, status, parent_thread, forked_from_thread, tags, body",
    "head": "tree, id, key, namespace, seq, leaf, previous_leaf, depth, messages, tokens, updated_ns, updated_minute,"
    " touched_minute, moves, fence, last_stamp, indexed_seq, needs_title, version, bytes",
    "entry": "tree, owner, seq, namespace, id, parent, depth, messages, tokens, created_ns, turn_id, body",
}
TYPES = {
    "home": "bytea, text, uuid, uuid",
    "thread": "uuid, int8, text, bytea, bytea, int8, bool" + ", bytea" * 13 + ", bytea[], bytea",
    "head": "uuid, bytea, int8, text, int8, bytea, bytea, int8, int8, int8, int8, int8, int8, int8, int8, int8, int8,"
    " bool, int8, int8",
    "entry": "uuid, int8, int8, text, bytea, bytea, int8, int8, int8, int8, bytea, bytea",
}


class Words:
    """Random texts of a fixed vocabulary; ``ranked[0]`` is its most frequent word."""

    def __init__(self, source: random.Random) -> None:
        self._source = source
        letters = "etaoinshrdlcumwfgypbvk"
        self.ranked = [
            "".join(source.choice(letters) for _ in range(2 + rank.bit_length() // 2)) + f"{rank:x}"
            for rank in range(VOCABULARY)
        ]
        weights = [1 / (rank + 10) for rank in range(VOCABULARY)]
        self._pool = source.choices(self.ranked, weights, k=1_000_000)

    def text(self, average: int) -> str:
        """A text of about that many words."""
        length = max(1, int(self._source.expovariate(1 / average)))
        at = self._source.randrange(len(self._pool) - min(length, len(self._pool)))
        return " ".join(self._pool[at : at + length])


class Loader:
    """Writes threads of one namespace."""

    def __init__(self, seed: int = 7, namespace: str = "") -> None:
        self._source = random.Random(seed)
        self._namespace = namespace
        self.words = Words(self._source)
        self._clock = START_NS
        self._ids = IdSource(lambda: self._clock, self._source.randbytes)
        self._now_minute = 0

    def load(self, url: str, threads: int, entries: int) -> None:
        """Write that many threads of that many entries each."""
        with psycopg.connect(url) as connection:
            row = connection.execute("SELECT extract(epoch FROM now())::bigint / 60").fetchone()
            assert row is not None
            self._now_minute = row[0]
            for first in range(0, threads, BATCH):
                numbers = range(first, min(first + BATCH, threads))
                self._copy(connection, [self._thread(number, threads, entries) for number in numbers])
                connection.commit()

    def _copy(self, connection: psycopg.Connection, written: Sequence[Rows]) -> None:
        for table, columns in COLUMNS.items():
            with (
                connection.cursor() as cursor,
                cursor.copy(f"COPY sessiontree.{table} ({columns}) FROM STDIN (FORMAT binary)") as copy,
            ):
                copy.set_types([name.strip() for name in TYPES[table].split(",")])
                for rows in written:
                    for row in getattr(rows, table):
                        copy.write_row(row)

    def _thread(self, number: int, threads: int, entries: int) -> Rows:
        self._clock = START_NS + SPAN_NS * number // threads
        thread_id = self._ids.new()
        tree, name = UUID(self._ids.new()), thread_id.encode()
        key = self._clock // 1000 * 1000 + secrets.randbelow(1000)
        meta = self._meta(thread_id, number)
        written = list(self._entries(entries, tree, key))
        # Older conversations are continued now and then, so the order of updates is not that of creation.
        updated = self._clock if self._source.random() < 0.8 else START_NS + self._source.randrange(SPAN_NS)
        updated = max(updated, self._clock)
        leaf = written[-1] if written else None
        fields = (
            thread_id, meta.title.casefold(), meta.workspace, meta.vendor, meta.model, meta.key.agent, meta.key.channel,
            meta.key.peer, meta.key.thread, meta.state, meta.status, "", "",
        )  # fmt: skip
        tags = [tag.encode() for tag in meta.tags]
        body = encode_record(meta, "thread")
        space = self._namespace
        return Rows(
            home=[(name, space, tree, tree)],
            thread=[(tree, key, space, name, None, meta.created_ns, meta.is_archived, *map(str.encode, fields), tags, body)],
            head=[(
                tree, name, key, space, key + len(written), leaf and leaf[4], leaf and leaf[5],
                *((leaf[6], leaf[7], leaf[8]) if leaf else (0, 0, 0)), updated, updated // MINUTE_NS, self._now_minute,
                0, 0, 0, key, False, key, sum(len(row[11]) for row in written),
            )],
            entry=written,
        )  # fmt: skip

    def _meta(self, thread_id: str, number: int) -> st.Thread:
        source = self._source
        tags = [
            tag
            for tag, share in (("work", 0.3), ("urgent", 0.01), ("one-in-a-thousand", 0.001))
            if source.random() < share
        ]
        return st.Thread(
            id=thread_id,
            tree=thread_id,
            created_ns=self._clock,
            updated_ns=self._clock,
            title=self.words.text(6)[:80] or "talk",
            title_source="first_message",
            workspace=f"/home/user{int(source.paretovariate(0.5)) % 5_000}/project",
            vendor=source.choices(("openai", "anthropic", "google", "seldom"), (60, 30, 9.99, 0.01))[0],
            model=source.choices(("large", "small"), (70, 30))[0],
            key=st.SessionKey(agent="agent", channel=("mail", "chat")[number % 2], peer=f"peer-{number % 100_000}"),
            status=source.choices(("", "done", "failed"), (80, 19, 1))[0],
            is_archived=source.random() < 0.2,
            tags=tuple(tags),
        )

    def _entries(self, count: int, tree: UUID, key: int) -> Iterator[Row]:
        parent, tokens = None, 0
        for number in range(1, count + 1):
            self._clock += 1_000_000_000
            payload = self._payload(number)
            entry_id, body = self._ids.new().encode(), encode_payload(payload)
            tokens += len(body) // 4
            yield (
                tree,
                key,
                key + number,
                self._namespace,
                entry_id,
                parent,
                number,
                number,
                tokens,
                self._clock,
                b"",
                body,
            )
            parent = entry_id

    def _payload(self, number: int) -> st.Payload:
        match number % 4:
            case 1:
                return st.user(self.words.text(30))
            case 2:
                return st.assistant(self.words.text(10), calls=[st.call(f"c{number}", "bash", '{"command": "ls src"}')])
            case 3:
                return st.tool_result(f"c{number - 1}", self.words.text(120), name="bash")
            case _:
                return st.assistant(self.words.text(80), model="large")


class Rows(NamedTuple):
    """The rows of a thread in each table."""

    home: list[Row]
    thread: list[Row]
    head: list[Row]
    entry: list[Row]
