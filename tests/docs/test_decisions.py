"""Decisions are pages of one form: a number, then context, decision and consequences."""

from __future__ import annotations

import re

from doc_pages import ROOT

DECISIONS = sorted((ROOT / "docs/adr").glob("*.md"))


def test_every_decision_has_the_same_three_parts() -> None:
    parts = {page.name: re.findall(r"^## (.*)", page.read_text(encoding="utf-8"), re.MULTILINE) for page in DECISIONS}
    assert len(parts) > 70
    assert [name for name, found in parts.items() if found != ["Context", "Decision", "Consequences"]] == []


def test_no_part_of_a_decision_is_empty() -> None:
    assert [page.name for page in DECISIONS if re.search(r"^## \w+\s+(## |\Z)", page.read_text(), re.MULTILINE)] == []


def test_the_title_of_a_decision_begins_with_the_number_of_its_file() -> None:
    numbers = [int(page.name[:4]) for page in DECISIONS]
    assert len(set(numbers)) == len(numbers)
    titles = [page.read_text(encoding="utf-8").partition("\n")[0] for page in DECISIONS]
    assert [title for number, title in zip(numbers, titles, strict=True) if not title.startswith(f"# {number}. ")] == []
