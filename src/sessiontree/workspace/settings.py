"""What a snapshot takes and what it leaves out."""

from __future__ import annotations

from typing import Literal

from sessiontree.model.record import Record

__all__ = ["DEFAULT_IGNORES", "OWN_FOLDER", "Conflicts", "Settings"]

OWN_FOLDER = ".sessiontree"
"""Kept inside every workspace: the stat cache, the lock, and a restore that is under way."""

DEFAULT_IGNORES = (
    "node_modules/", ".venv/", "venv/", ".virtualenv/", "__pycache__/", "*.pyc", ".mypy_cache/", ".pytest_cache/",
    ".ruff_cache/", ".hypothesis/", ".tox/", ".nox/", ".cache/", ".gradle/", ".terraform/", ".next/", ".nuxt/",
    ".parcel-cache/", ".turbo/", ".svn/", ".hg/", ".DS_Store", "Thumbs.db",
)  # fmt: skip
"""Rebuilt by tools, never written by hand. ``!name`` in a ``.sessiontreeignore`` takes one back."""

Conflicts = Literal["stop", "force", "keep_mine"]
"""What a restore does where it would overwrite somebody else's work: refuse, overwrite, or leave those paths alone."""

_MIB = 1024 * 1024


class Settings(Record, frozen=True, kw_only=True):
    """``ignore`` holds patterns in .gitignore form, on top of the files in the folder and the defaults.

    ``names="portable"`` refuses, on every system, names that could not exist on a case-insensitive one.
    """

    max_file_bytes: int = 100 * _MIB
    max_total_bytes: int = 4096 * _MIB
    ignore: tuple[str, ...] = ()
    default_ignores: tuple[str, ...] = DEFAULT_IGNORES
    names: Literal["native", "portable"] = "native"
