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

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sessiontree.public import *  # noqa: F403
    from sessiontree.public import __all__ as __all__

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """Public names come on first use, all together: a command that needs few modules does not wait for the rest."""
        return getattr(import_module("sessiontree.public"), name)

    def __dir__() -> list[str]:
        return sorted({*globals(), *import_module("sessiontree.public").__all__})


__version__ = "0.1.0"
