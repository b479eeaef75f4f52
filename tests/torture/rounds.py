"""A round of the ladder, what came of it, and the sums over many rounds."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Literal, NamedTuple, get_args

Kind = Literal["lost", "duplicated", "torn", "hung", "other"]
KINDS: tuple[Kind, ...] = get_args(Kind)


class Round(NamedTuple):
    """What was done to which store, and at which call or with which seed."""

    store: str
    fault: str
    number: int

    def __str__(self) -> str:
        return f"{self.store}:{self.fault}:{self.number}"

    @classmethod
    def parse(cls, text: str) -> Round:
        store, fault, number = text.split(":")
        return cls(store, fault, int(number))


class Problem(NamedTuple):
    """A promise that was broken."""

    kind: Kind
    text: str


class Outcome(NamedTuple):
    """What a round came to. A round that did not apply says why, and is not counted."""

    acknowledged: int = 0
    problems: tuple[Problem, ...] = ()
    skipped: str = ""


class Tally:
    """The sums over rounds, by store and fault; for faults at system calls also by script."""

    def __init__(self) -> None:
        self.rounds: Counter[tuple[str, str]] = Counter()
        self.scripts: Counter[str] = Counter()
        self.acknowledged: Counter[tuple[str, str]] = Counter()
        self.problems: Counter[tuple[str, str, str]] = Counter()
        self.skipped: dict[tuple[str, str], str] = {}
        self.failures: list[str] = []

    def add(self, what: Round, outcome: Outcome) -> None:
        fault, _, script = what.fault.partition("/")
        group = (what.store, fault)
        if outcome.skipped:
            self.skipped[group] = outcome.skipped
            return
        self.rounds[group] += 1
        self.scripts[script] += 1
        self.acknowledged[group] += outcome.acknowledged
        for problem in outcome.problems:
            self.problems[*group, problem.kind] += 1
        if outcome.problems:
            said = "; ".join(f"{problem.kind}: {problem.text}" for problem in outcome.problems)
            self.failures.append(f"{what}: {said[:800]}")

    def table(self) -> str:
        """The counts, one row for each store and fault, and the sum for each store."""
        lines = [
            f"| store | fault | rounds | acknowledged | {' | '.join(KINDS)} |",
            "|---" * (len(KINDS) + 4) + "|",
        ]
        for store in sorted({store for store, _ in self.rounds}):
            groups = sorted(group for group in self.rounds if group[0] == store)
            lines += [self._row(store, fault, [(store, fault)]) for _, fault in groups]
            lines.append(self._row(store, "**all**", groups))
        parts = [f"{name} {count:,}" for name, count in sorted(self.scripts.items()) if name]
        lines += ["", f"Rounds by what the process was doing: {', '.join(parts)}."] if parts else []
        lines += [
            f"\nSkipped: {fault} on {store}, because {why}." for (store, fault), why in sorted(self.skipped.items())
        ]
        return "\n".join(lines)

    def _row(self, store: str, fault: str, groups: Iterable[tuple[str, str]]) -> str:
        chosen = list(groups)
        figures = [
            sum(self.rounds[group] for group in chosen),
            sum(self.acknowledged[group] for group in chosen),
            *(sum(self.problems[*group, kind] for group in chosen) for kind in KINDS),
        ]
        return f"| {store} | {fault} | {' | '.join(f'{figure:,}' for figure in figures)} |"


def url_of(store: str, folder: Path) -> str:
    """The address of the store of a round in its folder."""
    return f"{store}:///{folder / 'store'}"


def new_folder() -> tempfile.TemporaryDirectory[str]:
    """A folder for one round."""
    return tempfile.TemporaryDirectory(prefix="torture", ignore_cleanup_errors=True)
