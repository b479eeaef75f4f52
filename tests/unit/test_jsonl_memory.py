"""What a loaded JSONL conversation costs the program around it."""

import gc
from pathlib import Path

import sessiontree as st

ENTRIES = 5_000


def references_that_the_collector_follows() -> int:
    gc.collect()
    return sum(len(gc.get_referents(thing)) for thing in gc.get_objects())


def test_the_garbage_collector_does_not_walk_over_the_entries_of_a_loaded_conversation(tmp_path: Path) -> None:
    address = f"jsonl:///{tmp_path}/journal"
    with st.open(address) as journal:
        journal.append_many("chat", [st.user(f"message {number}") for number in range(ENTRIES)], create=True)
    with st.open(address) as journal:
        before = references_that_the_collector_follows()
        leaf = journal.thread("chat").leaf
        assert journal.children("chat", leaf) == []
        journal.append("chat", st.user("one more"))
        assert [child.parent for child in journal.children("chat", leaf)] == [leaf]
        grown = references_that_the_collector_follows() - before
    assert grown < ENTRIES / 5
