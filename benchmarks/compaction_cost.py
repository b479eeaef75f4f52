"""What compaction costs beside the model: planning, installing, reading the context; and a message through a manager.

Run: python benchmarks/compaction_cost.py
"""

import tempfile
import time
from pathlib import Path

import sessiontree as st
from sessiontree.compaction.plan import plan
from sessiontree.sessions import SessionManager

POLICY = st.CompactionPolicy(window_tokens=200_000)


def main():
    with tempfile.TemporaryDirectory() as folder:
        for rounds in (200, 2_000):
            compaction(Path(folder) / f"{rounds}.db", rounds)
        messages(Path(folder) / "manager.db", sessions=200, each=10)


def compaction(file, rounds):
    with st.open(file, durability="process_crash") as journal:
        journal.create_thread("t")
        for start in range(0, rounds, 200):
            journal.append_many("t", [payload for n in range(start, start + 200) for payload in round_of(n)])
        path = journal.path("t")
        planning = seconds(lambda: plan(path, POLICY))
        before = seconds(lambda: journal.context("t"))
        compacting = seconds(lambda: journal.compact("t", lambda _: "notes", policy=POLICY))
        after = seconds(lambda: journal.context("t"))
        print(
            f"{len(path):>7} entries: plan {planning * 1e3:8.1f} ms, compact without a model {compacting * 1e3:8.1f} ms, "
            f"context {before * 1e3:8.1f} ms before, {after * 1e3:8.1f} ms after"
        )


def round_of(number):
    return [
        st.user(f"question {number} " + "word " * 40),
        st.assistant(calls=[st.call(f"c{number}", "read_file", f'{{"path": "src/a{number}.py"}}')]),
        st.tool_result(f"c{number}", "content " * 60),
        st.assistant("answer " * 30),
    ]


def messages(file, sessions, each):
    keys = [st.SessionKey(agent="bot", channel="web", peer=str(number)) for number in range(sessions)]
    with st.open(file) as journal, SessionManager(journal) as manager:
        managed = seconds(lambda: [manager.add_message(key, st.user("x" * 1_000)) for _ in range(each) for key in keys])
        threads = [manager.get(key).thread_id for key in keys]
        plain = seconds(lambda: [journal.append(t, st.user("x" * 1_000)) for _ in range(each) for t in threads])
    count = sessions * each
    print(f"message through a manager: {count / managed:7.0f}/s; journal.append alone: {count / plain:7.0f}/s")


def seconds(work):
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
