"""What a checkpoint of a folder costs beside git, both in turn."""

from __future__ import annotations

import random
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import sessiontree as st
from benchmarks.case import Case, Sample, seconds

FILES = 4_000
CHANGED = 100
_WORDS = [
    f"{word}{number}"
    for word in ("alpha", "beta", "gamma", "delta", "value", "return", "import")
    for number in range(40)
]


def workspace(system: Any, size: int) -> Iterator[Sample]:
    source, root = random.Random(7), system.folder / "tree"
    paths = make_tree(root, source)
    git(root, "init", "-q")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "start")
    time.sleep(0.1)  # the tree must be older than the first scan, as any tree in use is
    journal: st.Journal = system.journal
    thread = journal.create_thread().id
    entry = journal.append(thread, st.user("start")).id
    journal.workspace.snapshot(thread, entry, root)
    while True:
        status = seconds(lambda: git(root, "status", "--porcelain"))
        unchanged = seconds(lambda: journal.workspace.snapshot(thread, entry, root))
        edit(source, source.sample(paths, CHANGED))
        changed = seconds(lambda: journal.workspace.snapshot(thread, entry, root))
        git(root, "add", "-A")
        git(root, "commit", "-qm", "turn")
        edit(source, source.sample(paths, CHANGED))
        add = seconds(lambda: git(root, "add", "-A"))
        git(root, "commit", "-qm", "turn")
        journal.workspace.snapshot(thread, entry, root)
        yield {
            "unchanged": unchanged * 1e3,
            "unchanged : git status": unchanged / status,
            "100 changed": changed * 1e3,
            "100 changed : git add": changed / add,
        }


def make_tree(root: Path, source: random.Random) -> list[Path]:
    made = []
    for number in range(FILES):
        folder = root / f"package{number // 1000}" / f"module{number // 50}"
        folder.mkdir(parents=True, exist_ok=True)
        made.append(folder / f"file{number}.py")
    edit(source, made)
    return made


def edit(source: random.Random, paths: list[Path]) -> None:
    for path in paths:
        lines = (" ".join(source.choices(_WORDS, k=8)) + f" {source.random()}\n" for _ in range(80))
        path.write_text("".join(lines))


def git(root: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=bench", "-c", "user.email=bench@example.org"]
    subprocess.run(["git", *identity, *arguments], cwd=root, check=True, capture_output=True)


CASES = [
    Case(
        name="workspace",
        about="Snapshot a folder of 4,000 files, unchanged and with 100 changed files, beside git status and git add.",
        run=workspace,
        metrics={
            "unchanged": "ms",
            "unchanged : git status": "x",
            "100 changed": "ms",
            "100 changed : git add": "x",
        },
        only=("sessiontree SQLite", "sessiontree JSONL"),
        is_quick=False,
        rounds=5,
    )
]
