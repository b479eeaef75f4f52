"""Small plots out of characters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

__all__ = ["bars", "sparkline"]

_LEVELS = "▁▂▃▄▅▆▇█"
_ASCII_LEVELS = "_.-=+*%#"


def bars(counts: Mapping[str, int], width: int, *, is_ascii: bool = False) -> Iterator[str]:
    """A bar for each name, the longest one filling the width.

    >>> list(bars({"read": 4, "write": 2}, 20))
    ['read   ██████████ 4', 'write  █████ 2']
    """
    if not counts:
        return
    names = max(map(len, counts))
    room = max(4, width - names - 4)
    most = max(*counts.values(), 1)
    for name, count in counts.items():
        bar = ("#" if is_ascii else "█") * max(1, round(room * count / most) - 1) if count else ""
        yield f"{name:<{names}}  {bar} {count}"


def sparkline(values: Sequence[int], *, is_ascii: bool = False) -> str:
    """One character a value.

    >>> sparkline([1, 4, 8])
    '▁▄█'
    """
    levels = _ASCII_LEVELS if is_ascii else _LEVELS
    most = max(*values, 1) if len(values) > 1 else max(values[0], 1)
    return "".join(levels[max(0, -(-len(levels) * value // most) - 1)] for value in values)
