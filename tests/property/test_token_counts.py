"""The count of a thread's tokens is that of its context, whatever happened to the thread."""

from __future__ import annotations

import json
import random
from contextlib import suppress

import pytest

import sessiontree as st
from property_settings import IS_DEEP

POLICY = st.CompactionPolicy(window_tokens=500, keep_recent_tokens=60, summary_tokens=50)
CHANGES = (
    "user", "user", "assistant", "tool", "call", "signal", "system", "developer", "branch", "custom", "replace", "compact",
    "uncompact", "rewind", "undo", "redo", "reset", "fork",
)  # fmt: skip
REFUSALS = (st.NothingToUncompactError, st.NothingToUndoError, st.NothingToRedoError)


def change(journal: st.Journal, thread: str, name: str, choose: random.Random, seen: list[str]) -> str:
    """Make a change and return the thread to go on with."""
    words = "wörds " * choose.randrange(40)
    match name:
        case "user" | "assistant" | "system" | "custom":
            contents: dict[str, st.Payload] = {
                "user": st.user(words or "x"),
                "assistant": st.assistant(words or "x"),
                "system": st.system(words or "x"),
                "custom": st.Custom(name="n", data=1),
            }
            journal.append(thread, contents[name])
        case "tool":
            journal.append_many(
                thread, [st.assistant("", calls=[st.call("c", "ls", "{}")]), st.tool_result("c", words)]
            )
        case "call":
            journal.append(thread, st.assistant(words, calls=[st.call("c", "ls", "{}"), st.call("d", "cat", words)]))
        case "signal":
            done = st.call("e", "task_complete", json.dumps({"output": words}))
            journal.append(thread, st.assistant("", calls=[done]))
        case "developer":
            role = {"openai": {"role": "developer"}}
            journal.append(thread, st.Message(role="system", parts=(st.TextPart(text=words),), extra=role))
        case "branch":
            journal.append(thread, st.user(words or "x"), parent=choose.choice(seen))
        case "replace":
            journal.replace_context(thread, "summary " + words, choose.randrange(3))
        case "compact":
            journal.compact(thread, lambda _: "notes", policy=POLICY, force=True)
        case "rewind":
            journal.rewind(thread, choose.choice(seen))
        case "fork":
            return journal.fork(thread).id
        case _:
            getattr(journal, name)(thread)
    return thread


@pytest.mark.parametrize("seed", range(400 if IS_DEEP else 30))
def test_a_thread_counts_what_the_model_sees(seed: int) -> None:
    choose = random.Random(seed)
    with st.open("memory:") as journal:
        thread = journal.create_thread(contents=[st.system("Be kind."), st.user("hello")]).id
        made: list[str] = []
        for _ in range(30):
            made.append(choose.choice(CHANGES))
            seen = [entry.id for entry in journal.entries(thread)]
            if made[-1] in {"branch", "rewind"} and not seen:
                continue
            with suppress(*REFUSALS):
                thread = change(journal, thread, made[-1], choose, seen)
            assert journal.thread(thread).tokens == journal.context(thread).estimate, made
