"""The ladder: everything that is done to stores, round by round, and the count of what was lost.

``make torture`` climbs it and writes the table into ``docs/explanation/durability.md``. Each failure prints the command
that repeats it: ``cd tests && python -m torture.ladder --only sqlite:kill/erase:37``.
"""

from __future__ import annotations

import argparse
import logging
import random
import sys
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

from torture import calls, crowds, damage, page, scripts, servers
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


def climb(seconds: float, seed: int, stores: tuple[str, ...] = ALL) -> Tally:
    """Climb for some time."""
    tally = Tally()
    end = time.monotonic() + seconds
    for what in rounds(seed):
        if time.monotonic() > end:
            break
        if what.store in stores:
            failures = len(tally.failures)
            tally.add(what, repeat(what))
            for failure in tally.failures[failures:]:
                print(f"{failure}\n    repeat with: python -m torture.ladder --only '{what}'", flush=True)
    return tally


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seconds", type=float, default=1200)
    options.add_argument("--seed", type=int, default=random.SystemRandom().randrange(_SEEDS))
    options.add_argument("--stores", default=",".join(ALL), help="climb with these stores only, and write no page")
    options.add_argument("--only", type=Round.parse, help="repeat one round: store:fault:number")
    chosen = options.parse_args()
    # The stores warn about faults, which are all made here.
    logging.getLogger("sessiontree").addHandler(logging.NullHandler())
    if chosen.only:
        tally = Tally()
        tally.add(chosen.only, repeat(chosen.only))
        sys.exit("\n".join(tally.failures) or 0)
    print(f"seed {chosen.seed}", flush=True)
    stores = tuple(chosen.stores.split(","))
    tally = climb(chosen.seconds, chosen.seed, stores)
    text = f"{tally.table()}\n\n{sum(tally.rounds.values()):,} rounds in {chosen.seconds:,.0f} seconds, seed {chosen.seed}."
    print(text)
    if stores == ALL:
        page.write_part("make torture", text)
    sys.exit(bool(tally.failures))


if __name__ == "__main__":
    main()
