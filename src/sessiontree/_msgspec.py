"""Loads msgspec without typing_extensions.

msgspec prefers typing_extensions where it is installed. From Python 3.11 on it gets nothing from there that typing does
not have, and loading it takes longer than loading all of sessiontree.
"""

from __future__ import annotations

import sys

__all__: list[str] = []

_NAME = "typing_extensions"

if "msgspec" not in sys.modules and _NAME not in sys.modules:
    sys.modules[_NAME] = None  # type: ignore[assignment]
    try:
        import msgspec  # noqa: F401
    finally:
        del sys.modules[_NAME]
