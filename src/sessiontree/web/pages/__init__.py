"""The pages: one module each, which declares what it asks for, what it answers and how that looks.

To add one, write its module and add its ``PAGE`` here; an action goes into ``ACTIONS``.
"""

from __future__ import annotations

from typing import Any

from sessiontree.web.declare import Action, Page
from sessiontree.web.pages import (
    actions,
    compare,
    context,
    facets,
    files,
    home,
    look_back,
    preview,
    search,
    thread,
    threads,
    windows,
)

__all__ = ["ACTIONS", "PAGES"]


PAGES: tuple[Page[Any, Any], ...] = (
    compare.PAGE,
    context.PAGE,
    facets.PAGE,
    files.PAGE,
    home.PAGE,
    look_back.PAGE,
    preview.PAGE,
    search.HITS,
    search.PAGE,
    thread.PAGE,
    threads.PAGE,
    windows.ENTRIES,
    windows.ENTRY,
    windows.NEXT,
    windows.PROMPTS,
    windows.TREE,
)

ACTIONS: tuple[Action[Any, Any], ...] = actions.ACTIONS
