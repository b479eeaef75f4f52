"""A context that was read without the summarised part is that of the whole path, whatever was written, undone or erased."""

from __future__ import annotations

from random import Random

import pytest

import sessiontree as st
from sessiontree.compaction.plan import plan
from sessiontree.journal.operations import windows
from sessiontree.model import ActiveToolsChange, Label, ModelChange
from sessiontree.testing.clock import ManualClock, seeded_random

POLICY = st.CompactionPolicy(window_tokens=8_000)
THREAD = "t"


def step(journal: st.Journal, random: Random, number: int) -> None:
    """Do something that agents, users or programs do."""
    name, path = f"c{random.randrange(8)}", journal.path(THREAD)
    match random.choices(range(13), weights=(8, 8, 5, 5, 3, 2, 2, 1, 3, 1, 1, 1, 1))[0]:
        case 0:
            journal.append(THREAD, st.user(f"question {number} " * random.randrange(1, 30)))
        case 1:
            model = random.choice(["", "model-a", "model-b"])
            journal.append(THREAD, st.assistant(f"answer {number} " * random.randrange(1, 30), model=model))
        case 2:
            journal.append(THREAD, st.assistant(calls=[st.call(name, "read", "{}")]))
        case 3:
            journal.append(THREAD, st.tool_result(name, f"content {number} " * random.randrange(1, 60)))
        case 4:
            journal.append(THREAD, st.system(f"prompt {number}"))
        case 5:
            journal.append(THREAD, ModelChange(provider="p", model=f"model-{number}"))
        case 6:
            journal.append(THREAD, ActiveToolsChange(tools=(f"tool-{number}",)))
        case 7 if path:
            journal.append(THREAD, Label(target=path[0].id, label=f"label {number}"))
        case 8:
            journal.compact(THREAD, lambda _: f"summary {number}", policy=POLICY, force=True)
        case 9 if any(entry.type == "compaction" for entry in path):
            try:
                journal.uncompact(THREAD)
            except st.NothingToUncompactError:
                return
        case 10 if path:
            journal.rewind(THREAD, random.choice(path).id)
        case 11 if path:
            journal.erase(THREAD, [random.choice(path).id])
        case 12 if path:
            journal.replace_context(THREAD, f"written summary {number}", random.randrange(3))


@pytest.mark.parametrize("seed", range(12))
def test_a_context_without_what_was_summarised_is_the_same(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(windows, "_FIRST_READ", 3)
    random = Random(seed)
    with st.open("memory:", clock=ManualClock(), random=seeded_random(seed)) as journal:
        journal.create_thread(THREAD)
        for number in range(60):
            step(journal, random, number)
            path, needed = journal.path(THREAD), journal.run(windows.read_window(THREAD))
            assert st.build_context(needed) == st.build_context(path)
            assert plan(needed, POLICY) == plan(path, POLICY)


def test_a_long_conversation_is_not_read_again_after_its_compaction() -> None:
    with st.open("memory:") as journal:
        journal.create_thread(THREAD)
        journal.append_many(THREAD, [st.user(f"question {number}") for number in range(5_000)])
        journal.compact(THREAD, lambda _: "summary", policy=POLICY, force=True)
        journal.append(THREAD, st.assistant("answer"))
        assert len(journal.run(windows.read_window(THREAD))) < 600
