"""What the viewer takes: first paint, search while one types, live entries, many open pages. Needs `make test-browser`'s packages.

python benchmarks/viewer.py --threads STORE --long STORE     stores as `--make` writes them; see docs/howto/see-it-in-the-browser.md
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

import sessiontree as st

CHROMIUM = "/usr/bin/chromium"
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
WORDS = Path(__file__).read_text(encoding="utf-8").split()


def make_threads(path: Path, threads: int) -> None:
    """Write a store with threads of ten messages each, and its index."""
    with st.open(path, durability="process_crash") as journal:
        for number in range(threads):
            said = [WORDS[(7 * number + at) % len(WORDS)] for at in range(200)]
            contents = [st.user(" ".join(said[20 * at : 20 * at + 20])) for at in range(10)]
            journal.create_thread(f"t{number}", title=f"Talk {number} about {said[0]}", contents=contents)
        journal.search("journal")


def make_long(path: Path, entries: int) -> None:
    """Write a thread of many entries."""
    with st.open(path, durability="process_crash") as journal:
        journal.create_thread("long", title="A long conversation")
        for start in range(0, entries, 2000):
            some = range(start, min(start + 2000, entries))
            journal.append_many(
                "long", [st.user(f"question {at}") if at % 20 == 0 else st.assistant(f"answer {at}") for at in some]
            )


@contextmanager
def serving(store: Path) -> Iterator[tuple[str, str, int]]:
    """The address, the token and the process of a viewer."""
    command = [sys.executable, "-m", "sessiontree", "web", "--no-open", "--store", str(store)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        base, _, token = process.stdout.readline().strip().partition("/?token=")
        try:
            yield base, token, process.pid
        finally:
            process.terminate()


def p95(values: list[float]) -> float:
    return statistics.quantiles(values, n=20)[-1] if len(values) > 1 else values[0]


def memory(pid: int) -> float:
    """The resident memory of a process, in MB."""
    lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    return int(next(line for line in lines if line.startswith("VmRSS")).split()[1]) / 1000


def first_paint(store: Path, path: str, rounds: int) -> None:
    from playwright.sync_api import sync_playwright  # noqa: PLC0415  only `make test-browser` installs it

    paints, servers = [], []
    with serving(store) as (base, token, _), sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        for _ in range(rounds):
            context = browser.new_context(viewport={"width": 1600, "height": 1000})
            page = context.new_page()
            page.goto(f"{base}/healthz")
            page.goto(f"{base}/?token={token}", wait_until="commit")
            page.goto(f"{base}{path}")
            page.wait_for_timeout(1500)
            paints.append(page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime"))
            servers.append(page.evaluate("performance.getEntriesByType('navigation')[0].responseEnd"))
            context.close()
        browser.close()
    print(f"first paint of {path}: median {statistics.median(paints):.0f} ms, worst {max(paints):.0f} ms")
    print(f"  of that the answer of the server: median {statistics.median(servers):.0f} ms")


def search(store: Path) -> None:
    words = sorted({word.strip('.,:"()') for word in WORDS if word.isalpha() and len(word) > 3})[:60]
    took: list[float] = []
    with serving(store) as (base, token, _), httpx.Client(base_url=base, timeout=120) as client:
        client.headers["authorization"] = f"Bearer {token}"
        client.get("/search/hits", params={"q": "warm"})
        for word in words:
            for end in range(3, len(word) + 1):
                started = time.perf_counter()
                client.get("/search/hits", params={"q": word[:end]}).raise_for_status()
                took.append(1000 * (time.perf_counter() - started))
    print(f"search while typing, {len(took)} requests: median {statistics.median(took):.1f} ms, p95 {p95(took):.1f} ms")


def live(folder: Path, entries: int) -> None:
    from playwright.sync_api import sync_playwright  # noqa: PLC0415  only `make test-browser` installs it

    store = folder / f"live-{time.time_ns()}.db"  # a new one: a long thread opens at its beginning
    took: list[float] = []
    with st.open(store) as journal, serving(store) as (base, token, _), sync_playwright() as playwright:
        journal.append("t", st.user("begin"), create=True)
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        page = browser.new_page()
        page.goto(f"{base}/?token={token}")
        page.goto(f"{base}/t/t")
        page.evaluate(
            """window.seen = {}; new MutationObserver((all) => { for (const one of all) for (const node of one.addedNodes)
               if (node.dataset?.id) window.seen[node.dataset.id] = Date.now() }).observe(document.body, {childList: true, subtree: true})"""
        )
        page.wait_for_timeout(500)
        committed = {}
        for at in range(entries):
            entry = journal.append("t", st.assistant(f"entry {at}"))
            committed[entry.id] = 1000 * time.time()
            page.wait_for_timeout(120)
        page.wait_for_timeout(1000)
        seen = page.evaluate("window.seen")
        took = [seen[name] - at for name, at in committed.items() if name in seen]
        browser.close()
    print(
        f"a live entry is visible: {len(took)} of {entries}, median {statistics.median(took):.0f} ms, p95 {p95(took):.0f} ms"
    )


async def _crowd(base: str, token: str, pages: int, seconds: float, heard: list[float]) -> None:
    async with httpx.AsyncClient(base_url=base, timeout=None, limits=httpx.Limits(max_connections=None)) as client:
        client.headers["authorization"] = f"Bearer {token}"

        async def follow(number: int) -> None:
            async with client.stream("GET", f"/t/t{number % 64}/live") as stream:
                async for line in stream.aiter_lines():
                    if line.startswith("data: ") and "html" in line:
                        html = json.loads(line[6:])["html"]
                        heard.extend(1000 * time.time() - float(one) for one in _times(html))

        tasks = [asyncio.ensure_future(follow(number)) for number in range(pages)]
        await asyncio.sleep(seconds)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _times(html: str) -> list[str]:
    return [part.partition("@")[0] for part in html.split("at@")[1:]]


def crowd(folder: Path, pages: int, seconds: float) -> None:
    store = folder / "crowd.db"
    heard: list[float] = []
    stop = threading.Event()
    written = 0
    with st.open(store) as journal, serving(store) as (base, token, pid):
        for number in range(64):
            journal.append(f"t{number}", st.user("begin"), create=True)

        def write(number: int) -> None:
            nonlocal written
            while not stop.wait(1.0 + number % 7 / 10):
                journal.append(f"t{number}", st.assistant(f"at@{1000 * time.time():.1f}@"))
                written += 1

        writers = [threading.Thread(target=write, args=(number,)) for number in range(64)]
        for writer in writers:
            writer.start()
        sizes = [memory(pid)]
        rounds = max(1, round(seconds / 20))
        for _ in range(rounds):
            asyncio.run(_crowd(base, token, pages, seconds / rounds, heard))
            sizes.append(memory(pid))
        stop.set()
        for writer in writers:
            writer.join()
    print(f"{pages} open pages, 64 writers, {seconds:.0f} s: {written} entries written, {len(heard)} times delivered")
    print(f"  after its commit began: median {statistics.median(heard):.0f} ms, p95 {p95(heard):.0f} ms")
    print(f"  memory of the server: {', '.join(f'{size:.0f}' for size in sizes)} MB")


def tail(folder: Path, seconds: float, pause: float) -> None:
    """A page that follows a thread: what the server and the page keep, and whether that grows."""
    from playwright.sync_api import sync_playwright  # noqa: PLC0415  only `make test-browser` installs it

    store = folder / "tail.db"
    samples: list[tuple[float, float, float, float]] = []
    with st.open(store) as journal, serving(store) as (base, token, pid), sync_playwright() as playwright:
        journal.append("t", st.user("begin"), create=True)
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        page = browser.new_page()
        page.goto(f"{base}/?token={token}")
        page.goto(f"{base}/t/t")
        devtools = page.context.new_cdp_session(page)
        devtools.send("Performance.enable")
        started = time.monotonic()
        written = 0
        while time.monotonic() - started < seconds:
            journal.append("t", st.user(f"question {written}") if written % 20 == 0 else st.assistant(f"{written}"))
            written += 1
            page.wait_for_timeout(1000 * pause)
            if written % 100 == 0:
                devtools.send("HeapProfiler.collectGarbage")
                found = {one["name"]: one["value"] for one in devtools.send("Performance.getMetrics")["metrics"]}
                minute = (time.monotonic() - started) / 60
                samples.append((minute, memory(pid), found["JSHeapUsedSize"] / 1e6, found["Nodes"]))
                print(
                    "  minute {:.1f}: server {:.1f} MB, heap {:.2f} MB, {:.0f} nodes".format(*samples[-1]), flush=True
                )
        shown = page.evaluate(
            "[+document.querySelector('.app').dataset.total, document.querySelectorAll('#pages .e').length]"
        )
        browser.close()
    print(
        f"live tail of {seconds / 60:.0f} minutes: {written} entries, {shown[0]} counted by the page, {shown[1]} in its document"
    )
    late = samples[len(samples) // 2 :]
    for name, at in (("memory of the server, MB", 1), ("heap of the page, MB", 2), ("nodes of the page", 3)):
        line = statistics.linear_regression([one[0] for one in late], [one[at] for one in late])
        print(
            f"  {name}: {late[0][at]:.1f} at half time, {late[-1][at]:.1f} at the end, {60 * line.slope:+.2f} an hour"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, required=True, help="where stores are made and kept")
    parser.add_argument("--threads", type=int, default=100_000)
    parser.add_argument("--entries", type=int, default=100_000)
    parser.add_argument("--pages", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--pause", type=float, default=0.2, help="seconds between two entries of a live tail")
    parser.add_argument("--only", default="paint,search,live,crowd")
    given = parser.parse_args()
    many, long = given.folder / "many.db", given.folder / "long.db"
    if {"paint", "search"} & set(given.only.split(",")):
        if not many.exists():
            make_threads(many, given.threads)
        if not long.exists():
            make_long(long, given.entries)
    if "paint" in given.only:
        first_paint(many, "/", 7)
        first_paint(long, "/t/long", 7)
    if "search" in given.only:
        search(many)
    if "live" in given.only:
        live(given.folder, 60)
    if "tail" in given.only:
        tail(given.folder, given.seconds, given.pause)
    if "crowd" in given.only:
        crowd(given.folder, given.pages, given.seconds)


if __name__ == "__main__":
    main()
