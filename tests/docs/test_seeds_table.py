"""The table of the seeds' symbols: every row is complete, leads to a name of ours, and has a test that calls it."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import textwrap
from pathlib import Path
from typing import Any

import pytest

from seed_rows import PROGRAMS, resolve, rows, symbols_of

STATES = {"does it", "differently"}
SEEDS = Path(__file__).parents[1] / "seeds"
PAGES = Path(__file__).parents[2] / "docs" / "howto"
TESTED = [seed for seed, program in PROGRAMS.items() if any(SEEDS.glob(f"test_{program}*.py"))]


def test_every_row_is_complete_and_stands_once() -> None:
    found = rows()
    assert list(found[0]) == ["seed", "kind", "symbol", "ours", "state", "note"]
    assert all(all(row.values()) for row in found)
    names = [(row["seed"], row["symbol"]) for row in found]
    assert len(set(names)) == len(names) == 304


def test_every_row_says_whether_it_does_what_the_seed_does() -> None:
    assert {row["state"] for row in rows()} <= STATES


@pytest.mark.parametrize("name", sorted({row["ours"] for row in rows()}))
def test_the_name_leads_somewhere(name: str) -> None:
    assert resolve(name) is not None


@pytest.mark.parametrize(("seed", "program"), PROGRAMS.items())
def test_the_page_for_people_who_come_from_a_seed_names_every_symbol(seed: str, program: str) -> None:
    lines = (PAGES / f"coming-from-{program}.md").read_text(encoding="utf-8").splitlines()
    there = {word for line in lines if line.startswith("|") for word in re.findall(r"\w+", line.split("|")[1])}
    symbols = {row["symbol"].rpartition(".")[2] for row in rows() if row["seed"] == seed}
    assert symbols <= there, f"not in the table of {program}: {sorted(symbols - there)}"


@pytest.mark.parametrize("seed", TESTED)
def test_every_row_is_called_by_a_test(seed: str) -> None:
    named = {symbol for test in calls_of(seed) for symbol in symbols_of(test)}
    symbols = {row["symbol"] for row in rows() if row["seed"] == seed}
    wanted = {row["symbol"] for row in rows() if row["seed"] == seed}
    assert named <= symbols, f"not in the table: {sorted(named - symbols)}"
    assert wanted <= named, f"without a test: {sorted(wanted - named)}"


@pytest.mark.parametrize("seed", TESTED)
def test_a_test_of_a_row_compares_what_the_call_gives(seed: str) -> None:
    for test in calls_of(seed):
        if symbols_of(test):
            tree = ast.parse(textwrap.dedent(inspect.getsource(inspect.unwrap(test))))
            assert any(compares(node) for node in ast.walk(tree)), f"{test.__name__} compares nothing"


@pytest.mark.parametrize("seed", TESTED)
def test_the_tests_use_the_names_of_the_table(seed: str) -> None:
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in files_of(seed)]
    used = {name for tree in trees for node in ast.walk(tree) for name in names_in(node)}
    ours = {row["ours"].rpartition(".")[2] for row in rows() if row["seed"] == seed}
    assert ours <= used, f"never used: {sorted(ours - used)}"


def compares(node: ast.AST) -> bool:
    return isinstance(node, ast.Assert) or (isinstance(node, ast.Attribute) and node.attr == "raises")


def names_in(node: ast.AST) -> list[str]:
    """What code outside of imports and texts names."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.keyword(arg=str(name)):
            return [name]
    return []


def calls_of(seed: str) -> list[Any]:
    modules = [importlib.import_module(f"seeds.{path.stem}") for path in files_of(seed)]
    return [
        found
        for module in modules
        for name, found in vars(module).items()
        if name.startswith("test_") and inspect.isfunction(found)
    ]


def files_of(seed: str) -> list[Path]:
    return sorted(SEEDS.glob(f"test_{PROGRAMS[seed]}*.py"))
