"""Modules that are loaded when something of them is asked for, be it by a call or by whoever reads the annotations.

>>> fractions = Later("fractions")
>>> fractions.Fraction(1, 2)
Fraction(1, 2)
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__all__ = ["Later"]


class Later:
    """Stands in for a module that is slow to import, or that imports this one."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self._name), name)

    def __repr__(self) -> str:
        return f"Later({self._name!r})"
