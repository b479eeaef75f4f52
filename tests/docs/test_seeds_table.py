"""The table of the seeds' symbols: every row is whole, and every name of ours leads somewhere."""

from __future__ import annotations

import csv
import importlib
import typing
from pathlib import Path
from typing import Any

import pytest

TABLE = Path(__file__).parents[2] / "docs" / "reference" / "seeds.tsv"


def rows() -> list[dict[str, str]]:
    with TABLE.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


def test_every_row_is_whole_and_stands_once() -> None:
    found = rows()
    assert list(found[0]) == ["seed", "kind", "symbol", "ours", "note"]
    assert all(all(row.values()) for row in found)
    names = [(row["seed"], row["kind"], row["symbol"]) for row in found]
    assert len(set(names)) == len(names) == 304


@pytest.mark.parametrize("name", sorted({row["ours"] for row in rows()}))
def test_the_name_leads_somewhere(name: str) -> None:
    assert resolve(name) is not None


def resolve(name: str) -> Any:
    """The module, class, function or field that a dotted name means."""
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            found: Any = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for part in parts[cut:]:
            found = getattr(found, part) if hasattr(found, part) else typing.get_type_hints(found)[part]
        return found
    raise AssertionError(f"{name} leads nowhere")
