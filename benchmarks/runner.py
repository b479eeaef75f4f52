"""Run cases x systems: in each round every system gives one sample of a case, so that a slow moment falls on all of them.

Every system runs in a process of its own. A system that fails, or does not answer in time, loses that case and nothing else.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path

from msgspec import Struct

from benchmarks.case import Case, Sample
from benchmarks.system import System

ANSWER_SECONDS = 45.0
FILL_SECONDS = 120.0
MEMORY = Path("/dev/shm")
ROOT = Path(__file__).parent.parent

Log = Callable[[str], None]


class Measured(Struct, kw_only=True):
    """What came of one case on one system at one size: all samples in the order of their rounds, or why there are none."""

    case: str
    system: str
    size: int
    samples: list[Sample] = []
    error: str = ""


class Limits(Struct, frozen=True, kw_only=True):
    """How long a run may take. ``case_seconds`` ends the rounds of a case at one size, after ``least_rounds`` of them.

    A case that takes more than twice its share of the time that is left gets one round, so that the later ones get theirs.
    """

    total_seconds: float
    case_seconds: float
    rounds: int
    least_rounds: int
    largest_size: int


class Worker:
    """A process that measures one case on one system."""

    def __init__(self, case: Case, system: type[System], size: int, folder: Path) -> None:
        self.log = tempfile.TemporaryFile()  # noqa: SIM115  closed in stop
        arguments = ("sample", case.name, *system.place(), str(size), str(folder))
        self.process = subprocess.Popen(
            worker_command(*arguments),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, cwd=ROOT, start_new_session=True,
        )  # fmt: skip
        assert self.process.stdout is not None
        self._answers = self.process.stdout
        self._patience = 5.0

    def sample(self, seconds: float) -> Sample:
        """Ask for one sample. Raises TimeoutError, or RuntimeError with the last line of the error."""
        with suppress(BrokenPipeError):
            assert self.process.stdin is not None
            self.process.stdin.write(b"\n")
            self.process.stdin.flush()
        line, end = b"", time.monotonic() + seconds
        while not line.endswith(b"\n"):
            if not select.select([self._answers], [], [], max(0.0, end - time.monotonic()))[0]:
                self._patience = 0.0
                raise TimeoutError(f"no answer in {seconds:g} s")
            piece = os.read(self._answers.fileno(), 65536)
            if not piece:
                with suppress(subprocess.TimeoutExpired):  # the pipe is closed before the error is written
                    self.process.wait(5)
                raise RuntimeError(self._last_words())
            line += piece
        sample: Sample = json.loads(line)
        return sample

    def _last_words(self) -> str:
        self.log.seek(0)
        lines = self.log.read().decode(errors="replace").strip().splitlines()
        return lines[-1][:200] if lines else "the process ended without a word"

    def stop(self) -> None:
        """End the process and those that it started."""
        assert self.process.stdin is not None
        with suppress(BrokenPipeError):
            self.process.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(self._patience)
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self._answers.close()
        self.log.close()


class Runner:
    """Measures the cases one after the other, with the stores in a folder."""

    def __init__(
        self, systems: dict[str, type[System]], folder: Path, limits: Limits, log: Log, *, started: float | None = None
    ) -> None:
        self._systems = systems
        self._folder = folder
        self._limits = limits
        self._log = log
        self._end = (time.monotonic() if started is None else started) + limits.total_seconds
        self._unfilled: dict[Path, str] = {}

    def run(self, cases: Sequence[Case]) -> list[Measured]:
        """Measure every case at every size: first those that only read the stores that they share."""
        places = [
            (case, size)
            for case in sorted(cases, key=lambda case: case.is_appending)
            for size in case.sizes
            if size <= self._limits.largest_size
        ]
        found: list[Measured] = []
        for done, (case, size) in enumerate(places):
            left = self._end - time.monotonic()
            found += self._measure(case, size, share=left / (len(places) - done))
        return found

    def _measure(self, case: Case, size: int, share: float) -> list[Measured]:
        start = time.monotonic()
        names = [name for name, system in self._systems.items() if case.takes(system, size)]
        results = {name: Measured(case=case.name, system=name, size=size) for name in names}
        if share <= 0:
            for result in results.values():
                result.error = "the time of the run was over"
            return list(results.values())
        folders = self._stores(case, size, results)
        filled = time.monotonic()
        with ExitStack() as stack:
            workers: dict[str, Worker] = {}
            for name, folder in folders.items():
                workers[name] = Worker(case, self._systems[name], size, folder)
                stack.callback(workers[name].stop)
            for number in range(min(case.rounds, self._limits.rounds) + 1):
                taken = time.monotonic() - filled
                if number > self._limits.least_rounds and taken > self._limits.case_seconds:
                    break
                if number > 1 and taken > 2 * share:
                    break
                self._round(workers, results, is_warm_up=number == 0)
        if case.prepare is None:
            for folder in folders.values():
                shutil.rmtree(folder, ignore_errors=True)
        now = time.monotonic()
        self._log(f"{case.name}{f', {size:,}' if size else ''}: {now - filled:.1f} s, filled in {filled - start:.1f} s")
        return list(results.values())

    def _stores(self, case: Case, size: int, results: dict[str, Measured]) -> dict[str, Path]:
        """Return the folders of the systems; those that could not be filled are noted. Filling uses all processors."""
        folders: dict[str, Path] = {}
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            fills = {name: pool.submit(self._store, case, name, size) for name in results}
        for name, fill in fills.items():
            try:
                folders[name] = fill.result()
            except RuntimeError as error:
                results[name].error = str(error)
        return folders

    def _round(self, workers: dict[str, Worker], results: dict[str, Measured], *, is_warm_up: bool) -> None:
        for name, worker in list(workers.items()):
            try:
                sample = worker.sample(min(ANSWER_SECONDS, self._remaining()))
            except (TimeoutError, RuntimeError) as error:
                results[name].error = str(error)
                self._log(f"    {results[name].case}: {name}: {error}")
                del workers[name]
                worker.stop()
            else:
                if not is_warm_up:
                    results[name].samples.append(sample)

    def _remaining(self) -> float:
        """Seconds until the run must end; a few more for a case that has begun."""
        return max(5.0, self._end - time.monotonic())

    def _store(self, case: Case, system: str, size: int) -> Path:
        """Return the folder of a system for a case, filled if the case wants it filled."""
        kind = case.name if case.prepare is None else case.prepare.__name__
        folder = self._folder / f"{system} {kind} {size}".replace("/", "-")
        if folder in self._unfilled:
            raise RuntimeError(self._unfilled[folder])
        if folder.exists():
            return folder
        folder.mkdir(parents=True)
        if case.prepare is not None and not self._systems[system].is_in_memory:
            try:
                self._fill(case, system, size, folder)
            except RuntimeError as error:
                self._unfilled[folder] = str(error)
                self._log(f"    {case.name}: {system}: {error}")
                raise
        return folder

    def _fill(self, case: Case, system: str, size: int, folder: Path) -> None:
        kind = self._systems[system]
        # A peer that has no bulk append syncs thousands of times: its store is filled in memory and copied to the disk.
        is_staged = kind.family == "peer" and not kind.is_remote and MEMORY.exists()
        place = Path(tempfile.mkdtemp(dir=MEMORY)) if is_staged else folder
        command = worker_command("fill", case.name, *kind.place(), str(size), str(place))
        try:
            self._run_fill(command)
            if is_staged:
                shutil.copytree(place, folder, dirs_exist_ok=True)
                os.sync()
        finally:
            if is_staged:
                shutil.rmtree(place, ignore_errors=True)

    def _run_fill(self, command: list[str]) -> None:
        limit = min(FILL_SECONDS, self._remaining())
        try:
            run_bounded(command, limit)
        except subprocess.TimeoutExpired:
            raise RuntimeError(f"not filled in {limit:.0f} s") from None
        except subprocess.CalledProcessError as error:
            lines = error.stderr.decode(errors="replace").strip().splitlines()
            raise RuntimeError(lines[-1][:200] if lines else "could not be filled") from None


def worker_command(*arguments: str) -> list[str]:
    """The command that runs a worker."""
    return [sys.executable, "-W", "ignore", "-m", "benchmarks.worker", *arguments]


def run_bounded(command: Sequence[str], seconds: float) -> str:
    """Run a command and return its output; after the time is over it is killed with everything that it started."""
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT, start_new_session=True
    ) as process:
        try:
            output, errors = process.communicate(timeout=seconds)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, list(command), output, errors)
    return output.decode()
