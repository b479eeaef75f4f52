"""Claims are backed: where a page names a test or a benchmark, it exists; where a claim needs one, it is named.

A page names a test by a link with the name of the test as its title, or in code: `tests/x.py::test_y`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from doc_pages import ROOT

README = ROOT / "README.md"
PROMISES = ROOT / "docs/explanation/promises.md"
EXPLANATIONS = sorted(ROOT.glob("docs/explanation/*.md"))
PLACES = r"(?:tests|tests_adapters|benchmarks|src/sessiontree/testing)/"
LINK = re.compile(rf'\]\(({PLACES}[^) "]*)(?: "(\w+)")?\)')
CODE = re.compile(rf"`({PLACES}[\w./]*)(?:::(\w+))?`")
TARGET = re.compile(r"`make ([\w-]+)`")


def named_by(text: str) -> Iterator[tuple[str, str]]:
    """The files that a text names, each with the test in it, if it names one."""
    for pattern in (LINK, CODE):
        for found in pattern.finditer(text):
            yield found[1], found[2] or ""


def rows(page: Path, heading: str) -> list[list[str]]:
    """The rows of the table below a heading, without its head."""
    part = page.read_text(encoding="utf-8").partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    table = [line for line in part.splitlines() if line.startswith("|")]
    assert len(table) > 2, f"{page.name} has no table below {heading!r}"
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table[2:]]


@pytest.mark.parametrize("page", [README, *EXPLANATIONS], ids=lambda page: page.name)
def test_tests_and_benchmarks_that_a_page_names_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    targets = (ROOT / "Makefile").read_text(encoding="utf-8")
    missing = [
        f"make {target}" for target in TARGET.findall(text) if not re.search(rf"^{target}:", targets, re.MULTILINE)
    ]
    for file, test in named_by(text):
        path = ROOT / file
        if not path.exists() or (test and f"def {test}(" not in path.read_text(encoding="utf-8")):
            missing.append(f"{file}::{test}")
    assert missing == []


def test_every_line_of_what_holds_here_names_what_shows_it() -> None:
    unbacked = [row for row in rows(README, "What goes wrong elsewhere, and holds here") if not list(named_by(row[2]))]
    assert unbacked == []


def test_every_comparison_names_a_test_of_ours_and_the_documentation_of_the_others() -> None:
    what_it_is, *claims = rows(README, "Beside what people use today")
    assert what_it_is[0] == "what it is"
    for name, ours, *others in claims:
        assert list(named_by(ours)), f"{name}: {ours}"
        for theirs in others:
            assert theirs == "–" or "](https://" in theirs, f"{name}: {theirs}"


def test_every_promise_names_what_shows_it() -> None:
    promised = re.findall(r"^(\d+)\. \*\*", PROMISES.read_text(encoding="utf-8"), re.MULTILINE)
    shown = [number for number, shown_by in rows(PROMISES, "What shows it") if list(named_by(shown_by))]
    assert shown == promised


def test_the_places_that_the_layout_names_exist() -> None:
    text = (ROOT / "docs/explanation/layout.md").read_text(encoding="utf-8")
    places = re.findall(r"`(\w[\w/]*/[\w.]+)`", text) + re.findall(r"^  ([\w/]+\.py) ", text, re.MULTILINE)
    assert len(places) > 12
    assert [
        place for place in places if not any((ROOT / top / place).exists() for top in ("", "src/sessiontree"))
    ] == []
