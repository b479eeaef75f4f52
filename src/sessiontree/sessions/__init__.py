"""Sessions: conversations by key, with states, timeouts, hooks and automatic compaction.

>>> import sessiontree as st
>>> key = st.SessionKey(agent="bot", channel="web", peer="ann")
>>> with st.open("memory:") as journal, SessionManager(journal) as manager:
...     _ = manager.add_message(key, st.user("hello"))
...     [message.text for message in manager.get_messages(key)], manager.info(key).state
(['hello'], 'active')

``SimpleStore`` and ``CheckpointedSessions`` are smaller interfaces, for programs that were written for them:

>>> with st.open("memory:") as journal:
...     store = SimpleStore(journal)
...     store.add_message("chat", "user", "hello")
...     store.add_message("chat", "assistant", "hi")
...     store.truncate_history("chat", 1)
...     truncated = [message.text for message in store.get_history("chat")]
...     store.undo("chat")
...     truncated, [message.text for message in store.get_history("chat")]
(['hi'], ['hello', 'hi'])

>>> with st.open("memory:") as journal:
...     sessions = CheckpointedSessions(journal)
...     _ = sessions.set_state("chat", [{"role": "user", "content": "hi"}], user_turns=1)
...     sessions.snapshot("chat", "chat-u1")
...     _ = sessions.set_state("chat", [], user_turns=2)
...     sessions.rewind("chat", "chat-u1").user_turns, journal.path("chat")[0].message.text
(1, 'hi')

The classes for asyncio are in the modules ``manager_async``, ``simple_store_async`` and ``checkpointed_async``, because
importing them imports asyncio. All of them are public names of :mod:`sessiontree`.
"""

from sessiontree.sessions.checkpointed import CheckpointedSessions
from sessiontree.sessions.config import AutoCompact
from sessiontree.sessions.expiry import Recovery, Sweep
from sessiontree.sessions.hooks import EndReason, Fault, Hook, HookPhase, Hooks, SessionEnd
from sessiontree.sessions.info import SessionFilter, SessionInfo, SessionPage, SessionStats
from sessiontree.sessions.keys import DirectScope, format_key, parse_key, route
from sessiontree.sessions.manager import Session, SessionManager
from sessiontree.sessions.simple_store import SimpleStore
from sessiontree.sessions.states import TRANSITIONS, Lifetimes, SessionState, can_transition

__all__ = [
    "TRANSITIONS",
    "AutoCompact",
    "CheckpointedSessions",
    "DirectScope",
    "EndReason",
    "Fault",
    "Hook",
    "HookPhase",
    "Hooks",
    "Lifetimes",
    "Recovery",
    "Session",
    "SessionEnd",
    "SessionFilter",
    "SessionInfo",
    "SessionManager",
    "SessionPage",
    "SessionState",
    "SessionStats",
    "SimpleStore",
    "Sweep",
    "can_transition",
    "format_key",
    "parse_key",
    "route",
]
