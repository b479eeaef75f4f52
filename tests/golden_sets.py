"""Golden data: which sets there are, in which format their stores are, and which of their files a test has opened.

A set is a folder with stores and with the answers that the original program gave: files whose name, or whose folder's
name, begins with ``expected``. Nothing here knows what is in them, so another collection of the same shape will do.
"""

from __future__ import annotations

import ast
import hashlib
import json
from collections.abc import Iterator
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from sessiontree.transfer.formats import detect

Json = dict[str, Any]

opened: set[Path] = set()
"""The answers that were read since a test began."""


STORE_FORMATS = ("native", "floret", "ggcode", "zimaos", "openrouter", "pi", "picoclaw")
"""The formats that hold a whole store: what is exported and imported again comes back."""


class GoldenSet(NamedTuple):
    folder: Path
    format: str

    @property
    def store(self) -> Path:
        """The sound store, if it is a folder."""
        return self.folder / "store"

    def stores(self) -> Iterator[Path]:
        """Every source of the set's format."""
        return (source for source in _sources(self.folder) if detect(source) == self.format)

    def has(self, name: str) -> bool:
        return (self.folder / name).is_file()

    def matching(self, pattern: str) -> list[str]:
        """The answers whose path below the set fits a pattern."""
        return [name for name in self.answers() if fnmatch(name, pattern)]

    def answers(self) -> list[str]:
        """The paths of all answers, below the set."""
        places = [place for place in sorted(self.folder.iterdir()) if place.name.startswith("expected")]
        files = [path for place in places for path in ([place] if place.is_file() else sorted(place.rglob("*")))]
        return [str(path.relative_to(self.folder)) for path in files if path.is_file()]

    def text(self, name: str) -> str:
        opened.add(self.folder / name)
        return (self.folder / name).read_bytes().decode()

    def expected(self, name: str, missing: Any = None) -> Any:
        """An answer from the folder ``expected``; a set need not have all of them, so one may say what to take instead."""
        if missing is not None and not self.has(f"expected/{name}"):
            return missing
        return json.loads(self.text(f"expected/{name}"))


@cache
def sets(fixtures: Path, name: str) -> tuple[GoldenSet, ...]:
    """The sets whose stores are in a format."""
    return tuple(GoldenSet(folder, name) for folder in folders(fixtures) if name in _formats(folder))


def folders(fixtures: Path) -> list[Path]:
    """Every folder of golden data, whatever its stores are."""
    return [folder for folder in sorted(fixtures.iterdir()) if folder.is_dir()]


def _formats(folder: Path) -> set[str]:
    return {found for source in _sources(folder) if (found := detect(source))}


def _sources(folder: Path) -> Iterator[Path]:
    for place in sorted(folder.iterdir()):
        if place.is_dir() and not place.name.startswith("expected"):
            yield place
            yield from (path for path in sorted(place.iterdir()) if path.is_file())


def replays(tests: Path) -> Iterator[tuple[str, str]]:
    """Format and pattern of everything that some golden test says it replays."""
    for path in sorted(tests.rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "replays":
                name, *patterns = (ast.literal_eval(argument) for argument in node.args)
                yield from ((name, pattern) for pattern in patterns)


def shortened(value: Any) -> Any:
    """Long strings as the golden files write them: by their hash."""
    if isinstance(value, dict):
        return {key: shortened(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [shortened(item) for item in value]
    if isinstance(value, str) and len(value.encode()) > 1500:
        body = value.encode()
        return {"$long": {"sha256": hashlib.sha256(body).hexdigest(), "bytes": len(body), "chars": len(value)}}
    return value
