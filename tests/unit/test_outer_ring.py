"""The outer ring imports no private module of another package; pyproject.toml has the rest of that contract."""

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
SOURCE = ROOT / "src"
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
RING = next(one for one in CONTRACTS if one["name"].startswith("The outer ring"))["source_modules"]
FILES = [path for name in RING for path in sorted((SOURCE / name.replace(".", "/")).rglob("*.py"))]


def imported_modules(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.Import(names=names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(module=str() as module, names=names, level=0):
                yield from (f"{module}.{alias.name}" for alias in names)


def is_private(name: str) -> bool:
    return any(part.startswith("_") and not part.startswith("__") for part in name.split("."))


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE / "sessiontree")))
def test_no_private_module_of_another_package_is_imported(path: Path) -> None:
    own = ".".join(path.relative_to(SOURCE).parts[:2]) + "."
    found = {name for name in imported_modules(path) if name.startswith("sessiontree.") and not name.startswith(own)}
    assert [name for name in sorted(found) if is_private(name)] == []


def test_the_ring_is_there() -> None:
    assert {"sessiontree.cli", "sessiontree.transfer"} <= set(RING)
    assert len(FILES) > 50
