"""Sizes that people write as the value of an option."""

from __future__ import annotations

import re

from sessiontree.cli.exit_codes import UsageError

__all__ = ["size_in_bytes"]


_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)b?\s*", re.IGNORECASE)
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}


def size_in_bytes(option: str, text: str) -> int:
    """Parse the value of an option, with decimal units as they are shown.

    >>> size_in_bytes("--max-size", "1.5 GB"), size_in_bytes("--max-size", "200k")
    (1500000000, 200000)
    """
    found = _SIZE.fullmatch(text)
    if found is None:
        raise UsageError(f"“{text}” is not a size for {option}; write it as 500MB or 2GB.")
    return int(float(found[1]) * 1000 ** _POWERS[found[2].lower()])
