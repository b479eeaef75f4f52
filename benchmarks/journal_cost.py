"""What the journal costs, next to the raw thing. Both sides alternate within one run, because machines are noisy.

Run with ``make bench``. Every line says the goal and whether this run met it.
"""

from __future__ import annotations

import asyncio
import gc
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

import sessiontree as st
from sessiontree.model.codec import decode_payload, encode_payload

TEXT = "It was the best of times, it was the worst of times. " * 18
ROUNDS = 7
APPENDS = 150


class RawSqlite:
    """The least that one could do: a WAL database in FULL mode, one table, one insert a transaction."""

    def __init__(self, path: Path) -> None:
        self.connection = sqlite3.connect(path, isolation_level=None)
        assert self.connection.execute("PRAGMA journal_mode = wal").fetchone()[0] == "wal"
        self.connection.execute("PRAGMA synchronous = FULL")
        self.connection.execute("CREATE TABLE entry (seq INTEGER PRIMARY KEY, id TEXT UNIQUE, body BLOB)")
        self.count = 0

    def insert(self, body: bytes) -> None:
        self.count += 1
        self.connection.execute("INSERT INTO entry (id, body) VALUES (?, ?)", (f"entry-{self.count:024}", body))


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def per_call(work: Callable[[], object], calls: int) -> float:
    return seconds(lambda: [work() for _ in range(calls)]) / calls


def alternate(
    sides: dict[str, Callable[[], float]],
    middle: Callable[[Sequence[float]], float] = statistics.median,
    rounds: int = ROUNDS,
) -> dict[str, float]:
    """The median of each side, or another middle, over several rounds that are taken turn by turn."""
    taken: dict[str, list[float]] = {name: [] for name in sides}
    gc.collect()
    for _ in range(rounds):
        for name, work in sides.items():
            taken[name].append(work())
    return {name: middle(values) for name, values in taken.items()}


def report(name: str, value: float, goal: str, is_met: bool) -> None:
    print(f"{'ok  ' if is_met else 'MISS'}  {name:<62} {value:8.2f}   goal {goal}")


def one_caller(folder: Path) -> None:
    """Measure two new databases: at first their WALs grow, which costs both sides more, then they are overwritten."""
    raw = RawSqlite(folder / "raw.db")
    entry = st.user(TEXT)
    body = encode_payload(entry)
    with st.open(folder / "one.db") as journal:
        thread = journal.create_thread()
        sides = {
            "raw": lambda: per_call(lambda: raw.insert(body), APPENDS),
            "ours": lambda: per_call(lambda: journal.append(thread.id, entry), APPENDS),
        }
        whole = alternate(sides, statistics.mean)
        steady = alternate(sides, rounds=3 * ROUNDS)
    for name, cost in (("from an empty store on", whole), ("in the steady state", steady)):
        print(f"      one durable append {cost['ours'] * 1e6:.0f} us, raw insert {cost['raw'] * 1e6:.0f} us, {name}")
        ratio = cost["raw"] / cost["ours"]
        report(f"one caller's rate against raw WAL/FULL, {name}", ratio, ">= 0.6", ratio >= 0.6)


def many_tasks(folder: Path) -> None:
    entry = st.user(TEXT)

    async def burst(journal: st.AsyncJournal, threads: list[str], each: int) -> float:
        async def task(thread_id: str) -> None:
            for _ in range(each):
                await journal.append(thread_id, entry)

        start = time.perf_counter()
        await asyncio.gather(*(task(thread_id) for thread_id in threads))
        return len(threads) * each / (time.perf_counter() - start)

    async def run() -> tuple[float, float]:
        async with st.open_async(folder / "tasks.db") as journal:
            threads = [(await journal.create_thread()).id for _ in range(64)]
            with st.open(folder / "single.db") as single:
                thread = single.create_thread()
                many, one = [], []
                for _ in range(ROUNDS):
                    many.append(await burst(journal, threads, 40))
                    one.append(1 / per_call(lambda: single.append(thread.id, entry), APPENDS))
                return statistics.median(many), statistics.median(one)

    many, one = asyncio.run(run())
    print(f"      64 tasks {many:.0f}/s, one caller {one:.0f}/s")
    report("64 asyncio tasks against one caller", many / one, ">= 8", many / one >= 8)


def long_and_wide(folder: Path) -> None:
    entry = st.user(TEXT)
    with (
        st.open(folder / "empty.db") as empty,
        st.open(folder / "long.db", durability="process_crash") as filling,
        st.open(folder / "wide.db", durability="process_crash") as widening,
    ):
        start = empty.create_thread()
        long = filling.create_thread(id="long")
        for _ in range(100):
            filling.append_many(long.id, [entry] * 1000)
        for number in range(100_000):
            widening.create_thread(id=f"thread-{number}")
    with (
        st.open(folder / "empty.db") as empty,
        st.open(folder / "long.db") as long_store,
        st.open(folder / "wide.db") as wide_store,
    ):
        first, second = (iter(range(0, 100_000, 7)) for _ in range(2))
        sides = {
            "empty": lambda: per_call(lambda: empty.append(start.id, entry), APPENDS),
            "long": lambda: per_call(lambda: long_store.append("long", entry), APPENDS),
            "title": lambda: per_call(lambda: wide_store.append(f"thread-{next(first)}", entry), APPENDS),
            "wide": lambda: per_call(lambda: wide_store.append(f"thread-{next(second)}", entry), APPENDS),
            "fork": lambda: per_call(lambda: long_store.fork("long"), 20),
        }
        cost = alternate(sides, rounds=3 * ROUNDS)
        for name, what in (("long", "append to a thread of 100,000 entries"), ("wide", "append among 100,000 threads")):
            ratio = cost[name] / cost["empty"]
            report(f"{what} against an empty store", ratio, "<= 1.2", ratio <= 1.2)
        ratio = cost["title"] / cost["empty"]
        report("first text of a user among them, which makes the title", ratio, "<= 1.5", ratio <= 1.5)
        ratio = cost["fork"] / cost["long"]
        report("fork of a 100,000-entry thread against one append", ratio, "<= 2", ratio <= 2)
        page = alternate({"page": lambda: seconds(wide_store.list_threads)})["page"]
        print(f"      first page of 100,000 threads: {page * 1e3:.1f} ms")


def path_read(folder: Path) -> None:
    raw = RawSqlite(folder / "rawpath.db")
    body = encode_payload(st.user(TEXT))
    raw.connection.execute("BEGIN")
    for _ in range(10_000):
        raw.insert(body)
    raw.connection.execute("COMMIT")
    decode = msgspec.json.Decoder(type(decode_payload(body))).decode

    def scan() -> object:
        return [decode(row[0]) for row in raw.connection.execute("SELECT body FROM entry ORDER BY seq")]

    with st.open(folder / "path.db", durability="process_crash") as journal:
        thread = journal.create_thread()
        for _ in range(10):
            journal.append_many(thread.id, [st.user(TEXT)] * 1000)
        cost = alternate({"raw": lambda: seconds(scan), "ours": lambda: seconds(lambda: journal.path(thread.id))})
    print(f"      path of 10,000 {cost['ours'] * 1e3:.1f} ms, raw scan plus decode {cost['raw'] * 1e3:.1f} ms")
    ratio = cost["ours"] / cost["raw"]
    report("path of 10,000 entries against a raw scan plus decode", ratio, "<= 2.5", ratio <= 2.5)


def import_time() -> None:
    script = "import time; t = time.perf_counter(); import sessiontree; print(time.perf_counter() - t)"
    taken = [float(subprocess.check_output([sys.executable, "-c", script])) for _ in range(9)]
    value = statistics.median(taken) * 1e3
    report("import sessiontree, milliseconds", value, "< 100", value < 100)


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        one_caller(folder)
        many_tasks(folder)
        path_read(folder)
        long_and_wide(folder)
    import_time()


if __name__ == "__main__":
    main()
