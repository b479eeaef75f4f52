"""The extractive summary keeps what was decided, however often the conversation is compacted."""

from __future__ import annotations

import random

import pytest

import sessiontree as st
from known import present
from sessiontree.compaction.summarizers import extractive
from sessiontree.model.builders import message_of

NOISE = [
    "Let me look at the file first.",
    "The function always returns the first match and never the last one.",
    "Now it uses the theme instead of fixed colours.",
    "You must have a newer version of the package.",
    "We should run the tests again.",
    "Should we use Redis instead?",
]
ARGUMENTS = '{"command": "grep -rn TODO src", "note": "not yet done: rename the parser"}'
OPEN = "Still to do: describe the new format."


def generation(number: int, rng: random.Random) -> tuple[list[str], list[st.Payload]]:
    """Return three decisions, and a conversation in which they are said among other things."""
    decided = [
        f"Never store the key {number} in a file.",
        f"We decided to keep table {number} in PostgreSQL.",
        f"I'll go with option {number} instead of a new service.",
    ]
    said: list[st.Payload] = []
    for turn in range(12):
        spoken = [*rng.sample(NOISE, 3), *([decided[1 + turn // 6]] if turn in (3, 8) else [])]
        said += [
            st.user(f"Step {turn} of {number}: go on." + (f" {decided[0]}" if turn == 5 else "")),
            st.assistant(" ".join(rng.sample(NOISE, 2)), calls=[st.call(f"c{number}-{turn}", "bash", ARGUMENTS)]),
            st.tool_result(f"c{number}-{turn}", "FIXME left to do\n" * 20),
            st.assistant(" ".join(spoken)),
        ]
    return decided, said


@pytest.mark.parametrize("window", [20_000, 64_000])
def test_decisions_survive_ten_generations(window: int) -> None:
    rng = random.Random(3)
    policy = st.CompactionPolicy(window_tokens=window, keep_recent_messages=1, keep_user_tokens=0)
    decisions: list[str] = []
    with st.open("memory:") as journal:
        journal.create_thread("t")
        journal.append_many("t", [st.user("Port the service to Rust."), st.assistant(OPEN)])
        for number in range(10):
            decided, said = generation(number, rng)
            decisions += decided
            journal.append_many("t", said)
            summary = journal.compact("t", policy=policy, force=True).summary
            assert [one for one in decisions if one not in summary] == []
            assert "Port the service to Rust." in summary


def test_open_items_are_what_somebody_said_and_no_pieces_of_calls_and_results() -> None:
    _, said = generation(0, random.Random(3))
    request = st.SummaryRequest(
        kind="history",
        messages=tuple(present(message_of(payload)) for payload in (st.assistant(OPEN), *said)),
        max_tokens=2_000,
    )
    summary = extractive(request).text
    items = summary.partition("## Open items\n")[2].partition("\n\n")[0].splitlines()
    assert items == [f"- {OPEN}"]
