"""Broken transcripts of every tool: no crash, no hang, nothing written outside, bounded memory, bombs refused."""

from __future__ import annotations

import json
import random
import resource
import shutil
import sys
import zipfile
from pathlib import Path

import pytest
from mutations import MUTATIONS
from transcript_samples import Sample, samples

import sessiontree as st
from sessiontree.transfer.formats import import_everything, import_sessions

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

SAMPLES = [one for one in samples() if one.format != "pi"]
QUICK, DEEP = 400, 20_000
PARTS = 2


def tree_of(folder: Path) -> set[tuple[str, int]]:
    return {(str(path.relative_to(folder)), path.stat().st_size) for path in folder.rglob("*") if path.is_file()}


def break_one(sample: Sample, source: random.Random, folder: Path) -> Path:
    """A copy of the sample with one of its files broken in one or two ways."""
    target = folder / sample.path.name
    shutil.copytree(sample.path, target) if sample.path.is_dir() else shutil.copy(sample.path, target)
    files = [path for path in ([target] if target.is_file() else sorted(target.rglob("*"))) if path.is_file()]
    chosen = source.choice([path for path in files if path.stat().st_size])
    chosen.chmod(0o600)
    body = chosen.read_bytes()
    for _ in range(source.randint(1, 2)):
        body = source.choice(MUTATIONS)(body, source) if body else body
    chosen.write_bytes(body)
    return target


def rounds(count: int, seed: int, folder: Path) -> None:
    source = random.Random(seed)
    for number in range(count):
        sample = source.choice(SAMPLES)
        place = folder / str(number)
        place.mkdir()
        target = break_one(sample, source, place)
        before = tree_of(place)
        with st.open("memory:") as journal:
            report = import_sessions(journal, target, format=sample.format)
            import_everything(journal, target)
            assert journal.check() == []
            for thread in report.threads:
                journal.context(thread)
            again = import_sessions(journal, target, format=sample.format)
            assert again.entries_added == 0, (sample.name, seed, number)
        assert tree_of(place) == before
        shutil.rmtree(place)


@pytest.mark.parametrize("part", range(PARTS))
def test_broken_transcripts_never_crash_hang_or_write(part: int, tmp_path: Path) -> None:
    rounds(QUICK // PARTS, 22 + part, tmp_path)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < 1_500_000


@pytest.mark.deep
@pytest.mark.parametrize("part", range(20))
def test_twenty_thousand_broken_transcripts(part: int, tmp_path: Path) -> None:
    rounds(DEEP // 20, 1000 + part, tmp_path)


def test_a_bomb_in_an_archive_is_refused(tmp_path: Path) -> None:
    bomb = tmp_path / "export.zip"
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("conversations.json", "w") as file:
        file.write(b'[{"mapping": {}, "current_node": "')
        for _ in range(70):
            file.write(b"a" * 1_000_000)
    with st.open("memory:") as journal:
        report = import_sessions(journal, bomb, format="chatgpt")
    assert "refused" in report.damage[0].problem
    assert report.threads == ()


def test_a_bomb_in_a_compressed_rollout_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "rollout-2026-08-01T10-00-00-019f0000-0000-7000-8000-000000000001.jsonl.zst"
    with zstd.open(path, "wb") as file:
        file.write(json.dumps({"timestamp": "", "type": "session_meta", "payload": {"id": "x"}}).encode() + b"\n")
        for _ in range(70):
            file.write(b" " * 1_000_000)
    with st.open("memory:") as journal:
        report = import_sessions(journal, path)
    assert report.format == "codex"
    assert "refused" in report.damage[0].problem


def test_a_compressed_rollout_is_read_as_a_plain_one(tmp_path: Path) -> None:
    plain = next(next(one for one in SAMPLES if one.name == "codex/synthetic").path.rglob("rollout*.jsonl"))
    packed = tmp_path / f"{plain.name}.zst"
    packed.write_bytes(zstd.compress(plain.read_bytes()))
    with st.open("memory:") as one, st.open("memory:") as other:
        (thread,) = import_sessions(one, plain).threads
        assert import_sessions(other, packed).threads == (thread,)
        assert [entry.payload for entry in one.entries(thread)] == [entry.payload for entry in other.entries(thread)]
