"""What releases promised to keep is still there."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import sessiontree
from doc_pages import ROOT

RECORDS = sorted(ROOT.glob("tests/data/public_names/*.txt"))
MODULES = ("sessiontree", "sessiontree.observe", "sessiontree.testing", "sessiontree.transfer.formats")


def public_names() -> Iterator[str]:
    """Every public name of today, and the public attributes of every public class."""
    for module_name in MODULES:
        module = importlib.import_module(module_name)
        for name in module.__all__:
            yield f"{module_name}.{name}"
            value = getattr(module, name)
            if inspect.isclass(value):
                yield from (f"{module_name}.{name}.{member}" for member in own_members(value))


def own_members(kind: type) -> Iterator[str]:
    """The public attributes of a class, without those of the classes of other packages that it inherits from."""
    for base in kind.__mro__:
        if base.__module__.startswith("sessiontree"):
            yield from (member for member in vars(base) if not member.startswith("_"))


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.stem)
def test_every_public_name_of_a_release_is_still_there(record: Path) -> None:
    missing = set(record.read_text(encoding="utf-8").split()) - set(public_names())
    assert sorted(missing) == [], "deprecate a name before you remove it: docs/explanation/compatibility.md"


def test_this_release_has_a_record_of_its_public_names() -> None:
    """To write it: ``python tests/docs/test_compatibility.py > tests/data/public_names/VERSION.txt``."""
    assert sessiontree.__version__ in {record.stem for record in RECORDS}


def test_the_page_of_versions_has_every_version_of_the_changelog() -> None:
    assert '--8<-- "CHANGELOG.md:versions"' in (ROOT / "docs/versions.md").read_text(encoding="utf-8")
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    shown = changelog.partition("[start:versions]")[2].partition("[end:versions]")[0]
    assert re.findall(r"^## .*", shown, re.MULTILINE) == re.findall(r"^## .*", changelog, re.MULTILINE)
    assert f"\n## {sessiontree.__version__} (" in shown


def test_the_site_names_its_version() -> None:
    assert f"Version {sessiontree.__version__}." in (ROOT / "docs/index.md").read_text(encoding="utf-8")
    assert f"site_name: sessiontree {sessiontree.__version__} " in (ROOT / "mkdocs.yml").read_text(encoding="utf-8")


if __name__ == "__main__":
    print(*sorted(set(public_names())), sep="\n")
