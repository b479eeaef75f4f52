"""The pages: one module each, which declares what it asks for, what it answers and how that looks.

To add one, write its module and add its ``PAGE`` here; an action goes into ``ACTIONS``.
"""

from __future__ import annotations

from typing import Any

from sessiontree.web.declare import Action, Page
from sessiontree.web.pages import compare, home, look_back, threads

__all__ = ["ACTIONS", "PAGES"]


PAGES: tuple[Page[Any, Any], ...] = (home.PAGE, threads.PAGE, look_back.PAGE, compare.PAGE)

ACTIONS: tuple[Action[Any, Any], ...] = ()
