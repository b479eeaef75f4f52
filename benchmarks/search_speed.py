"""Search and lists at size: how fast the index is filled, how fast it answers, how soon a list appears.

python benchmarks/search_speed.py                 # 1,000,000 messages, 100,000 threads
python benchmarks/search_speed.py --messages 50000 --threads 5000
"""

import argparse
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import sessiontree as st

QUERIES = 200
WORDS_PER_MESSAGE = 40
VOCABULARY = 50_000


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--messages", type=int, default=1_000_000)
    parser.add_argument("--threads", type=int, default=100_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        measure_search(Path(folder) / "search.db", options.messages)
        measure_lists(Path(folder) / "lists.db", options.threads)
        measure_start(Path(folder) / "start.db", 10_000)


def measure_search(path: Path, messages: int) -> None:
    source = random.Random(7)
    vocabulary = [f"{source.choice('bcdfglmnprst')}{number:x}" for number in range(VOCABULARY)]
    weights = [1 / (rank + 10) for rank in range(VOCABULARY)]
    with st.open(path, durability="process_crash") as journal:
        write(journal, messages, source, vocabulary, weights)
        wall, cpu = timed(lambda: journal.search("nothing"))
        print(f"indexing        {messages / wall:10,.0f} messages/s ({messages / cpu:,.0f} per second of CPU)")
        for name, texts in question_sets(source, vocabulary, weights).items():
            report(name, [timed(lambda text=text: journal.search(text)) for text in texts])
        thread = journal.list_threads(limit=1).threads[0].id
        journal.append(thread, st.user("one more message"))
        print(f"after an append {1000 * timed(lambda: journal.search('nothing'))[0]:10.2f} ms")


def write(
    journal: st.Journal, messages: int, source: random.Random, vocabulary: list[str], weights: list[float]
) -> None:
    start = time.perf_counter()
    pool = source.choices(vocabulary, weights, k=2_000_000)
    for _ in range(0, messages, 1000):
        thread = journal.create_thread().id
        starts = [source.randrange(len(pool) - WORDS_PER_MESSAGE) for _ in range(1000)]
        journal.append_many(thread, [st.user(" ".join(pool[at : at + WORDS_PER_MESSAGE])) for at in starts])
    print(f"writing         {messages / (time.perf_counter() - start):10,.0f} messages/s")


def question_sets(source: random.Random, vocabulary: list[str], weights: list[float]) -> dict[str, list[str]]:
    def typical() -> str:
        return source.choices(vocabulary, weights)[0]

    return {
        "one word": [typical() for _ in range(QUERIES)],
        "two words": [f"{typical()} {typical()}" for _ in range(QUERIES)],
        "phrase": [f'"{typical()} {typical()}"' for _ in range(QUERIES)],
        "prefix": [f"{typical()[:4]}*" for _ in range(QUERIES)],
        "filtered": [f"{typical()} role:user after:1d" for _ in range(QUERIES)],
        "rare word": [source.choice(vocabulary[-10_000:]) for _ in range(QUERIES)],
        "most common": vocabulary[:20],
    }


def measure_lists(path: Path, threads: int) -> None:
    with st.open(path, durability="process_crash") as journal:
        for number in range(threads):
            journal.create_thread(title=f"conversation {number}", tags=("work",) if number % 3 else ())
        report(f"first page of {threads:,} threads", [timed(journal.list_threads) for _ in range(20)])


def measure_start(path: Path, threads: int) -> None:
    with st.open(path, durability="process_crash") as journal:
        for number in range(threads):
            journal.create_thread(title=f"conversation {number}")
    ours, imports = [], []
    command = [sys.executable, "-c", "from sessiontree.cli import main; main()", "--store", str(path), "ls"]
    for _ in range(15):
        imports.append(timed(lambda: subprocess.run([sys.executable, "-c", "import click, rich"], check=True))[0])
        ours.append(timed(lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL))[0])
    ratio = statistics.median(ours) / statistics.median(imports)
    print(
        f"start-up        ls {1000 * statistics.median(ours):.0f} ms, "
        f"import click, rich {1000 * statistics.median(imports):.0f} ms: {ratio:.2f}x"
    )


def timed(work) -> tuple[float, float]:
    """Seconds on the clock, and of CPU: on a busy machine only the second one says something."""
    start, cpu = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - start, time.process_time() - cpu


def report(name: str, seconds: list[tuple[float, float]]) -> None:
    wall, cpu = (sorted(column) for column in zip(*seconds, strict=True))
    middle, last = len(wall) // 2, int(len(wall) * 0.99)
    print(
        f"{name:15} p50 {1000 * wall[middle]:8.2f} ms (CPU {1000 * cpu[middle]:.2f})"
        f"   p99 {1000 * wall[last]:8.2f} ms (CPU {1000 * cpu[last]:.2f})"
    )


if __name__ == "__main__":
    main()
