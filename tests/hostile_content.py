"""A thread with hostile text in every field of every type of entry, for tests of what is shown."""

from __future__ import annotations

import json

import sessiontree as st

__all__ = ["HOSTILE", "hostile_thread"]


HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "[x](javascript:alert(1)) ![x](http://evil.example/p.png) <javascript:alert(1)>",
    "<svg onload=alert(1)><style>*{display:none}</style>",
    "\x1b]52;c;cGFzcw==\x07\x1b[2J\x1b[31mred",
    "user\u202egnp.exe\u2066\u200b",
    "```html\n</code></pre><script>alert(1)</script>\n```",
    "</template></section></main><form action=//evil.example>",
]


def hostile_thread(journal: st.Journal, thread: str, hostile: str) -> list[st.Entry]:
    """Write the thread, one of whose branches was left, and return the entries of its path."""
    key = st.SessionKey(agent=hostile, channel=hostile)
    journal.create_thread(
        thread,
        title=hostile,
        tags=(hostile,),
        workspace=f"/{hostile}",
        model=hostile,
        key=key,
        origin={"tool": hostile},
    )
    parts = (
        st.TextPart(text=hostile),
        st.ImagePart(url="http://evil.example/x.png", mime=hostile),
        st.FilePart(name=hostile, mime=hostile, data="aGk="),
        st.OpaquePart(provider=hostile, block={"type": hostile, "text": hostile}),
    )
    usage = st.Usage(input_tokens=1, output_tokens=1, cost=1.0, currency=hostile)
    shell = st.call("c2", "bash", json.dumps({"command": hostile}))
    edit = json.dumps({"path": hostile, "old_string": hostile, "new_string": "x"})
    made = journal.append_many(
        thread,
        [
            st.user(hostile),
            st.Message(role="user", parts=parts),
            st.assistant(
                hostile,
                reasoning=hostile,
                model=hostile,
                calls=[st.call("c1", hostile, json.dumps({hostile: hostile}))],
            ),
            st.tool_result("c1", hostile, name=hostile, is_error=True),
            st.assistant("", calls=[shell, st.call("c3", "grep", hostile)]),
            st.tool_result("c2", hostile, name="bash"),
            st.tool_result("c3", f"{hostile}:12:{hostile}\na.py:1:{hostile}", name="grep"),
            st.assistant("", calls=[st.call("c4", "edit", edit)]),
            st.assistant("", calls=[st.call("c5", "read", json.dumps({"path": hostile}))]),
            st.tool_result("c5", f"1\t{hostile}", name="read"),
            st.tool_result("loose", hostile, name=hostile),
            st.RunFailure(error=hostile),
            st.ThreadInfo(text=hostile),
            st.Custom(name=hostile, data={hostile: hostile}, message=st.user(hostile).message),
            st.Checkpoint(root=hostile, label=hostile, files=2),
            st.TurnMarker(status="failed", reason=hostile),
            st.ModelChange(provider=hostile, model=hostile),
            st.ActiveToolsChange(tools=(hostile,)),
            st.BranchSummary(summary=hostile, files_read=(hostile,)),
            st.UsageReport(usage=usage, provider=hostile, model=hostile),
            st.Event(name=hostile, stream=hostile, data={hostile: hostile}),
            st.Memory(text=hostile, tags=(hostile,)),
            st.UnknownPayload(type="newer", body=json.dumps({"type": "newer", "text": hostile}).encode()),
            st.system(hostile),
            st.Compaction(summary=hostile, reason=hostile, trigger=hostile, files_read=(hostile,)),
            st.assistant(hostile, model=hostile),
        ],
    )
    journal.label(thread, made[0].id, hostile.replace("\x1b", "").replace("\x07", "")[:60])
    journal.rewind(thread, made[-2].id)
    journal.append(thread, st.assistant(f"another {hostile}"))
    return journal.path(thread)
