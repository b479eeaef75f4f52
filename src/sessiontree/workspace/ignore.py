"""Ignore rules: .gitignore and .sessiontreeignore in every folder, on top of the defaults.

The nearest folder decides; within it .sessiontreeignore comes before .gitignore, and in a file the last line that
matches. A folder that is ignored is not entered, as in git.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from functools import cached_property

from pathspec import GitIgnoreSpec

from sessiontree.workspace.settings import OWN_FOLDER, Settings

__all__ = ["IGNORE_FILES", "Rules", "ignored_by", "root_rules"]

IGNORE_FILES = (".gitignore", ".sessiontreeignore")
"""Weakest first."""

_NEVER_AT_ROOT = frozenset({OWN_FOLDER})
_NEVER_ANYWHERE = frozenset({".git"})


class Rules:
    """The rules in force inside one folder; ``fingerprint`` changes whenever a decision could."""

    def __init__(self, prefix: str, lines: Iterable[str], above: Rules | None, never: frozenset[str]) -> None:
        self._prefix = prefix
        self._lines = tuple(lines)
        self._above = above
        self._never = never
        digest = hashlib.sha256("\n".join((prefix, *self._lines)).encode("utf-8", "surrogateescape"))
        digest.update(repr(sorted(never)).encode("utf-8", "surrogateescape"))
        self.fingerprint: bytes = hashlib.sha256((above.fingerprint if above else b"") + digest.digest()).digest()

    def within(self, folder: str, texts: Iterable[bytes]) -> Rules:
        """The rules inside a subfolder, whose ignore files hold these texts, weakest first."""
        lines = [line for text in texts for line in text.decode("utf-8", "surrogateescape").splitlines()]
        return Rules(folder + "/" if folder else "", lines, self, self._never) if lines else self

    def ignores(self, path: str, name: str, *, is_folder: bool) -> bool:
        if name in _NEVER_ANYWHERE or path in _NEVER_AT_ROOT or path in self._never:
            return True
        return self._verdict(path + "/" if is_folder else path) is True

    def _verdict(self, path: str) -> bool | None:
        verdict = self._spec.check_file(path[len(self._prefix) :]).include
        if verdict is None and self._above is not None:
            return self._above._verdict(path)  # noqa: SLF001  the same class
        return verdict

    @cached_property
    def _spec(self) -> GitIgnoreSpec:
        return GitIgnoreSpec.from_lines(self._lines)


def root_rules(settings: Settings, never: Iterable[str] = ()) -> Rules:
    """The rules before any file in the folder is read; ``never`` are paths of the store, if it is in the folder."""
    return Rules("", (*settings.default_ignores, *settings.ignore), None, frozenset(never))


def ignored_by(rules: Rules, path: str, *, is_folder: bool, texts_in: Callable[[str], Iterable[bytes]]) -> bool:
    """Whether a path is ignored when the ignore files are those that ``texts_in`` gives for a folder."""
    parts = path.split("/")
    folder = ""
    for depth, name in enumerate(parts):
        rules = rules.within(folder, texts_in(folder))
        here = "/".join(parts[: depth + 1])
        if rules.ignores(here, name, is_folder=is_folder or depth < len(parts) - 1):
            return True
        folder = here
    return False
