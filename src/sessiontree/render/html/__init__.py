"""Render a conversation as one self-contained HTML page: no script, no request, all foreign text escaped.

The page has the prompts as its contents, a map of the branches, and the active path from top to bottom: each tool call
with its result, edits as diffs, failures in red. Other branches are folded at the entry where they start.
"""

from sessiontree.render.html.blocks import fold, markdown, preformatted, text
from sessiontree.render.html.page import PageContent, render_html
from sessiontree.render.html.style import POLICY, STYLE

__all__ = ["POLICY", "STYLE", "PageContent", "fold", "markdown", "preformatted", "render_html", "text"]
