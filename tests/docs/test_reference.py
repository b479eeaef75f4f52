"""The reference names everything that is public, and every page can be reached."""

from __future__ import annotations

import inspect
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import get_args

import pytest

import sessiontree as st
from sessiontree.stores.rules.state import Fact

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
API = sorted((DOCS / "reference" / "api").glob("*.md"))
PUBLIC_MODULES = [
    *sorted((ROOT / "src/sessiontree/adapters").glob("[a-z]*.py")),
    *(
        ROOT / f"src/sessiontree/{name}/__init__.py"
        for name in ("adapters/langgraph", "observe", "testing", "transfer/formats")
    ),
]
# A value of another package, and literals and aliases, which Python gives the docstring of their type.
WITHOUT_DOCSTRING = {"UNSET", "DIALECTS", "PRICES"}


def test_every_public_name_stands_in_the_reference_once() -> None:
    named = Counter(
        name for page in API for name in re.findall(r"^::: sessiontree\.(\w+)$", page.read_text(), re.MULTILINE)
    )
    assert named == Counter(set(st.__all__) - {"UNSET"})


def test_every_name_of_a_public_module_stands_in_the_reference() -> None:
    assert len(PUBLIC_MODULES) > 12
    assert [name for path in PUBLIC_MODULES for name in exported(path) if name not in in_the_reference()] == []


def test_every_name_that_a_page_imports_stands_in_the_reference() -> None:
    imported = {
        f"{module}.{name.strip()}"
        for page in DOCS.rglob("*.md")
        for module, names in re.findall(
            r"^ *from (sessiontree[.][\w.]+) import ([\w, ]+)$", page.read_text(), re.MULTILINE
        )
        for name in names.split(",")
    }
    assert len(imported) > 20
    assert sorted(imported - in_the_reference()) == []


def exported(path: Path) -> list[str]:
    """The names in ``__all__`` of a module, which is not imported: the frameworks of adapters are not installed."""
    module = ".".join(path.relative_to(ROOT / "src").with_suffix("").parts).removesuffix(".__init__")
    found = re.search(r"^__all__ = \[(.*?)\]", path.read_text(), re.MULTILINE | re.DOTALL)
    assert found, module
    return [f"{module}.{name}" for name in re.findall(r'"(\w+)"', found[1])]


def in_the_reference() -> set[str]:
    """The names with a part of their own in the reference; those of the package also as names of the modules that have them."""
    named = {name for page in API for name in re.findall(r"^::: ([\w.]+)$", page.read_text(), re.MULTILINE)}
    return named | {f"sessiontree.transfer.formats.{name}" for name in st.__all__}


def test_authors_of_stores_are_told_every_fact() -> None:
    page = (DOCS / "howto" / "write-a-store.md").read_text()
    assert [fact.__name__ for fact in get_args(Fact) if f"`{fact.__name__}`" not in page] == []


def test_what_authors_of_stores_are_told_to_use_stands_in_the_reference() -> None:
    page = (DOCS / "howto" / "write-a-store.md").read_text()
    named = set(re.findall(r"`(sessiontree\.(?:stores|model|testing)[\w.]*)`", page))
    assert len(named) > 8
    reference = in_the_reference()
    known = reference | {module_of(name) for name in reference}
    assert sorted(name for name in named if name not in known and module_of(name) not in reference) == []


def module_of(name: str) -> str:
    return name.rpartition(".")[0]


def test_every_public_class_function_and_method_has_a_docstring() -> None:
    missing = []
    for name in set(st.__all__) - WITHOUT_DOCSTRING:
        value = getattr(st, name)
        if inspect.isclass(value) or inspect.isfunction(value):
            missing += [name] if not value.__doc__ else []
        if inspect.isclass(value):
            missing += [f"{name}.{part}" for part in public_parts(value) if not inspect.getdoc(getattr(value, part))]
    assert missing == []


def test_every_parameter_and_field_is_explained() -> None:
    """In the docstring of its function, its class or itself, or by its name on the page of parameters and fields."""
    explained = set(re.findall(r"`(\w+)`", (DOCS / "reference/api/parameters.md").read_text()))
    missing = []
    for name in set(st.__all__) - WITHOUT_DOCSTRING:
        value = getattr(st, name)
        if inspect.isfunction(value):
            missing += [f"{name}({part})" for part in unexplained(value, explained)]
        if inspect.isclass(value) and not issubclass(value, Exception):
            known = explained.union(*(words(kind.__doc__ or "") for kind in own_kinds(value)))
            missing += [f"{name}.{part}" for part in set(fields_of(value)) - known - explained_fields(value)]
            for method, function in inspect.getmembers(value, inspect.isfunction):
                if not method.startswith("_"):
                    missing += [f"{name}.{method}({part})" for part in unexplained(function, known)]
    assert sorted(missing) == []


def words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text))


def unexplained(function: Callable[..., object], known: set[str]) -> set[str]:
    return set(inspect.signature(function).parameters) - {"self"} - known - words(function.__doc__ or "")


def own_kinds(value: type) -> list[type]:
    """The class and those of this package that it inherits from."""
    return [kind for kind in value.__mro__ if kind.__module__.startswith("sessiontree")]


def fields_of(value: type) -> tuple[str, ...]:
    return getattr(value, "__struct_fields__", ())


def explained_fields(value: type) -> set[str]:
    """The fields with a docstring of their own below them."""
    sources = "".join(map(inspect.getsource, own_kinds(value)))
    return set(re.findall(r'^    (\w+):.*\n    """', sources, re.MULTILINE))


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
