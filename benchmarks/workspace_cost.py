"""What a workspace checkpoint costs beside git, alternating in one run so that both see the same machine.

    python benchmarks/workspace_cost.py [--files 20000] [--rounds 15] [--store sqlite|jsonl|memory]

Three questions: an unchanged tree against ``git status``; 100 changed files against ``git add``; and how much the store
grows against the compressed size of what changed.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import sessiontree as st
from sessiontree.model.blobs import blob_of

_WORDS = [
    f"{word}{number}"
    for word in ("alpha", "beta", "gamma", "delta", "value", "return", "import")
    for number in range(40)
]


def text(source: random.Random, lines: int) -> str:
    return "".join(" ".join(source.choices(_WORDS, k=8)) + f" {source.random()}\n" for _ in range(lines))


def make_tree(root: Path, files: int, source: random.Random) -> list[Path]:
    made = []
    for number in range(files):
        folder = root / f"package{number // 1000}" / f"module{number // 50}"
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"file{number}.py"
        path.write_text(text(source, source.randint(5, 150)))
        made.append(path)
    return made


def git(root: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=bench", "-c", "user.email=bench@example.org"]
    subprocess.run(["git", *identity, *arguments], cwd=root, check=True, capture_output=True)


def seconds(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def store_size(place: Path) -> int:
    """What the store takes on the disk, its write-ahead log folded in."""
    if place.is_dir():
        return sum(path.stat().st_size for path in place.rglob("*") if path.is_file())
    with contextlib.closing(sqlite3.connect(place)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    return place.stat().st_size


def report(name: str, ours: list[float], theirs: list[float], limit: float) -> None:
    ratios = sorted(mine / other for mine, other in zip(ours, theirs, strict=True))
    ratio = statistics.median(ours) / statistics.median(theirs)
    verdict = "ok" if ratio <= limit else "OVER"
    print(
        f"{name:34} ours {statistics.median(ours) * 1000:7.1f} ms   git {statistics.median(theirs) * 1000:7.1f} ms   "
        f"ratio {ratio:4.2f} (pairs {ratios[len(ratios) // 4]:.2f} to {ratios[3 * len(ratios) // 4]:.2f})   "
        f"limit {limit}   {verdict}"
    )


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--files", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--store", default="sqlite", choices=["sqlite", "jsonl", "memory"])
    parser.add_argument("--folder", default=None, help="where to work; default: the system's temporary folder")
    options = parser.parse_args()
    source = random.Random(7)
    with tempfile.TemporaryDirectory(dir=options.folder) as place:
        measure(Path(place), options, source)
    return 0


def measure(place: Path, options: argparse.Namespace, source: random.Random) -> None:
    root = place / "tree"
    paths = make_tree(root, options.files, source)
    (root / ".gitignore").write_text("*.log\nbuild/\n")
    git(root, "init", "-q")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "start")
    store = place / ("journal.db" if options.store == "sqlite" else "journal")
    url = {"sqlite": f"sqlite:///{store}", "jsonl": f"jsonl:///{store}", "memory": "memory:"}[options.store]
    time.sleep(0.1)  # the tree must be older than the first scan, as any tree in use is
    with st.open(url) as journal:
        thread = journal.create_thread().id
        entry = journal.append(thread, st.user("start")).id
        first = seconds(lambda: journal.workspace.snapshot(thread, entry, root))
        print(f"{options.files} files, {options.store} store; first snapshot {first:.2f} s")
        journal.workspace.snapshot(thread, entry, root)
        unchanged(journal, thread, entry, root, options.rounds)
        changed(journal, (thread, entry), root, options.rounds, paths=paths, source=source, store=store)


def unchanged(journal: st.Journal, thread: str, entry: str, root: Path, rounds: int) -> None:
    ours, cold, theirs = [], [], []
    for _ in range(rounds):
        theirs.append(seconds(lambda: git(root, "status", "--porcelain")))
        ours.append(seconds(lambda: journal.workspace.snapshot(thread, entry, root)))
        journal.workspace.cache._stat_caches.clear()  # noqa: SLF001  as in a new process
        cold.append(seconds(lambda: journal.workspace.snapshot(thread, entry, root)))
    report("unchanged, against git status", ours, theirs, 1.5)
    report("unchanged, cache read from disk", cold, theirs, 1.5)


def changed(journal, target, root, rounds, *, paths, source, store) -> None:
    ours, named, everything, compressed = [], [], [], 0
    before = store_size(store) if store.exists() else 0
    for _ in range(rounds):
        compressed += edit(source, chosen := source.sample(paths, 100))
        ours.append(seconds(lambda: journal.workspace.snapshot(*target, root)))
        relative = [os.path.relpath(path, root) for path in chosen]
        named.append(seconds(lambda names=relative: git(root, "add", "--", *names)))
        git(root, "commit", "-qm", "turn")
        compressed += edit(source, source.sample(paths, 100))
        everything.append(seconds(lambda: git(root, "add", "-A")))
        git(root, "commit", "-qm", "turn")
        journal.workspace.snapshot(*target, root)
    report("100 changed, against git add -A", ours, everything, 2.0)
    report("100 changed, against git add NAMES", ours, named, 2.0)
    if store.exists():
        growth = store_size(store) - before
        verdict = "ok" if growth <= 1.1 * compressed else "OVER"
        print(
            f"store growth over {2 * rounds} snapshots: {growth / 1e6:.2f} MB for {compressed / 1e6:.2f} MB of compressed "
            f"changed files, ratio {growth / compressed:.3f}   limit 1.1   {verdict}"
        )


def edit(source: random.Random, chosen: list[Path]) -> int:
    """Rewrite files; the answer is how large the new content is when compressed."""
    for path in chosen:
        path.write_text(text(source, 80))
    return sum(len(blob_of(path.read_bytes()).body) for path in chosen)


if __name__ == "__main__":
    sys.exit(main())
