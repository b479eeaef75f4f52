"""The edge of a pane that can be dragged."""

from __future__ import annotations

from sessiontree.web.markup import Html, tag

__all__ = ["grip"]


def grip(name: str, words: str, width: int) -> Html:
    """Return the edge of a pane; ``panes.js`` moves it and knows the width that this browser keeps."""
    return tag(
        "div",
        class_="grip",
        data_grip=name,
        role="separator",
        tabindex=0,
        aria_orientation="vertical",
        aria_label=words,
        aria_valuenow=width,
        aria_valuemin=180,
        aria_valuemax=640,
        title="Drag, or use the arrow keys",
    )
