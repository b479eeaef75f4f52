"""One PostgreSQL server at volume: builds the data, measures the verbs, writes the table of ``docs/explanation/capacity.md``.

python benchmarks/postgres_volume.py                    # 20,000 threads of 50 entries, then 1,000,000 threads of one
python benchmarks/postgres_volume.py --scale 0.01       # the same, a hundredth of it
python benchmarks/postgres_volume.py --write            # and writes the table
python benchmarks/postgres_volume.py --index-seconds 60 # indexes for a minute at most before words are searched

``SESSIONTREE_TEST_DSN`` names a server, otherwise one with 512 MB of buffers is started and removed. The data take 5 GB.
Besides the time by the clock, the CPU time of client and server is shown, which other programs on the machine change less.
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import psycopg

sys.path.insert(0, str(Path(__file__).parent.parent))
sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
import sessiontree as st
from benchmarks.volume_data import START_NS, Loader
from postgres_server import Server

PAGE = Path(__file__).parent.parent / "docs" / "explanation" / "capacity.md"
MARK = re.compile(r"(<!-- volume -->\n).*?(<!-- end of volume -->)", re.DOTALL)
SETTINGS = ("shared_buffers = 512MB", "max_wal_size = 4GB", "work_mem = 16MB", "maintenance_work_mem = 256MB")
ROUNDS = 11
DAY_NS = 86_400_000_000_000


class Cost(NamedTuple):
    """The medians of a verb, in milliseconds."""

    wall: float
    cpu: float


class Clock:
    """Measures calls of a journal with one connection."""

    def __init__(self, url: str) -> None:
        self.journal = st.open(f"{url}?pool_size=1")
        self.journal.list_threads(limit=1)
        others = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        with psycopg.connect(url) as connection:
            pids = connection.execute(f"{others} AND backend_type = 'client backend'").fetchall()
        self._server = [Path(f"/proc/{pid}/schedstat") for (pid,) in pids]

    def median(self, work: Callable[[], object], rounds: int = ROUNDS) -> Cost:
        wall, cpu = zip(*(self._once(work) for _ in range(rounds)), strict=True)
        return Cost(statistics.median(wall), statistics.median(cpu))

    def _once(self, work: Callable[[], object]) -> tuple[float, float]:
        start, busy = time.perf_counter(), self._cpu()
        work()
        return 1e3 * (time.perf_counter() - start), 1e3 * (self._cpu() - busy)

    def _cpu(self) -> float:
        total = time.process_time()
        with suppress(OSError):  # another machine, or another kind of system
            total += sum(int(path.read_text().split()[0]) for path in self._server) / 1e9
        return total


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--index-seconds", type=float, default=600.0)
    options = parser.parse_args()
    shapes = [(int(20_000 * options.scale), 50), (int(1_000_000 * options.scale), 1)]
    with server() as address:
        columns = [measured(address, threads, entries, options.index_seconds) for threads, entries in shapes]
    heads = [f"{threads:,} threads, {threads * entries:,} entries" for threads, entries in shapes]
    table = table_of(heads, columns)
    print(table)
    if options.write:
        PAGE.write_text(MARK.sub(lambda found: f"{found[1]}{table}{found[2]}", PAGE.read_text()))


@contextmanager
def server() -> Iterator[str]:
    """The address of a server, without a database."""
    given = os.environ.get("SESSIONTREE_TEST_DSN")
    if given:
        yield given.rpartition("/")[0]
        return
    started = Server.create(*SETTINGS)
    try:
        yield started.url.rpartition("/")[0]
    finally:
        started.remove()


def measured(address: str, threads: int, entries: int, index_seconds: float) -> dict[str, str]:
    """Build a database and measure it; every line of the table and its text."""
    name = f"volume_{threads}_{entries}"
    with psycopg.connect(f"{address}/postgres", autocommit=True) as connection:
        connection.execute(f"DROP DATABASE IF EXISTS {name}")
        connection.execute(f"CREATE DATABASE {name}")
    url = f"{address}/{name}"
    st.open(url).close()
    loader = Loader()
    start = time.perf_counter()
    loader.load(url, threads, entries)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE")
    print(f"loaded {threads:,} threads in {time.perf_counter() - start:.0f} s", flush=True)
    lines = {**verbs(url, loader), **searches(url, loader, index_seconds), **sizes(url, threads, threads * entries)}
    for line, value in lines.items():
        print(f"  {line:<50} {value}", flush=True)
    return lines


def verbs(url: str, loader: Loader) -> dict[str, str]:
    clock = Clock(url)
    journal = clock.journal
    page = journal.list_threads(limit=200)
    ids = [thread.id for thread in page.threads]
    deep = journal.list_threads(limit=1, updated_before_ns=START_NS + 45 * DAY_NS).cursor
    word = loader.words.ranked[30]
    lists: dict[str, st.ThreadFilters] = {
        "list, by update": {},
        "list, by creation": {"order": "created"},
        "list, page in the middle": {"cursor": deep},
        "list, a workspace of a third of the threads": {"workspace": "/home/user1/project"},
        "list, a tag of 1 %": {"tags": ("urgent",)},
        "list, a tag of 0.1 %": {"tags": ("one-in-a-thousand",)},
        "list, a vendor of 0.01 %": {"vendor": "seldom"},
        "list, empty threads": {"is_empty": True},
        "list, a part of titles": {"title_contains": word},
        "list, a part that no title has": {"title_contains": "no title has this"},
    }
    costs = {line: clock.median(partial(journal.list_threads, **query)) for line, query in lists.items()}
    fresh = iter(ids)
    costs["thread"] = clock.median(lambda: journal.thread(next(fresh)))
    costs["path"] = clock.median(lambda: journal.path(next(fresh)))
    costs["append"] = clock.median(lambda: journal.append(ids[0], st.user("one more")))
    costs["fork"] = clock.median(lambda: journal.fork(ids[1]))
    costs["delete"] = clock.median(lambda: journal.delete_thread(ids.pop()))
    costs["stats"] = clock.median(journal.stats, 5)
    journal.close()
    return {line: f"{cost.wall:,.1f} ms ({cost.cpu:,.1f})" for line, cost in costs.items()}


def search_next(journal: st.Journal, queries: Iterator[str]) -> None:
    journal.search(next(queries))


def searches(url: str, loader: Loader, index_seconds: float) -> dict[str, str]:
    clock = Clock(url)
    journal, words = clock.journal, loader.words.ranked
    lines: dict[str, str] = {}
    first = clock.median(lambda: journal.search(words[1000]), 3)
    lines["search while nothing is indexed"] = f"{first.wall:,.0f} ms ({first.cpu:,.0f})"
    start, busy, left = time.perf_counter(), time.process_time(), 1
    while left and time.perf_counter() < start + index_seconds:
        left = journal.search("nothing", limit=1).unsearched
    spent = f"{time.perf_counter() - start:,.0f} s (client {time.process_time() - busy:,.0f})"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE sessiontree.search_block")
        lines["indexed before words are searched"] = f"{indexed(connection):,} entries in {spent}"
    for line, chosen in (
        ("search, a frequent word", words[:ROUNDS]),
        ("search, a word of 1 in 1,000", words[1000 : 1000 + ROUNDS]),
        ("search, a rare word", words[40_000 : 40_000 + ROUNDS]),
        ("search, a phrase", [f'"{first} {second}"' for first, second in pairwise(words[: ROUNDS + 1])]),
        ("search, a prefix", [f"{word[:4]}*" for word in words[300 : 300 + ROUNDS]]),
    ):
        cost = clock.median(partial(search_next, journal, iter(chosen)), len(chosen))
        lines[line] = f"{cost.wall:,.0f} ms ({cost.cpu:,.0f})"
    journal.append(journal.list_threads(limit=1).threads[0].id, st.user("one more"))
    after = clock.median(lambda: journal.search("nothing"), 1)
    lines["search, after an append"] = f"{after.wall:,.0f} ms ({after.cpu:,.0f})"
    journal.close()
    return lines


def indexed(connection: psycopg.Connection) -> int:
    row = connection.execute(
        "SELECT coalesce(sum(last_seq - first_seq + 1), 0)::bigint FROM sessiontree.search_block"
    ).fetchone()
    return int(row[0]) if row else 0


def sizes(url: str, threads: int, entries: int) -> dict[str, str]:
    total = "SELECT sum(pg_total_relation_size('sessiontree.' || name)) FROM unnest(%s::text[]) AS t (name)"
    with psycopg.connect(url) as connection:

        def size(*tables: str) -> int:
            row = connection.execute(total, [list(tables)]).fetchone()
            return int(row[0]) if row else 0

        return {
            "disk for a thread without entries": f"{size('home', 'thread', 'head') / threads:,.0f} bytes",
            "disk for an entry": f"{size('entry') / entries:,.0f} bytes",
            "disk for the search index of an entry": f"{size('search_block') / max(1, indexed(connection)):,.0f} bytes",
        }


def table_of(heads: list[str], columns: list[dict[str, str]]) -> str:
    lines = [f"| | {' | '.join(heads)} |", "|---|" + "---|" * len(heads)]
    lines += [f"| {line} | " + " | ".join(column[line] for column in columns) + " |" for line in columns[0]]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
