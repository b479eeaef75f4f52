"""Where a run was made: the machine, the file system of the stores, and the versions of everything."""

from __future__ import annotations

import os
import platform
import sqlite3
import subprocess
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import psycopg

from benchmarks.runner import ROOT


def describe(folder: Path, server: str) -> dict[str, str]:
    """Name and value of everything that a reader needs to compare."""
    with psycopg.connect(server) as connection:
        row = connection.execute("SHOW server_version").fetchone()
    return {
        "processor": f"{os.cpu_count()} x {_processor()}",
        "memory": f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GB",
        "kernel": f"{platform.system()} {platform.release()}",
        "file system": _file_system(folder),
        "load before the run": f"{os.getloadavg()[0]:.1f}",
        "Python": platform.python_version(),
        "SQLite": sqlite3.sqlite_version,
        "PostgreSQL": str(row[0]) if row else "",
        "sessiontree": _commit(),
    }


def versions(packages: Iterable[str]) -> dict[str, str]:
    """The installed versions of the peers."""
    found = {}
    for package in sorted(set(packages)):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _file_system(folder: Path) -> str:
    """The type of the file system that a folder is on, by the longest mount point above it."""
    mounts = [line.split()[1:3] for line in Path("/proc/mounts").read_text().splitlines()]
    above = [(place, kind) for place, kind in mounts if folder.resolve().is_relative_to(place)]
    return max(above, key=lambda mount: len(mount[0]))[1] if above else "unknown"


def _commit() -> str:
    answer = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return answer.stdout.strip() or "unknown"
