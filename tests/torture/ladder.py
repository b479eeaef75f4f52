"""The ladder: interfere with every system call of a script, kill crowds of writers, and count what was lost.

``make torture`` climbs it and writes the table into ``docs/explanation/durability.md``. Each failure prints the command
that repeats it: ``python -m torture.ladder --only sqlite:kill:37``.
"""

from __future__ import annotations

import argparse
import itertools
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from functools import cache
from pathlib import Path
from typing import NamedTuple, get_args

import sessiontree as st
from torture import power, script, tracer

KINDS = ("sqlite", "jsonl")
ACTIONS: tuple[tracer.Action, ...] = tuple(name for name in get_args(tracer.Action) if name != "count")
OTHERS = ("power", "crowd")
PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "durability.md"
_START, _END = "<!-- written by make torture -->", "<!-- end of the table -->"


class Round(NamedTuple):
    """One run: what was done to which store, and at which call or with which seed."""

    kind: str
    action: str
    number: int

    def __str__(self) -> str:
        return f"{self.kind}:{self.action}:{self.number}"


class Tally:
    """What the rounds of one kind came to."""

    def __init__(self) -> None:
        self.rounds: Counter[str] = Counter()
        self.counts: Counter[str] = Counter()
        self.failures: list[str] = []

    def add(self, what: Round, acknowledged: int, found: list[str], *, has_hung: bool) -> None:
        self.rounds[what.action] += 1
        self.counts["acknowledged"] += acknowledged
        self.counts["hung"] += has_hung
        for problem in found:
            word = "lost" if problem.startswith("lost") else "damaged" if problem.startswith("damaged") else "other"
            self.counts[word] += 1
        problems = [*found, *(["hung"] if has_hung else [])]
        if problems:
            self.failures.append(f"{what}: {'; '.join(problems)[:600]}")


def calls_of(kind: str, steps: int = len(script.STEPS)) -> int:
    """How many calls the first steps of the script make on a new store; without steps, opening and closing it."""
    with _folder() as folder:
        return _traced(kind, Path(folder), "count", 0, steps)[0].calls


def sweep(what: Round, tally: Tally, pictures: list[script.Picture], steps: int = len(script.STEPS)) -> bool:
    """Interfere with one call; return whether the script got that far."""
    with _folder() as name:
        folder = Path(name)
        ended, told = _traced(what.kind, folder, what.action, what.number, steps)  # type: ignore[arg-type]
        found = [] if ended.has_hung else script.violations(_url(what.kind, folder), folder, told, pictures)
        tally.add(what, told.acknowledged, found, has_hung=ended.has_hung)
        return bool(ended.hit)


class Recording(NamedTuple):
    """Every change that the script made to a folder."""

    folder: Path
    changes: list[power.Change]


@cache
def record(kind: str) -> Recording:
    """Run the script once and record it."""
    with _folder() as name:
        folder = Path(name)
        reading, writing = os.pipe()
        recorder = power.Recorder(folder, writing)
        tracer.run(
            lambda: script.perform(_url(kind, folder), writing), "count", 0, ignored=writing, observe=recorder.observe
        )
        os.close(writing)
        assert script.read(reading) == script.Told(len(script.STEPS), "")
        return Recording(folder, recorder.changes)


def cut_power(what: Round, tally: Tally, pictures: list[script.Picture]) -> None:
    """Open the store as it could be after a power cut at a random moment of the script."""
    source = random.Random(what.number)
    recording = record(what.kind)
    changes = recording.changes[: source.randint(0, len(recording.changes))]
    with _folder() as name:
        reports = power.disk_after(changes, recording.folder, Path(name), source)
        # The first report says that the store is open, and the last one that it is closed.
        told = script.Told(min(max(0, reports - 1), len(script.STEPS)), "")
        found = script.violations(_url(what.kind, Path(name)), Path(name), told, pictures)
        tally.add(what, told.acknowledged, found, has_hung=False)


def repeat(what: Round, tally: Tally, pictures: list[script.Picture]) -> None:
    """Do one round."""
    match what.action:
        case "crowd":
            crowd(what, tally)
        case "power":
            cut_power(what, tally, pictures)
        case _:
            sweep(what, tally, pictures)


def crowd(what: Round, tally: Tally) -> None:
    """Kill four writers at a random moment; everything that they reported must be there once, in order."""
    source = random.Random(what.number)
    with _folder() as name:
        url = _url(what.kind, Path(name))
        with st.open(url) as journal:
            for thread in "abcd":
                journal.create_thread(thread)
        reading, writing = os.pipe()
        writers = [_fork(lambda number=number: _write(url, number, writing)) for number in range(4)]
        os.close(writing)
        time.sleep(source.uniform(0.05, 0.4))
        for writer in writers:
            os.kill(writer, signal.SIGKILL)
        for writer in writers:
            os.waitpid(writer, 0)
        with os.fdopen(reading) as file:
            said = [line.split() for line in file.read().splitlines()]
        found: list[str] = []
        with st.open(url) as journal:
            for thread in "abcd":
                ids = [entry.id for entry in journal.entries(thread)]
                acknowledged = [entry for where, entry in said if where == thread]
                if len(set(ids)) != len(ids) or not set(acknowledged) <= set(ids):
                    found.append(f"lost or doubled in {thread}: {sorted(set(acknowledged) - set(ids))[:5]}")
            found += [f"damaged: {finding.problem}" for finding in journal.check() if finding.kind != "torn"]
        tally.add(what, len(said), found, has_hung=False)


def all_rounds() -> list[Round]:
    """Every action at every call."""
    return [
        Round(kind, action, number) for kind in KINDS for number in range(1, calls_of(kind) + 1) for action in ACTIONS
    ]


def climb(seconds: float, seed: int) -> dict[str, Tally]:
    """Climb for some time: every action at every call in random order, power cuts and crowds in between."""
    pictures = script.expected()
    tallies = {kind: Tally() for kind in KINDS}
    source = random.Random(seed)
    rounds = all_rounds()
    source.shuffle(rounds)
    end = time.monotonic() + seconds
    for position in itertools.count():
        if time.monotonic() > end:
            return tallies
        kind = KINDS[position % 2]
        chosen = [Round(kind, "power", source.randrange(1 << 30))]
        if rounds:
            chosen.append(rounds.pop())
        if position % 8 < len(KINDS) or not rounds:
            chosen.append(Round(kind, "crowd", source.randrange(1 << 30)))
        for what in chosen:
            repeat(what, tallies[what.kind], pictures)
    raise AssertionError("the count has no end")


def table(tallies: dict[str, Tally], seed: int) -> str:
    """The counts as a table."""
    words = ("acknowledged", "lost", "damaged", "hung", "other")
    lines = [
        f"| store | {' | '.join((*ACTIONS, *OTHERS, *words))} |",
        "|---" * (len(ACTIONS) + len(OTHERS) + len(words) + 1) + "|",
    ]
    for kind, tally in tallies.items():
        figures = [tally.rounds[action] for action in (*ACTIONS, *OTHERS)] + [tally.counts[word] for word in words]
        lines.append(f"| {kind} | {' | '.join(f'{figure:,}' for figure in figures)} |")
    return "\n".join([*lines, "", f"Seed {seed}."])


def write_page(text: str) -> None:
    """Replace the table in the documentation."""
    page = PAGE.read_text()
    before, _, rest = page.partition(_START)
    PAGE.write_text(f"{before}{_START}\n{text}\n{_END}{rest.partition(_END)[2]}")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seconds", type=float, default=1200)
    options.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 30))
    options.add_argument("--only", help="repeat one round: store:action:number")
    chosen = options.parse_args()
    if chosen.only:
        kind, action, number = chosen.only.split(":")
        tally = Tally()
        what = Round(kind, action, int(number))
        repeat(what, tally, script.expected())
        sys.exit("\n".join(tally.failures) or 0)
    print(f"seed {chosen.seed}", flush=True)
    tallies = climb(chosen.seconds, chosen.seed)
    text = table(tallies, chosen.seed)
    print(text)
    write_page(text)
    failures = [failure for tally in tallies.values() for failure in tally.failures]
    for failure in failures:
        print(f"{failure}\n    repeat with: python -m torture.ladder --only {failure.split(': ')[0]}")
    sys.exit(bool(failures))


def _traced(
    kind: str, folder: Path, action: tracer.Action, number: int, steps: int
) -> tuple[tracer.Traced, script.Told]:
    reading, writing = os.pipe()
    ended = tracer.run(lambda: script.perform(_url(kind, folder), writing, steps), action, number, ignored=writing)
    os.close(writing)
    return ended, script.read(reading)


def _write(url: str, number: int, report: int) -> None:
    journal = st.open(url)
    count = 0
    while True:
        count += 1
        thread, entry = "abcd"[(number + count) % 4], f"{number}.{count}"
        journal.append(thread, st.user("x" * (count % 700)), id=entry)
        os.write(report, f"{thread} {entry}\n".encode())


def _fork(work: object) -> int:
    child = os.fork()
    if child == 0:
        try:
            work()  # type: ignore[operator]
        finally:
            os._exit(1)
    return child


def _url(kind: str, folder: Path) -> str:
    return f"{kind}:///{folder / 'store'}"


def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="torture", ignore_cleanup_errors=True)


if __name__ == "__main__":
    main()
