"""The first text of a user on a path, and who may write titles."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from sessiontree.model import Entry, UserMessage
from sessiontree.model.titles import is_title_text

__all__ = ["Titler", "first_user_text"]


Titler = Callable[[str], str | Awaitable[str]]
"""Returns a title for the first message of the user; with an AsyncJournal it may be a coroutine function."""


def first_user_text(path: Sequence[Entry]) -> str:
    """Return the first user message that is not blank, a slash command, or a block that a host wrapped in a tag."""
    texts = (entry.payload.message.text.strip() for entry in path if isinstance(entry.payload, UserMessage))
    return next(filter(is_title_text, texts), "")
