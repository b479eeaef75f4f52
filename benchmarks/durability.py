"""What an acknowledged append survives, as strace sees it: the syncs that a system makes for each append."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import psycopg
from msgspec import Struct

from benchmarks import postgres
from benchmarks.runner import run_bounded, worker_command
from benchmarks.system import System
from benchmarks.worker import DURABLE_APPENDS, MARK, SYNCED_FILE

SECONDS = 60.0
_SYNC = re.compile(r"\b(?:fsync|fdatasync|sync_file_range|msync)\(")


class Durability(Struct, frozen=True, kw_only=True):
    """``syncs`` is the number of syncs per append, or None if it could not be counted; ``note`` says how it was found."""

    syncs: float | None
    note: str

    @property
    def is_durable(self) -> bool:
        """Whether each append waits for at least one sync."""
        return self.syncs is not None and self.syncs >= 1


def check(system: type[System], folder: Path) -> Durability:
    """Count the syncs of a few appends by one caller."""
    if system.is_remote:
        return _check_server(system, folder)
    if shutil.which("strace") is None:
        return Durability(syncs=None, note="strace is not installed")
    folder.mkdir(parents=True)
    with tempfile.NamedTemporaryFile() as trace:
        calls = "trace=fsync,fdatasync,sync_file_range,msync,access,faccessat,faccessat2"
        strace = ["strace", "-f", "--seccomp-bpf", "-qq", "-e", calls, "-o", trace.name]
        try:
            run_bounded([*strace, *worker_command("durability", *system.place(), str(folder))], SECONDS)
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
            return Durability(syncs=None, note=f"could not be traced: {type(error).__name__}")
        lines = Path(trace.name).read_text(errors="replace").splitlines()
    return _judge(lines)


def _judge(lines: list[str]) -> Durability:
    marks = [number for number, line in enumerate(lines) if MARK in line]
    if len(marks) < 2:
        return Durability(syncs=None, note="the trace has no marks")
    syncs = sum(bool(_SYNC.search(line)) for line in lines[marks[0] : marks[-1]])
    if SYNCED_FILE in lines[marks[-1]]:
        return Durability(syncs=1.0, note="a file is opened with O_SYNC or O_DSYNC")
    return Durability(syncs=syncs / DURABLE_APPENDS, note="strace")


def _check_server(system: type[System], folder: Path) -> Durability:
    """Ask the server: its processes sync, and one sync may serve several connections."""
    folder.mkdir(parents=True)
    with psycopg.connect(postgres.database(folder)) as connection:
        settings = {
            name: connection.execute(f"SHOW {name}").fetchone()[0]  # type: ignore[index]
            for name in ("fsync", "synchronous_commit", "wal_sync_method")
        }
        before = _wal_syncs(connection)
        try:
            run_bounded(worker_command("durability", *system.place(), str(folder)), SECONDS)
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
            return Durability(syncs=None, note=f"could not be counted: {type(error).__name__}")
        connection.commit()
        syncs = (_wal_syncs(connection) - before) / (DURABLE_APPENDS + 5)
    shown = ", ".join(f"{name} {value}" for name, value in settings.items())
    return Durability(syncs=syncs if settings["fsync"] == "on" else 0.0, note=f"the server's own count; {shown}")


def _wal_syncs(connection: psycopg.Connection) -> int:
    connection.execute("SELECT pg_stat_clear_snapshot()")
    row = connection.execute(
        "SELECT to_regclass('pg_catalog.pg_stat_io') IS NOT NULL, current_setting('server_version_num')::int"
    ).fetchone()
    assert row is not None
    if row[1] >= 180000:
        query = "SELECT coalesce(sum(fsyncs), 0) FROM pg_stat_io WHERE object = 'wal'"
    else:
        query = "SELECT wal_sync FROM pg_stat_wal"
    found = connection.execute(query).fetchone()
    assert found is not None
    return int(found[0])
