"""JSON as a tree of folds: the first two levels are open.

>>> json_tree('{"a": 1, "b": [true, null]}')
'<details class="j" open><summary>{ 2 keys</summary><div><b>"a"</b>: <span class="m">1</span></div><div><b>"b"</b>: <details class="j" open><summary>[ 2 items</summary><div><span class="k">true</span></div><div><span class="k">null</span></div></details></div></details>'
>>> json_tree("no JSON") is None
True
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sessiontree.model.tool_arguments import decode_arguments
from sessiontree.render.html.blocks import text

__all__ = ["json_tree"]


_WORDS = {True: "true", False: "false", None: "null"}
_OPEN = 2
_DEEPEST = 12
_MOST = 200
_LONGEST = 2_000


def json_tree(raw: str) -> str | None:
    """Return an object or an array as HTML; None for anything else."""
    value = decode_arguments(raw)
    return _shown(value, 0) if isinstance(value, dict | list) else None


def _shown(value: Any, depth: int) -> str:
    match value:
        case dict() | list() if value and depth < _DEEPEST:
            return _fold(value, depth)
        case dict():
            return "{ … }" if value else "{ }"
        case list():
            return "[ … ]" if value else "[ ]"
        case str():
            cut = "…" if len(value) > _LONGEST else ""
            return f'<span class="s">"{text(value[:_LONGEST])}{cut}"</span>'
        case bool() | None:
            return f'<span class="k">{_WORDS[value]}</span>'
        case _:
            return f'<span class="m">{text(str(value))}</span>'


def _fold(value: dict[str, Any] | list[Any], depth: int) -> str:
    count = len(value)
    if isinstance(value, dict):
        summary = f"{{ {count} {'key' if count == 1 else 'keys'}"
    else:
        summary = f"[ {count} {'item' if count == 1 else 'items'}"
    is_open = " open" if depth < _OPEN else ""
    more = f'<div class="c">… {count - _MOST} more</div>' if count > _MOST else ""
    return f'<details class="j"{is_open}><summary>{summary}</summary>{"".join(_rows(value, depth))}{more}</details>'


def _rows(value: dict[str, Any] | list[Any], depth: int) -> Iterator[str]:
    if isinstance(value, dict):
        for key in list(value)[:_MOST]:
            yield f'<div><b>"{text(key)}"</b>: {_shown(value[key], depth + 1)}</div>'
    else:
        for item in value[:_MOST]:
            yield f"<div>{_shown(item, depth + 1)}</div>"
