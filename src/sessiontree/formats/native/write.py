"""Writing our own files: one JSONL file a tree, with all forks in it."""

from __future__ import annotations

from collections.abc import Iterator

from sessiontree.formats.picoclaw.meta import stem_of
from sessiontree.formats.writing import Target
from sessiontree.journal import Journal
from sessiontree.model import Thread

__all__ = ["write"]


def write(journal: Journal, threads: Iterator[Thread], target: Target) -> None:
    done: set[str] = set()
    for thread in threads:
        target.threads.append(thread.id)
        if thread.tree in done:
            continue
        done.add(thread.tree)
        body = journal.export(thread.id, format="jsonl", scope="tree").encode()
        target.entries += body.count(b"\n") - 1
        stem, number = stem_of(thread.tree), 2
        while target.is_taken(f"{stem}.jsonl"):
            stem, number = f"{stem_of(thread.tree)}~{number}", number + 1
        target.write(f"{stem}.jsonl", [body])
