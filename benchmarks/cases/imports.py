"""How fast sessions of other programs come in: a set in the form of four tools, into SQLite."""

from __future__ import annotations

import random
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import sessiontree as st
from benchmarks.case import Case, Sample
from benchmarks.texts import text
from sessiontree.transfer.formats import export_sessions, import_sessions

FORMATS = ("floret", "picoclaw", "ggcode", "pi")
MEGABYTES = 2.0


def imports(system: Any, size: int) -> Iterator[Sample]:
    folder = system.folder / "sets"
    sources = {name: make_set(folder, name) for name in FORMATS}
    for number in range(100_000):
        rates = {}
        for name, source in sources.items():
            target = system.folder / f"{name}-{number}.db"
            with st.open(target) as journal:
                start = time.perf_counter()
                import_sessions(journal, source)
                rates[name] = _bytes_in(source) / 1e6 / (time.perf_counter() - start)
            for path in system.folder.glob(f"{target.name}*"):
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        yield rates


def make_set(folder: Path, name: str) -> Path:
    """A store of another program, written by our own exporter: sessions of many sizes, with tool results."""
    source = random.Random(7)
    with st.open("memory:") as journal:
        size = 0
        while size < MEGABYTES * 1e6:
            thread = journal.create_thread(title="benchmark")
            for number in range(int(source.lognormvariate(3.0, 1.0)) + 1):
                entries = turn(source, number)
                journal.append_many(thread.id, entries)
                size += 1_000 * len(entries)
        export_sessions(journal, folder / name, format=name)
    return folder / name


def turn(source: random.Random, number: int) -> list[st.Payload]:
    """A question, a few tool calls with results, an answer."""
    said: list[st.Payload] = [st.user(text(number, source.randint(60, 1500)))]
    for index in range(source.randint(0, 4)):
        name = f"call_{number}_{index}"
        said.append(st.assistant(calls=[st.call(name, "read_file", '{"path":"src/parser.py"}')]))
        said.append(st.tool_result(name, text(index, 60 + int(source.lognormvariate(7.0, 1.0)))))
    said.append(st.assistant(text(number, source.randint(100, 3000))))
    return said


def _bytes_in(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


CASES = [
    Case(
        name="import",
        about="Import sessions of other programs into a new SQLite store.",
        run=imports,
        metrics=dict.fromkeys(FORMATS, "MB/s"),
        only=("sessiontree SQLite",),
        is_higher_better=True,
        is_quick=False,
        rounds=3,
    )
]
