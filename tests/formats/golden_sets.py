"""Finding the golden data: which folders there are, in which format their stores are, and how they shorten texts."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sessiontree.formats import detect

Json = dict[str, Any]


def sets(fixtures: Path, name: str) -> list[Path]:
    """The folders of golden data whose store is in a format."""
    found = [folder for folder in sorted(fixtures.iterdir()) if folder.is_dir() and name in _formats(folder)]
    assert found, f"{fixtures} has no set of the format {name}"
    return found


def stores(folder: Path, name: str) -> Iterator[Path]:
    """Every source of a format below a set."""
    for place in sorted(folder.iterdir()):
        if place.is_dir() and not place.name.startswith("expected"):
            if detect(place) == name:
                yield place
            else:
                yield from (path for path in sorted(place.iterdir()) if path.is_file() and detect(path) == name)


def _formats(folder: Path) -> set[str]:
    places = [place for place in folder.iterdir() if place.is_dir() and not place.name.startswith("expected")]
    sources = [*places, *(path for place in places for path in place.iterdir() if path.is_file())]
    return {found for source in sources if (found := detect(source))}


def expected(folder: Path, name: str) -> Any:
    return json.loads((folder / "expected" / name).read_text(encoding="utf-8"))


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
