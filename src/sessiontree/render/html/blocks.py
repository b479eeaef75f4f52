"""Pieces of a page: text that is escaped, Markdown, code in colours, diffs, folds.

Every text from a conversation goes through ``text`` or the Markdown renderer.
"""

from __future__ import annotations

import re
from functools import cache
from html import escape
from typing import Any

from sessiontree.model import ImagePart
from sessiontree.model.sanitize import for_terminal, without_controls
from sessiontree.render.changes import Change

__all__ = ["code", "diff", "fold", "image", "markdown", "preformatted", "text"]


_LONGEST_MARKDOWN = 200_000
_LONGEST_LINE = 20_000
_LONGEST_COLOURED = 50_000
_LONGEST_COLOURED_LINE = 1_000
"""Some languages are read at a cost that is the square of the longest line."""
_IMAGE_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
_ALIGNMENT = re.compile(r' style="text-align:\w+"')
_BASE64 = re.compile(r"[A-Za-z0-9+/=\s]*")


def text(raw: str) -> str:
    """Text escaped for use inside an element or a quoted attribute."""
    return escape(without_controls(for_terminal(raw)), quote=True)


def markdown(raw: str) -> str:
    """Markdown as HTML, without raw HTML, images and script links; a very long text as preformatted text."""
    clean = for_terminal(raw)
    if len(clean) > _LONGEST_MARKDOWN or any(len(line) > _LONGEST_LINE for line in clean.splitlines()):
        return f"<pre>{escape(clean)}</pre>"
    # The policy allows no inline styles. Quotes in text are escaped, so this can only match an attribute.
    return _ALIGNMENT.sub("", str(_renderer().render(clean)))


def preformatted(raw: str) -> str:
    """Preformatted text; the lines of a diff are coloured."""
    clean = text(raw)
    if "\n@@ " not in "\n" + raw[:5000]:
        return f"<pre>{clean}</pre>"
    return "<pre>" + "".join(map(_diff_line, clean.splitlines())) + "</pre>"


def fold(summary: str, body: str) -> str:
    """A collapsed block with a summary line."""
    return f"<details><summary>{summary}</summary>{body}</details>"


def image(part: ImagePart) -> str:
    """Show inline images only: loading one from elsewhere would tell its host who reads the page."""
    if part.data and part.mime in _IMAGE_TYPES and _BASE64.fullmatch(part.data):
        return f'<img alt="image" src="data:{part.mime};base64,{part.data}">'
    return f"<p>[image {text(part.url or part.mime)}]</p>"


def _diff_line(line: str) -> str:
    is_heading = line.startswith(("+++", "---", "@@", "diff "))
    kind = "at" if is_heading else {"+": "add", "-": "del"}.get(line[:1])
    return f'<span class="{kind}">{line}</span>' if kind else f"{line}\n"


@cache
def _renderer() -> Any:
    from markdown_it import MarkdownIt  # noqa: PLC0415  slow to load

    renderer = MarkdownIt("commonmark", {"html": False, "highlight": lambda said, name, _: _coloured(said, name)})
    renderer.enable(["table", "strikethrough"])
    renderer.disable(["image", "html_inline", "html_block"])
    renderer.validateLink = lambda url: url.lower().startswith(("http://", "https://", "mailto:", "#"))  # type: ignore[method-assign]
    return renderer


def code(raw: str, name: str = "") -> str:
    """Preformatted text with the colours of its language, which the name of a file or of the language tells."""
    return f"<pre>{_coloured(for_terminal(raw), name) or text(raw)}</pre>"


def diff(change: Change, limit: int) -> str:
    """The lines that a call changes."""
    styles = {"+": "add", "-": "del", " ": "same"}
    lines = [f'<span class="{styles[sign]}">{sign}{text(said)}</span>' for sign, said in change.lines[:limit]]
    more = len(change.lines) - limit
    lines += [f'<span class="at">… {more} more lines</span>'] if more > 0 else []
    return f'<pre class="diff">{"".join(lines)}</pre>' if lines else ""


def _coloured(clean: str, name: str) -> str:
    """Code with a span for each token; "" if the language is not known, so that the text is only escaped."""
    is_short = len(clean) <= _LONGEST_COLOURED and all(
        len(line) <= _LONGEST_COLOURED_LINE for line in clean.split("\n")
    )
    lexer = _lexer(name) if name and is_short else None
    if lexer is None:
        return ""
    from pygments.token import STANDARD_TYPES  # noqa: PLC0415  slow to load

    pieces = []
    for token, said in lexer.get_tokens(clean):
        kind = STANDARD_TYPES.get(token, "")[:1]
        pieces.append(f'<span class="{kind}">{text(said)}</span>' if kind in {"k", "s", "c", "m"} else text(said))
    return "".join(pieces)


@cache
def _lexer(name: str) -> Any:
    from pygments.lexers import find_lexer_class_by_name, find_lexer_class_for_filename  # noqa: PLC0415  slow to load
    from pygments.util import ClassNotFound  # noqa: PLC0415

    word = name.split(maxsplit=1)[0].rsplit("/", maxsplit=1)[-1]
    try:
        found = find_lexer_class_for_filename(word) if "." in word else find_lexer_class_by_name(word)
    except ClassNotFound:
        return None
    return found(stripnl=False, ensurenl=False) if found is not None else None
