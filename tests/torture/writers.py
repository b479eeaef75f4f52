"""Processes that append to shared threads and report every outcome on a pipe: what the store is compared with later."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple, Self

import sessiontree as st
from torture.rounds import Outcome, Problem

THREADS = "abcd"
_LONGEST = 700


class Said(NamedTuple):
    """What writers reported: acknowledged entries by thread, refused ones, the names of errors, and raw errors."""

    acknowledged: dict[str, list[str]]
    refused: set[str]
    errors: Counter[str]
    raw: list[str]
    by_writer: Counter[str]

    @property
    def total(self) -> int:
        return sum(map(len, self.acknowledged.values()))


class Crowd:
    """Writers on one store, in processes of their own. ``clock`` gives each of them its own clock."""

    def __init__(self, url: str, count: int, *, clock: Callable[[int], Callable[[], int]] | None = None) -> None:
        self.url = url
        with st.open(url) as journal:
            for thread in THREADS:
                journal.create_thread(thread)
        self._reading, writing = os.pipe()
        self._going, self._stop = os.pipe()
        self.pids = [fork(partial(self._write, number, writing, clock)) for number in range(count)]
        os.close(writing)
        os.close(self._going)
        self._text = bytearray()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.kill()

    def wait_for(self, reports: int, seconds: float = 60.0) -> bool:
        """Wait until so many more lines were reported; return whether they were."""
        wanted = self._text.count(b"\n") + reports
        end = time.monotonic() + seconds
        os.set_blocking(self._reading, False)
        while self._text.count(b"\n") < wanted and time.monotonic() < end:
            with contextlib.suppress(BlockingIOError):
                self._text += os.read(self._reading, 1 << 16)
            time.sleep(0.002)
        return self._text.count(b"\n") >= wanted

    def wait_for_error(self, seconds: float = 20.0) -> bool:
        """Wait until a writer was told that a write failed, or that nobody knows; return whether one was."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.wait_for(1, seconds=0.5)
            if any(line.startswith((b"refused ", b"unknown ")) for line in self._text.splitlines()):
                return True
        return False

    def wait_for_each(self, seconds: float = 60.0) -> None:
        """Wait until every writer has reported something."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.wait_for(1, seconds=1.0)
            reported = bytes(self._text).splitlines()
            starts = {line.split(b" ")[2].partition(b".")[0] for line in reported if line.count(b" ") > 1}
            if len(starts) == len(self.pids):
                return

    def kill(self) -> None:
        """Kill every writer that still runs."""
        for pid in self.pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._reap(0)

    def finish(self, seconds: float = 90.0) -> bool:
        """Let every writer end its last step; return whether all of them did."""
        os.close(self._stop)
        end = time.monotonic() + seconds
        while self.pids and time.monotonic() < end:
            self._reap(os.WNOHANG)
            with contextlib.suppress(BlockingIOError):
                os.set_blocking(self._reading, False)
                self._text += os.read(self._reading, 1 << 16)
            time.sleep(0.005)
        return not self.pids

    def said(self) -> Said:
        """Everything that was reported; no writer runs any more."""
        assert not self.pids
        os.set_blocking(self._reading, True)
        with os.fdopen(self._reading, "rb") as file:
            self._text += file.read()
        said = Said({thread: [] for thread in THREADS}, set(), Counter(), [], Counter())
        for line in self._text.decode().splitlines():
            word, thread, entry, *rest = line.split(" ", 3)
            match word:
                case "kept":
                    said.acknowledged[thread].append(entry)
                    said.by_writer[entry.partition(".")[0]] += 1
                case "refused":
                    said.refused.add(entry)
                    said.errors.update(rest)
                case "unknown":
                    said.errors.update(rest)
                case "raw":
                    said.raw.append(" ".join(rest))
        return said

    def _reap(self, options: int) -> None:
        for pid in list(self.pids):
            if os.waitpid(pid, options)[0]:
                self.pids.remove(pid)

    def _write(self, number: int, report: int, clock: Callable[[int], Callable[[], int]] | None) -> None:
        os.close(self._stop)
        source = random.Random(number)
        options = {"clock": clock(number)} if clock else {}
        journal = None
        count = 0
        while self._may_go_on():
            count += 1
            thread, entry = source.choice(THREADS), f"{number}.{count}"
            try:
                journal = journal or st.open(self.url, **options)  # type: ignore[arg-type]
                journal.append(thread, st.user("x" * (count % _LONGEST)), id=entry)
            except st.SessionTreeError as error:
                if journal is not None and isinstance(error, st.StorePoisonedError | st.StoreGoneError):
                    _drop(journal)
                    journal = None
                _say(report, "unknown" if is_unknown(error) else "refused", thread, entry, type(error).__name__)
            except BaseException as error:  # noqa: BLE001  what leaves the library is what the ladder looks for
                _say(report, "raw", thread, entry, f"{type(error).__name__}: {error}")
                time.sleep(0.01)
            else:
                _say(report, "kept", thread, entry)
        if journal is not None:
            journal.close()

    def _may_go_on(self) -> bool:
        os.set_blocking(self._going, False)
        try:
            return bool(os.read(self._going, 1))
        except BlockingIOError:
            return True


def is_unknown(error: st.SessionTreeError) -> bool:
    """Whether the caller cannot know if the write was committed."""
    return isinstance(error, st.CommitUnknownError | st.StorePoisonedError)


def compare(url: str, said: Said) -> Outcome:
    """Compare a store with what its writers reported."""
    return Outcome(said.total, tuple(_differences(url, said)))


def _differences(url: str, said: Said) -> Iterator[Problem]:
    for text in said.raw:
        yield Problem("other", f"raw {text}")
    try:
        with st.open(url) as journal:
            for thread in THREADS:
                stored = [entry.id for entry in journal.entries(thread)]
                yield from _in_thread(thread, stored, said)
            for finding in journal.check():
                if finding.kind != "torn":
                    yield Problem("torn", finding.problem)
    except Exception as error:  # noqa: BLE001  any error here is a finding
        yield Problem("other", f"cannot be opened: {type(error).__name__}: {error}")


def _in_thread(thread: str, stored: list[str], said: Said) -> Iterator[Problem]:
    acknowledged = said.acknowledged[thread]
    lost = set(acknowledged) - set(stored)
    if lost:
        yield Problem("lost", f"{len(lost)} in {thread}: {sorted(lost)[:5]}")
    doubled = [entry for entry, count in Counter(stored).items() if count > 1]
    if doubled:
        yield Problem("duplicated", f"in {thread}: {doubled[:5]}")
    kept = said.refused & set(stored)
    if kept:
        yield Problem("other", f"reported as refused, but stored in {thread}: {sorted(kept)[:5]}")
    places = {entry: place for place, entry in enumerate(stored)}
    for writer in {entry.partition(".")[0] for entry in acknowledged}:
        order = [places[entry] for entry in acknowledged if entry.startswith(f"{writer}.") and entry in places]
        if order != sorted(order):
            yield Problem("other", f"the entries of writer {writer} in {thread} changed their order")


def fork(work: Callable[[], object]) -> int:
    """Run a function in a child process; return its number."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    return child


def _drop(journal: st.Journal) -> None:
    with contextlib.suppress(st.SessionTreeError):
        journal.close()


def _say(report: int, *words: str) -> None:
    os.write(report, (" ".join(words).replace("\n", " ")[:400] + "\n").encode())
