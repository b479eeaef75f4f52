"""The ladder: everything that is done to stores, round by round, and the count of what was lost.

``make torture`` climbs it and writes the table into ``docs/explanation/durability.md``. Each failure prints the command
that repeats it: ``cd tests && python -m torture.ladder --only sqlite:kill/erase:37``.
"""

from __future__ import annotations

import argparse
import logging
import math
import random
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from typing import NamedTuple

from torture import calls, crowds, damage, page, scripts, servers, tracer
from torture.rounds import Outcome, Round, Tally

FILES = ("sqlite", "jsonl")
ALL = (*FILES, "postgres")
_SEEDS = 1 << 30


class Rung(NamedTuple):
    """One thing that is done to stores. ``weight`` is how many rounds of it there are in each turn of the climb."""

    fault: str
    run: Callable[[Round], Outcome]
    stores: tuple[str, ...]
    weight: int = 1


# A folder's restore is settled by inode numbers, which an image of a disk does not have.
_POWER = ("open", *(name for name in scripts.SCRIPTS if name != "restore"))

RUNGS: tuple[Rung, ...] = (
    *(Rung(f"{action}/{name}", calls.interfere, FILES) for name in scripts.SCRIPTS for action in calls.ACTIONS),
    *(Rung(f"power/{name}", calls.cut_power, FILES, 4) for name in _POWER),
    Rung("kill four writers", crowds.kill, ALL, 4),
    Rung("stop a writer", crowds.stop, ALL, 2),
    Rung("stop a holder", crowds.fencing, ALL, 2),
    Rung("clocks jump", crowds.clocks, ALL, 2),
    Rung("sixteen writers", crowds.many, ALL),
    Rung("fork with threads", crowds.forks, ALL),
    Rung("damage", damage.damage, FILES, 6),
    Rung("damage an import", damage.damage_import, FILES, 4),
    *(Rung(f"kill/{name}", servers.kill_process, ("postgres",)) for name in scripts.SCRIPTS),
    Rung("restart the server", servers.restart, ("postgres",)),
    Rung("cut links", servers.cut, ("postgres",), 4),
    Rung("no connections left", servers.slots, ("postgres",)),
    Rung("full disk", servers.full, ("postgres",)),
    Rung("hostile tenant", servers.tenants, ("postgres",), 2),
)
_BY_ROUND = {(store, rung.fault): rung for rung in RUNGS for store in rung.stores}


def repeat(what: Round) -> Outcome:
    """Do one round."""
    return _BY_ROUND[what.store, what.fault].run(what)


def rounds(seed: int) -> Iterator[Round]:
    """Rounds without an end: in each turn some of every rung, in random order.

    The rungs at system calls take every call once before they take one twice.
    """
    source = random.Random(seed)
    waiting: dict[tuple[str, str], list[int]] = {}
    while True:
        turn = [(store, rung) for rung in RUNGS for store in rung.stores for _ in range(rung.weight)]
        source.shuffle(turn)
        for store, rung in turn:
            if rung.run is calls.interfere:
                numbers = waiting.setdefault((store, rung.fault), [])
                if not numbers:
                    numbers += range(1, calls.calls_of(store, rung.fault.partition("/")[2]) + 1)
                    source.shuffle(numbers)
                yield Round(store, rung.fault, numbers.pop())
            else:
                yield Round(store, rung.fault, source.randrange(_SEEDS))


def every_call(action: tracer.Action) -> Iterator[Round]:
    """Each call of every script once with one action."""
    for store, name in product(FILES, scripts.SCRIPTS):
        for number in range(1, calls.calls_of(store, name) + 1):
            yield Round(store, f"{action}/{name}", number)


def climb(chosen: Iterable[Round], end: float = math.inf) -> Tally:
    """Do these rounds one after another until ``end``."""
    tally = Tally()
    for what in chosen:
        if time.monotonic() > end:
            break
        _add(tally, what, repeat(what))
    return tally


def climb_side_by_side(chosen: Iterable[Round]) -> Tally:
    """Do these rounds in a process for each core. Each one has a folder of its own, so they do not meet."""
    tally = Tally()
    every = list(chosen)
    with ProcessPoolExecutor(initializer=_be_silent) as workers:
        for what, outcome in zip(every, workers.map(repeat, every), strict=True):
            _add(tally, what, outcome)
    return tally


def _add(tally: Tally, what: Round, outcome: Outcome) -> None:
    """Count a round, and print its failure with the command that repeats it."""
    failures = len(tally.failures)
    tally.add(what, outcome)
    for failure in tally.failures[failures:]:
        print(f"{failure}\n    repeat with: python -m torture.ladder --only '{what}'", flush=True)


def _be_silent() -> None:
    """The stores warn about faults, which are all made here."""
    logging.getLogger("sessiontree").addHandler(logging.NullHandler())


def _report(tally: Tally, begin: float, run: str) -> str:
    seconds = time.monotonic() - begin
    return f"{tally.table()}\n\n{sum(tally.rounds.values()):,} rounds in {seconds:,.0f} seconds, {run}."


def _climb_at_random(seed: int, seconds: float, stores: tuple[str, ...]) -> bool:
    begin = time.monotonic()
    print(f"seed {seed}", flush=True)
    tally = climb((what for what in rounds(seed) if what.store in stores), begin + seconds)
    text = _report(tally, begin, f"seed {seed}")
    print(text)
    if stores == ALL:
        page.write_part("make torture", text)
    return bool(tally.failures)


def _climb_every_call(actions: Iterable[tracer.Action]) -> bool:
    """Write the page after each action, so a run that is cut short goes on with the actions that it did not come to."""
    has_failed = False
    for action in actions:
        begin = time.monotonic()
        tally = climb_side_by_side(every_call(action))
        text = _report(tally, begin, f"{action} at every call once")
        print(text, flush=True)
        page.write_part(f"make torture-every-call FAULTS={action}", text)
        has_failed |= bool(tally.failures)
    return has_failed


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seconds", type=float, default=1200)
    options.add_argument("--seed", type=int, default=random.SystemRandom().randrange(_SEEDS))
    options.add_argument("--stores", default=",".join(ALL), help="climb with these stores only, and write no page")
    options.add_argument(
        "--every-call", nargs="+", choices=calls.ACTIONS, help="these actions at every system call once, however long"
    )
    options.add_argument("--only", type=Round.parse, help="repeat one round: store:fault:number")
    chosen = options.parse_args()
    _be_silent()
    if chosen.only:
        tally = Tally()
        tally.add(chosen.only, repeat(chosen.only))
        sys.exit("\n".join(tally.failures) or 0)
    if chosen.every_call:
        sys.exit(_climb_every_call(chosen.every_call))
    sys.exit(_climb_at_random(chosen.seed, chosen.seconds, tuple(chosen.stores.split(","))))


if __name__ == "__main__":
    main()
