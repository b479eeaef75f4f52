"""Ignore rules: .gitignore and .sessiontreeignore in every folder, on top of the defaults.

The nearest folder decides; in a folder .sessiontreeignore comes before .gitignore, and in a file the last matching line
counts. An ignored folder is not entered, as in git. Settings hold the limits on what a snapshot takes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Literal, NamedTuple

from sessiontree.model._base import Record

__all__ = [
    "DEFAULT_IGNORES",
    "IGNORE_FILES",
    "STATE_DIR",
    "Conflicts",
    "Rules",
    "Settings",
    "ignored_by",
    "root_rules",
]


STATE_DIR = ".sessiontree"
"""Kept inside every workspace: the stat cache, the lock, and a restore that is under way."""

DEFAULT_IGNORES = (
    "node_modules/", ".venv/", "venv/", ".virtualenv/", "__pycache__/", "*.pyc", ".mypy_cache/", ".pytest_cache/",
    ".ruff_cache/", ".hypothesis/", ".tox/", ".nox/", ".cache/", ".gradle/", ".terraform/", ".next/", ".nuxt/",
    ".parcel-cache/", ".turbo/", ".svn/", ".hg/", ".DS_Store", "Thumbs.db",
)  # fmt: skip
"""Files that tools rebuild. ``!name`` in a ``.sessiontreeignore`` includes one again."""

Conflicts = Literal["stop", "force", "keep_mine"]
"""What a restore does about paths changed outside a turn: refuse, overwrite them, or leave them as they are."""

_MIB = 1024 * 1024


class Settings(Record, frozen=True, kw_only=True):
    """What a snapshot takes. ``ignore`` adds patterns in .gitignore form to the defaults and the files in the folder.

    ``names="portable"`` refuses names that cannot exist on a case-insensitive file system, on every system.
    """

    max_file_bytes: int = 100 * _MIB
    max_total_bytes: int = 4096 * _MIB
    ignore: tuple[str, ...] = ()
    default_ignores: tuple[str, ...] = DEFAULT_IGNORES
    names: Literal["native", "portable"] = "native"


IGNORE_FILES = (".gitignore", ".sessiontreeignore")
"""Weakest first."""

_FOLDER_MARK = "ps_d"
"""The group of pathspec's expressions that matches the slash after a folder."""

_STAR = "[^/]*"
"""The expression that pathspec writes for a star."""

_NEVER_AT_ROOT = frozenset({STATE_DIR})
_NEVER_ANYWHERE = frozenset({".git"})


class _Line(NamedTuple):
    regex: re.Pattern[str]
    include: bool


class Rules:
    """The rules in force inside one folder; ``fingerprint`` changes whenever a decision could."""

    def __init__(
        self, prefix: str, lines: Iterable[str], above: Rules | None, never: frozenset[str], names: str = ""
    ) -> None:
        self._prefix = prefix
        self._lines = tuple(lines)
        self._above = above
        self._never = never
        from hashlib import sha256  # noqa: PLC0415  slow to load, and every journal imports this module

        digest = sha256("\n".join((prefix, *self._lines)).encode("utf-8", "surrogateescape"))
        digest.update(repr((sorted(never), names)).encode("utf-8", "surrogateescape"))
        self.fingerprint: bytes = sha256((above.fingerprint if above else b"") + digest.digest()).digest()

    def within(self, folder: str, texts: Iterable[bytes]) -> Rules:
        """Return the rules inside a subfolder, given the texts of its ignore files, weakest first."""
        lines = [line for text in texts for line in text.decode("utf-8", "surrogateescape").splitlines()]
        return Rules(folder + "/" if folder else "", lines, self, self._never) if lines else self

    def forbids(self, path: str, name: str) -> bool:
        """Return whether a path is never taken, whatever the ignore files say."""
        return name in _NEVER_ANYWHERE or path in _NEVER_AT_ROOT or path in self._never

    def ignores(self, path: str, name: str, *, is_folder: bool) -> bool:
        """Return whether a path is ignored; the folders above it are not."""
        return self.forbids(path, name) or self._verdict(path + "/" if is_folder else path) is True

    def _verdict(self, path: str) -> bool | None:
        inside = path[len(self._prefix) :]
        for regex, is_ignored in self._patterns:
            found = regex.match(inside)
            if found is not None and _is_about_itself(found, inside):
                return is_ignored
        return self._above._verdict(path) if self._above is not None else None  # noqa: SLF001  the same class

    @cached_property
    def _patterns(self) -> list[tuple[re.Pattern[str], bool]]:
        """Strongest first."""
        return [(line.regex, line.include) for line in _parsed(reversed(self._lines))]


def _parsed(lines: Iterable[str]) -> Iterator[_Line]:
    """Yield the patterns; invalid lines are skipped, as git does."""
    from pathspec import GitIgnoreSpec  # noqa: PLC0415  slow to import, and only a scan needs it

    for line in lines:
        try:
            (pattern,) = GitIgnoreSpec.from_lines([line]).patterns
        except (ValueError, re.error):
            continue
        if pattern.regex is not None and pattern.include is not None:
            yield _Line(re.compile(_without_retries(pattern.regex.pattern)), pattern.include)


def _without_retries(expression: str) -> str:
    """Return an equal expression that does not backtrack exponentially over the stars in a name.

    The part after a star is matched where it first occurs: if the rest does not match from there, it never does.
    """
    first, *rest = expression.split(_STAR)
    for number, part in enumerate(rest[:-1]):
        rest[number] = f"{_STAR}{part}" if "(?" in part else f"(?>{_STAR}?{part})"
    return "".join([first, *rest[:-1], *(_STAR + part for part in rest[-1:])])


def _is_about_itself(found: re.Match[str], path: str) -> bool:
    """Return whether a match is about the path itself: pathspec also matches everything inside a matched folder."""
    mark = found.groupdict().get(_FOLDER_MARK)
    if mark is not None:
        return found.end(_FOLDER_MARK) == len(path)
    return found.end() < len(path) or not path.endswith("/")


def root_rules(settings: Settings, never: Iterable[str] = ()) -> Rules:
    """Return the rules at the root, before its ignore files; ``never`` are the paths of the store inside the folder."""
    return Rules("", (*settings.default_ignores, *settings.ignore), None, frozenset(never), settings.names)


def ignored_by(rules: Rules, path: str, *, is_folder: bool, texts: Mapping[str, Iterable[bytes]]) -> bool:
    """Return whether a path is ignored, given the texts of the ignore files by folder."""
    parts = path.split("/")
    folder = ""
    for depth, name in enumerate(parts):
        rules = rules.within(folder, texts.get(folder, ()))
        here = "/".join(parts[: depth + 1])
        if rules.ignores(here, name, is_folder=is_folder or depth < len(parts) - 1):
            return True
        folder = here
    return False
