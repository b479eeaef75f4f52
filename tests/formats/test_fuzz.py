"""Broken sources of every format: no crash, no hang, nothing written outside, memory within bounds, a sound journal."""

from __future__ import annotations

import os
import random
import resource
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from mutations import MUTATIONS, Mutation

import sessiontree as st
from golden_sets import STORE_FORMATS
from sessiontree.transfer.formats import export_sessions, import_sessions
from sessiontree.transfer.formats._records import ImportReport

SECONDS_PER_MEGABYTE = 2.0
GRACE_SECONDS = 8.0
"""For a machine that is busy with other things; a hang takes for ever."""


@pytest.fixture(scope="session")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small sound source of every format, with branches, tools, compactions, files and odd texts in it."""
    folder = tmp_path_factory.mktemp("sound")
    with st.open("memory:") as journal:
        root = tmp_path_factory.mktemp("root")
        (root / "a.txt").write_text("one line\n" * 20)
        (root / "c.bin").write_bytes(b"\xff\x00" * 50)
        for number in range(2):
            _conversation(journal, f"thread-{number}")
            journal.workspace.snapshot(f"thread-{number}", None, root, label="u1")
        for name in STORE_FORMATS:
            export_sessions(journal, folder / name, format=name)
    return folder


def _conversation(journal: st.Journal, thread_id: str) -> None:
    journal.create_thread(thread_id, title="<fuzz> & ünïcode", tags=("a",), workspace="/w", vendor="v")
    first = journal.append(thread_id, st.user("first\u2028 <b> \x01 日本"), turn_id="turn-1")
    journal.append(thread_id, st.assistant("let me", calls=[st.call("c1", "read", '{"path":"a"}')], reasoning="hm"))
    journal.append(thread_id, st.tool_result("c1", "the file\n" * 20, name="read"))
    journal.append(thread_id, st.Compaction(id="k", summary="so far", first_kept_entry_id=first.id, generation=1))
    journal.append(thread_id, st.Event(name="text", event_id="e", data={"n": 1.5}))
    journal.append(thread_id, st.user("second"))
    journal.append(thread_id, st.assistant("on the side"), parent=first.id)
    journal.append(thread_id, st.assistant("third"))


def cases(seed: int) -> Iterator[tuple[str, Mutation, random.Random]]:
    source = random.Random(seed)
    while True:
        yield source.choice(STORE_FORMATS), source.choice(MUTATIONS), source


def mutate(folder: Path, mutation: Mutation, source: random.Random) -> None:
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.stat().st_size)
    for path in source.sample(files, min(len(files), source.randint(1, 2))):
        path.write_bytes(mutation(path.read_bytes(), source))


def survive(name: str, folder: Path) -> ImportReport | None:
    """Import with the format that it was, whatever is left of it; the journal must be sound afterwards."""
    sources = [folder] if name not in ("zimaos", "openrouter") else sorted(folder.iterdir())
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    report = None
    start = time.monotonic()
    with st.open("memory:") as journal:
        for source in sources:
            report = import_sessions(journal, source, format=name)
            again = import_sessions(journal, source, format=name)
            assert again.created == 0
            assert again.entries_added == 0, [note.problem for note in again.notes]
        assert not journal.check()
        for thread in journal.list_threads(is_archived=None, limit=100):
            journal.context(thread.id)
    taken = time.monotonic() - start
    assert taken < GRACE_SECONDS + SECONDS_PER_MEGABYTE * size / 1e6, f"{name}: {taken:.1f} s for {size} bytes"
    return report


def run(sound: Path, place: Path, count: int, seed: int) -> None:
    source_of = cases(seed)
    for number in range(count):
        name, mutation, source = next(source_of)
        copy = place / "copy"
        shutil.copytree(sound / name, copy)
        mutate(copy, mutation, source)
        before = {path: path.read_bytes() for path in copy.rglob("*") if path.is_file()}
        try:
            survive(name, copy)
        except BaseException:
            print(f"seed {seed}, case {number}: {name}, {mutation.__name__}", file=sys.stderr)
            raise
        assert {path: path.read_bytes() for path in copy.rglob("*") if path.is_file()} == before
        assert [path.name for path in place.iterdir()] == ["copy"]
        shutil.rmtree(copy)


@pytest.mark.parametrize("seed", range(2))
def test_mutated_sources_never_crash_hang_or_write(seed: int, sound: Path, tmp_path: Path) -> None:
    run(sound, tmp_path, 200, seed)


@pytest.mark.deep
@pytest.mark.parametrize("seed", range(100, 120))
def test_twenty_thousand_mutated_sources(seed: int, sound: Path, tmp_path: Path) -> None:
    run(sound, tmp_path, 1000, seed)


@pytest.mark.parametrize("name", ["floret", "picoclaw", "ggcode", "pi"])
def test_a_line_of_64_megabytes_is_read_or_named(name: str, sound: Path, tmp_path: Path) -> None:
    if name != "picoclaw" and not os.environ.get("SESSIONTREE_PROFILE"):
        pytest.skip("one format by default, all of them in the deep run")
    copy = tmp_path / "copy"
    shutil.copytree(sound / name, copy)
    log = next(path for path in sorted(copy.rglob("*.jsonl")))
    with log.open("ab") as file:
        file.write(b'{"role":"user","content":"' + b"x" * (64 << 20) + b'"}\n' + b"y" * (64 << 20) + b"\n")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with st.open("memory:") as journal:
        report = import_sessions(journal, copy, format=name)
    assert report.damage
    assert any(note.size >= 64 << 20 for note in report.damage)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 1_500_000, f"{grown} KiB for a line of 64 MB"
