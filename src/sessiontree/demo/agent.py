"""A scripted agent in a process of its own. It is killed in the middle of a turn, as agents are."""

from __future__ import annotations

import os
import sys
from contextlib import suppress

import sessiontree as st

THREAD = "fix-the-login-test"
OWNER = "demo-agent"
QUESTION = "The login test fails since this morning. Find out why and mend it."


def work(store: str) -> None:
    """Half a turn: two tools are asked for at once, and the process dies between their answers."""
    with st.open(store) as journal:
        thread = journal.create_thread(id=THREAD, title="Fix the login test", model="demo-model")
        journal.append(thread.id, st.system("You are a careful programmer."))
        journal.append(thread.id, st.user(QUESTION))
        with journal.turn(thread.id, owner=OWNER) as turn:
            turn.append(
                st.assistant("I look at the test first.", calls=[st.call("c1", "read", '{"path":"test_login.py"}')])
            )
            turn.append(st.tool_result("c1", "assert login('ann', 'secret').ok", name="read"))
            turn.save_point("tool_result_batch")
            calls = [st.call("c2", "run", '{"command":"pytest"}'), st.call("c3", "read", '{"path":"login.py"}')]
            turn.append(st.assistant("Now both at once.", calls=calls))
            turn.append(st.tool_result("c2", "1 failed: KeyError 'ann'", name="run"))
            # Where the demo was interrupted nobody listens any more, and nobody wants to read about it.
            with suppress(BrokenPipeError):
                os.write(1, b"in the middle of a turn\n")
            sys.stdin.read()


if __name__ == "__main__":
    work(sys.argv[1])
