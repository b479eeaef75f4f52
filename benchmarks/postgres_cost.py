"""What the journal costs on PostgreSQL, next to raw psycopg. Both sides alternate within one run.

Run with ``python benchmarks/postgres_cost.py``; ``SESSIONTREE_TEST_DSN`` names a server, otherwise one is started.
Every line says the goal and whether this run met it. Raw is what psycopg does by itself: ``execute(INSERT)`` and
``commit()``, three round trips. Beside it stands the least that is possible, one round trip in autocommit mode.
"""

from __future__ import annotations

import multiprocessing
import secrets
import statistics
import sys
import threading
import time
from collections.abc import Callable
from multiprocessing.synchronize import Barrier
from pathlib import Path

import psycopg

from journal_cost import TEXT, alternate, per_call, report, seconds

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
import sessiontree as st
from postgres_server import new_database
from sessiontree.model.codec import decode_payload, encode_payload

APPENDS = 200
WORKERS = 8
BURST_SECONDS = 1.5
BURSTS = 5
BODY = encode_payload(st.user(TEXT))


def raw_connection(url: str) -> psycopg.Connection:
    return psycopg.connect(url, autocommit=True)


def plain_connection(url: str) -> psycopg.Connection:
    return psycopg.connect(url)


def raw_insert(connection: psycopg.Connection) -> None:
    connection.execute("INSERT INTO raw (id, body) VALUES (%s, %s)", (secrets.token_hex(18), BODY))
    if not connection.autocommit:
        connection.commit()


def make_raw_table(url: str) -> None:
    with raw_connection(url) as connection:
        connection.execute(
            "CREATE TABLE raw (seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, id text UNIQUE, body bytea)"
        )


def one_caller(url: str) -> None:
    with plain_connection(url) as plain, raw_connection(url) as least, st.open(url) as journal:
        thread = journal.create_thread()
        sides = {
            "raw": lambda: per_call(lambda: raw_insert(plain), APPENDS),
            "least": lambda: per_call(lambda: raw_insert(least), APPENDS),
            "ours": lambda: per_call(lambda: journal.append(thread.id, st.user(TEXT)), APPENDS),
        }
        alternate(sides, rounds=2)
        cost = alternate(sides, rounds=9)
    print(
        f"      one durable append {cost['ours'] * 1e6:.0f} us, raw INSERT + commit {cost['raw'] * 1e6:.0f} us, "
        f"in autocommit mode {cost['least'] * 1e6:.0f} us ({cost['least'] / cost['ours']:.2f})"
    )
    ratio = cost["raw"] / cost["ours"]
    report("one caller's append rate against a raw INSERT and commit", ratio, ">= 0.7", ratio >= 0.7)


def raw_worker(url: str, start: Barrier, counts: multiprocessing.Queue[int]) -> None:
    with plain_connection(url) as connection:
        burst(lambda: raw_insert(connection), start, counts)


def least_worker(url: str, start: Barrier, counts: multiprocessing.Queue[int]) -> None:
    with raw_connection(url) as connection:
        burst(lambda: raw_insert(connection), start, counts)


def our_worker(url: str, start: Barrier, counts: multiprocessing.Queue[int]) -> None:
    with st.open(url) as journal:
        thread = journal.create_thread()
        burst(lambda: journal.append(thread.id, st.user(TEXT)), start, counts)


def burst(work: Callable[[], object], start: Barrier, counts: multiprocessing.Queue[int]) -> None:
    """Work as long as the parent says, once for each meeting at the barrier."""
    for _ in range(20):
        work()
    for _ in range(BURSTS):
        start.wait()
        count, end = 0, time.perf_counter() + BURST_SECONDS
        while time.perf_counter() < end:
            work()
            count += 1
        counts.put(count)
        start.wait()


def eight_connections(url: str) -> None:
    """Eight processes with one connection each; the raw ones and ours take turns."""
    fork = multiprocessing.get_context("spawn")
    crews = {}
    for name, worker in (("raw", raw_worker), ("least", least_worker), ("ours", our_worker)):
        start, counts = fork.Barrier(WORKERS + 1), fork.Queue()
        crew = [fork.Process(target=worker, args=(url, start, counts)) for _ in range(WORKERS)]
        for process in crew:
            process.start()
        crews[name] = crew, start, counts
    rates: dict[str, list[float]] = {name: [] for name in crews}
    for _ in range(BURSTS):
        for name, (_, start, counts) in crews.items():
            start.wait()
            rates[name].append(sum(counts.get() for _ in range(WORKERS)) / BURST_SECONDS)
            start.wait()
    for crew, _, _ in crews.values():
        for process in crew:
            process.join()
    raw, least, ours = (statistics.median(rates[name]) for name in ("raw", "least", "ours"))
    print(
        f"      {WORKERS} connections: {ours:.0f} appends/s, raw INSERT + commit {raw:.0f}/s, "
        f"in autocommit mode {least:.0f}/s ({ours / least:.2f})"
    )
    report(f"{WORKERS} connections against {WORKERS} raw ones", ours / raw, ">= 0.7", ours / raw >= 0.7)


def path_read(url: str) -> None:
    with raw_connection(url) as connection, st.open(url) as journal:
        connection.execute("CREATE TABLE raw_path (seq bigint PRIMARY KEY, body bytea)")
        connection.execute("INSERT INTO raw_path SELECT n, %s FROM generate_series(1, 10000) n", (BODY,))
        thread = journal.create_thread()
        for _ in range(10):
            journal.append_many(thread.id, [st.user(TEXT)] * 1000)
        connection.execute("VACUUM ANALYZE")

        def scan() -> list[object]:
            rows = connection.execute("SELECT body FROM raw_path ORDER BY seq", binary=True)
            return [decode_payload(body) for (body,) in rows]

        sides = {"raw": lambda: seconds(scan), "ours": lambda: seconds(lambda: journal.path(thread.id))}
        cost = alternate(sides, rounds=11)
    print(f"      path of 10,000 {cost['ours'] * 1e3:.1f} ms, raw scan plus decode {cost['raw'] * 1e3:.1f} ms")
    ratio = cost["ours"] / cost["raw"]
    report("path of 10,000 entries against a raw range scan plus decode", ratio, "<= 2", ratio <= 2)


def other_verbs(url: str) -> None:
    """What else a planner of capacity wants to know."""
    with st.open(url) as journal:
        thread = journal.create_thread()
        entry = journal.append(thread.id, st.user(TEXT))
        verbs: dict[str, Callable[[], object]] = {
            "append_many of 100": lambda: journal.append_many(thread.id, [st.user(TEXT)] * 100),
            "create_thread": journal.create_thread,
            "fork": lambda: journal.fork(thread.id, at=entry.id),
            "acquire and release a lease": lambda: journal.release_lease(journal.acquire_lease(thread.id, owner="o")),
            "thread": lambda: journal.thread(thread.id),
            "path, newest 50": lambda: journal.path(thread.id, limit=50),
            "list_threads, 50": journal.list_threads,
        }
        for name, verb in verbs.items():
            print(f"      {name:<32} {statistics.median(per_call(verb, 10) for _ in range(7)) * 1e6:8.0f} us")


def threads_of_one_process(url: str) -> None:
    with st.open(url) as journal:
        threads = [journal.create_thread().id for _ in range(WORKERS)]

        def work(thread_id: str) -> None:
            for _ in range(100):
                journal.append(thread_id, st.user(TEXT))

        workers = [threading.Thread(target=work, args=(name,)) for name in threads]
        taken = seconds(lambda: ([w.start() for w in workers], [w.join() for w in workers]))
    print(f"      {WORKERS} threads of one process: {WORKERS * 100 / taken:.0f} appends/s")


def main() -> None:
    url = new_database()
    make_raw_table(url)
    one_caller(url)
    path_read(url)
    eight_connections(url)
    other_verbs(url)
    threads_of_one_process(url)


if __name__ == "__main__":
    main()
