"""One HTML file for a conversation: no script, no request to anywhere, everything foreign escaped."""

from sessiontree.html.page import Conversation, render_html

__all__ = ["Conversation", "render_html"]
