"""``python -m benchmarks``: run the cases, keep the run as JSON, and write the page from it.

``--quick`` takes small sizes and three rounds and prints the page. ``--case`` and ``--system`` select by a part of the name,
``--page RUN.json`` writes the page of an earlier run again.
"""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

from msgspec.structs import replace

from benchmarks import durability, machine, postgres, results
from benchmarks.case import Case, cases
from benchmarks.report import Report
from benchmarks.results import Run
from benchmarks.runner import ROOT, Limits, Runner
from benchmarks.system import System, left_out, systems

PAGES = ROOT / "docs" / "benchmarks"
FULL = Limits(total_seconds=18 * 60, case_seconds=20, rounds=7, least_rounds=3, largest_size=1_000_000)
QUICK = Limits(total_seconds=85, case_seconds=3, rounds=3, least_rounds=1, largest_size=1_000)
QUICK_SYSTEMS = (
    "sessiontree SQLite", "sessiontree SQLite, asyncio", "sessiontree JSONL", "sqlite3 WAL FULL", "write + fdatasync",
    "openai-agents SQLiteSession",
)  # fmt: skip


def log(text: str) -> None:
    """Show progress."""
    print(text, file=sys.stderr, flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks")
    parser.add_argument("--quick", action="store_true", help="small sizes, few systems, nothing is written")
    parser.add_argument("--case", action="append", default=[], help="only cases with this in their name")
    parser.add_argument("--system", action="append", default=[], help="only systems with this in their name")
    parser.add_argument("--folder", default=None, help="where the stores are; default: the temporary folder")
    parser.add_argument("--rounds", type=int, default=None)
    parser.add_argument("--minutes", type=float, default=None, help="when no further case begins")
    parser.add_argument("--largest", type=int, default=None, help="the largest size")
    parser.add_argument("--page", default=None, help="write the page of an earlier run again")
    options = parser.parse_args()
    known, all_cases = systems(), cases()
    if options.page:
        Report(results.load(Path(options.page)), all_cases, known, PAGES).write()
        return 0
    chosen_systems = {name: s for name, s in known.items() if _is_chosen(name, options.system)}
    chosen_cases = [case for case in all_cases.values() if _is_chosen(case.name, options.case)]
    limits = QUICK if options.quick else FULL
    if options.quick and not options.system:
        chosen_systems = {name: known[name] for name in QUICK_SYSTEMS}
    if options.quick and not options.case:
        chosen_cases = [_smaller(case) for case in chosen_cases if case.is_quick]
    limits = replace(
        limits, rounds=options.rounds or limits.rounds, largest_size=options.largest or limits.largest_size
    )
    if options.minutes:
        limits = replace(limits, total_seconds=60 * options.minutes)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that servers and stores are removed
    folder = Path(tempfile.mkdtemp(prefix="sessiontree-bench-", dir=options.folder))
    try:
        run = measure(chosen_cases, chosen_systems, folder, limits)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    run.is_quick = options.quick
    report = Report(run, all_cases, known, PAGES)
    if options.quick or options.case or options.system:
        print(report.page())
        return 0
    results.save(run, PAGES / "runs" / f"{run.started.replace(':', '-')}.json")
    report.write()
    print("\n".join(report.goals()))
    return 0


def measure(chosen: list[Case], known: dict[str, type[System]], folder: Path, limits: Limits) -> Run:
    """Measure everything and describe where."""
    start = time.monotonic()
    run = Run(started=datetime.now(UTC).isoformat(timespec="seconds"), left_out=left_out())
    with postgres.server() as server:
        run.machine = machine.describe(folder, server)
        run.versions = machine.versions(package for system in known.values() for package in system.packages)
        for name, system in known.items():
            run.durability[name] = durability.check(system, folder / f"durability {name}")
        log(f"durability: {time.monotonic() - start:.0f} s")
        run.measured = Runner(known, folder, limits, log, started=start).run(chosen)
    run.minutes = (time.monotonic() - start) / 60
    return run


def _is_chosen(name: str, parts: list[str]) -> bool:
    return not parts or any(part in name for part in parts)


def _smaller(case: Case) -> Case:
    """The same case with sizes that a quick run allows, or with its smallest one at the allowed size."""
    sizes = tuple(size for size in case.sizes if size <= QUICK.largest_size)
    return replace(case, sizes=sizes or (QUICK.largest_size,))


if __name__ == "__main__":
    sys.exit(main())
