"""Which rows of docs/reference/seeds.tsv a test of a seed program calls."""

from __future__ import annotations

import csv
import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

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


def resolve(name: str) -> Any:
    """The module, class, function or field that a dotted name means."""
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            found: Any = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for part in parts[cut:]:
            found = getattr(found, part) if hasattr(found, part) else get_type_hints(found)[part]
        return found
    raise AssertionError(f"{name} leads nowhere")
