"""The reference names everything that is public, and every page can be reached."""

from __future__ import annotations

import inspect
import re
from collections import Counter
from pathlib import Path
from typing import get_args

import pytest

import sessiontree as st
from sessiontree.stores.rules.state import Fact

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
API = sorted((DOCS / "reference" / "api").glob("*.md"))
# A value of another package, and literals and aliases, which Python gives the docstring of their type.
WITHOUT_DOCSTRING = {"UNSET", "DIALECTS", "PRICES"}


def test_every_public_name_stands_in_the_reference_once() -> None:
    named = Counter(
        name for page in API for name in re.findall(r"^::: sessiontree\.(\w+)$", page.read_text(), re.MULTILINE)
    )
    assert named == Counter(set(st.__all__) - {"UNSET"})


def test_authors_of_stores_are_told_every_fact() -> None:
    page = (DOCS / "howto" / "write-a-store.md").read_text()
    assert [fact.__name__ for fact in get_args(Fact) if f"`{fact.__name__}`" not in page] == []


def test_every_public_class_function_and_method_has_a_docstring() -> None:
    missing = []
    for name in set(st.__all__) - WITHOUT_DOCSTRING:
        value = getattr(st, name)
        if inspect.isclass(value) or inspect.isfunction(value):
            missing += [name] if not value.__doc__ else []
        if inspect.isclass(value):
            missing += [f"{name}.{part}" for part in public_parts(value) if not inspect.getdoc(getattr(value, part))]
    assert missing == []


def public_parts(value: type) -> list[str]:
    kinds = (property, classmethod, staticmethod)
    return [
        name
        for name, part in vars(value).items()
        if not name.startswith("_") and (inspect.isfunction(part) or isinstance(part, kinds))
    ]


@pytest.mark.parametrize(
    "page",
    [page for page in sorted(DOCS.rglob("*.md")) if page.parent.name != "adr"],
    ids=lambda page: str(page.relative_to(DOCS)),
)
def test_the_page_is_in_the_table_of_contents(page: Path) -> None:
    contents = (ROOT / "mkdocs.yml").read_text()
    assert contents.count(f"- {page.relative_to(DOCS)}\n") == 1
