"""Sessions in the native files of other tools, so that a conversation goes on there.

``native_session`` turns what the model sees of a thread into files with new ids; ``continue_in`` puts them where the tool
looks for them and checks them. Each tool has a module with ``make(conversation)``.

>>> import sessiontree as st
>>> with st.open("memory:") as journal:
...     thread = journal.create_thread("t", workspace="/home/me/shop")
...     _ = journal.append("t", st.user("hello"))
...     session = native_session(journal, "t", "claude-code", session_id="11111111-2222-4333-8444-555555555555")
...     (next(iter(session.files)), session.command)
('projects/-home-me-shop/11111111-2222-4333-8444-555555555555.jsonl', ('claude', '--resume', '11111111-2222-4333-8444-555555555555'))
"""

from __future__ import annotations

from sessiontree.transfer.native.conversation import Conversation, NativeSession, Said
from sessiontree.transfer.native.place import TOOLS, continue_in, native_session

__all__ = ["TOOLS", "Conversation", "NativeSession", "Said", "continue_in", "native_session"]
