"""HTML that is safe by construction: text is escaped unless it is ``Html``.

>>> tag("a", "x < y", class_="th", href="/t/1?a=1&b=2", aria_current=True, hidden=False)
'<a class="th" href="/t/1?a=1&amp;b=2" aria-current="true">x &lt; y</a>'
>>> tag("br"), tag("li", None, [Html("<b>1</b>"), 2])
('<br>', '<li><b>1</b>2</li>')
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from sessiontree.model.sanitize import for_terminal
from sessiontree.render.html import text

__all__ = ["Child", "Html", "document", "icon", "join", "tag"]


class Html(str):
    """Markup that may stand in a page as it is."""

    __slots__ = ()


Child = str | int | float | None | Iterable["Child"]
"""What an element may contain: markup, text, numbers, nothing, or several of them."""

_VOID = frozenset({"br", "hr", "img", "input", "link", "meta", "source"})
_READ = frozenset({"alt", "data-t", "data-title", "placeholder", "title"})
_BARE = frozenset({"hidden", "open", "checked", "disabled", "autofocus", "required", "selected", "async", "defer"})


def tag(name: str, /, *children: Child, **attributes: str | float | bool | None) -> Html:
    """Return an element. ``class_`` is the attribute class, ``aria_label`` is aria-label; None and False are left out."""
    pieces = [f"<{name}"]
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        attribute = key.rstrip("_").replace("_", "-")
        if value is True and attribute in _BARE:
            pieces.append(f" {attribute}")
        else:
            pieces.append(f' {attribute}="{"true" if value is True else _value(attribute, str(value))}"')
    pieces.append(">")
    if name not in _VOID:
        pieces += [join(*children), f"</{name}>"]
    return Html("".join(pieces))


def join(*children: Child) -> Html:
    """Return children one after the other."""
    pieces: list[str] = []
    for child in children:
        match child:
            case Html():
                pieces.append(child)
            case str():
                pieces.append(text(child))
            case int() | float():
                pieces.append(str(child))
            case None:
                pass
            case _:
                pieces.append(join(*child))
    return Html("".join(pieces))


def icon(name: str, *, is_small: bool = False) -> Html:
    """Return an icon, which takes the colour of the text around it."""
    return Html(f'<i class="i{" sm" if is_small else ""} i-{name}"></i>')


def document(*children: Child) -> bytes:
    """Return a whole document."""
    return ("<!doctype html>\n" + join(*children)).encode()


def _value(attribute: str, value: str) -> str:
    """Addresses and values of forms keep their bytes; what a reader sees or hears is cleaned of control characters."""
    is_read = attribute in _READ or attribute.startswith("aria-")
    return escape(for_terminal(value) if is_read else value, quote=True)
