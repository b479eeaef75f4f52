"""One of two processes: producers append to shared threads while a compactor compacts them."""

import sys
import threading
import time
from functools import partial
from pathlib import Path

import sessiontree as st

POLICY = st.CompactionPolicy(window_tokens=6_000, keep_recent_tokens=500, summary_tokens=200)


def main(url: str, name: str, threads: int, producers: int, messages: int, log: str) -> None:
    with st.open(url, durability="process_crash") as journal:
        print("ready", flush=True)
        sys.stdin.readline()
        still = threading.Event()
        workers = [
            threading.Thread(target=produce, args=(journal, name, number, threads, messages))
            for number in range(producers)
        ]
        compactor = threading.Thread(target=compact, args=(journal, threads, log, still))
        for worker in [*workers, compactor]:
            worker.start()
        for worker in workers:
            worker.join()
        still.set()
        compactor.join()
    print("done", flush=True)


def produce(journal: st.Journal, name: str, number: int, threads: int, messages: int) -> None:
    for message in range(messages):
        thread_id = f"t{(number + message) % threads}"
        journal.append(thread_id, st.user("words " * 60), id=f"{name}-{number}-{message}")


def compact(journal: st.Journal, threads: int, log: str, still: threading.Event) -> None:
    installed = 0
    while not still.is_set():
        for number in range(threads):
            thread_id = f"t{number}"
            try:
                result = journal.compact(
                    thread_id, partial(slow_summary, journal, thread_id, log, still), policy=POLICY
                )
            except st.CompactionClaimedError:
                continue
            installed += result.is_installed
    print(installed, flush=True)


def slow_summary(
    journal: st.Journal, thread_id: str, log: str, still: threading.Event, _request: st.SummaryRequest
) -> str:
    """A model takes its time: here until somebody else has appended, so that every compaction is overtaken."""
    began = time.monotonic_ns()
    entries = journal.thread(thread_id).entries
    while not still.is_set() and journal.thread(thread_id).entries < entries + 3:
        still.wait(0.001)
    with Path(log).open("a", encoding="utf-8") as file:
        file.write(f"{thread_id} {began} {time.monotonic_ns()}\n")
    return "What was said so far."


if __name__ == "__main__":
    url, name, threads, producers, messages, log = sys.argv[1:]
    main(url, name, int(threads), int(producers), int(messages), log)
