"""Which rows of docs/reference/seeds.tsv a test of a seed program calls."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

TABLE = Path(__file__).parents[1] / "docs" / "reference" / "seeds.tsv"
PROGRAMS = {"000": "floret", "001": "picoclaw", "002": "ggcode", "003": "zimaos", "004": "openrouter"}

Test = TypeVar("Test", bound=Callable[..., object])


def rows() -> list[dict[str, str]]:
    with TABLE.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


def covers(*symbols: str) -> Callable[[Test], Test]:
    """Mark a test in tests/seeds: it calls what these symbols became and compares what comes back with the seed's rules."""

    def mark(test: Test) -> Test:
        vars(test)["symbols"] = (*symbols_of(test), *symbols)
        return test

    return mark


def symbols_of(test: object) -> tuple[str, ...]:
    found: tuple[str, ...] = getattr(test, "symbols", ())
    return found
