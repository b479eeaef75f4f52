"""Durable conversation trees for LLM agents: append, fork, rewind, compact, resume.

>>> import sessiontree as st
>>> with st.open("memory:") as journal:
...     thread = journal.create_thread(title="demo")
...     _ = journal.append(thread.id, st.user("hello"))
...     with journal.turn(thread.id, owner="worker-1") as turn:
...         _ = turn.append(st.assistant("hi"))
...     [message.text for message in journal.context(thread.id).messages]
['hello', 'hi']
"""

from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from sessiontree import errors, model
from sessiontree.codec import content_hash
from sessiontree.context import Context, Segment, build_context
from sessiontree.errors import *  # noqa: F403
from sessiontree.journal import Journal
from sessiontree.messages import assistant, call, system, tool_result, user
from sessiontree.model import *  # noqa: F403
from sessiontree.opening import open, open_async  # noqa: A004  `st.open` reads as what it does
from sessiontree.operations.entries import NewEntry
from sessiontree.operations.turns import Resumption
from sessiontree.queries import Finding, StoreStats
from sessiontree.search import Hit, SearchPage, Snippet
from sessiontree.tokens import estimate_message, estimate_text

if TYPE_CHECKING:
    from sessiontree.async_journal import AsyncJournal

__version__ = "0.1.0"

__all__ = [
    "UNSET",
    "AsyncJournal",
    "Context",
    "Finding",
    "Hit",
    "Journal",
    "NewEntry",
    "Resumption",
    "SearchPage",
    "Segment",
    "Snippet",
    "StoreStats",
    "assistant",
    "build_context",
    "call",
    "content_hash",
    "estimate_message",
    "estimate_text",
    "open",
    "open_async",
    "system",
    "tool_result",
    "user",
    *errors.__all__,
    *model.__all__,
]


def __getattr__(name: str) -> Any:
    """AsyncJournal on first use: asyncio costs more to import than everything else together."""
    if name == "AsyncJournal":
        from sessiontree.async_journal import AsyncJournal  # noqa: PLC0415

        return AsyncJournal
    raise AttributeError(f"module 'sessiontree' has no attribute {name!r}")
