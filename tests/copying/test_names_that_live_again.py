"""Copies of stores in which the names of deleted threads live again, interrupted at every commit."""

import pytest

import sessiontree as st
from sessiontree.testing import ManualClock
from stores import FailingStore, Interrupted

STORIES = {
    "an heir takes the name": "create a, append a 1, fork a b 1, delete a, fork b a 1",
    "the heir's heir takes the name": (
        "create a, append a 1, append a 2, fork a c 2, delete a, fork c a 2, fork c b 1, delete c"
    ),
    "two roots in a deleted thread": (
        "create b, append b 1, reset b, append b 2, fork b a 1, append a 3, fork a d 3, delete a, fork b a 2, delete b"
    ),
    "names in a ring": (
        "create d, append d 0, fork d b 0, append b 1, fork b a 1, append a 2, delete b, fork a b 2, append b 3, delete d,"
        " fork b d 3, delete b, fork a b 1, delete a, fork d a 0"
    ),
    "the same moment": "create b, append b 1, fork b a 1, delete b, create b",
    "two lives": (
        "create h, append h 1, fork h g 1, delete h, append g 2, fork g h 2, append h 3, fork h p 3, delete h, fork p h 3"
    ),
}


def play(journal: st.Journal, story: str) -> None:
    for line in story.split(", "):
        verb, name, *rest = line.split()
        match verb:
            case "create":
                journal.create_thread(name)
            case "append":
                journal.append(name, st.user(rest[0]), id=rest[0])
            case "fork":
                journal.fork(name, at=rest[1], new_id=rest[0])
            case "reset":
                journal.reset(name)
            case "delete":
                journal.delete_thread(name)


def shown(journal: st.Journal) -> dict[str, object]:
    threads = {thread.id: thread for thread in journal.list_threads(is_archived=None)}
    return {name: (thread, journal.entries(name), journal.path(name)) for name, thread in threads.items()}


@pytest.mark.parametrize("story", STORIES.values(), ids=STORIES.keys())
def test_a_copy_is_whole_wherever_it_was_interrupted(story: str) -> None:
    with st.open("memory:", clock=ManualClock()) as source:
        play(source, story)
        commits, is_done = 0, False
        while not is_done:
            with st.open("memory:") as target:
                try:
                    st.copy_store(source, st.Journal(FailingStore(target.store, commits)))
                    is_done = True
                except Interrupted:
                    commits += 1
                report = st.copy_store(source, target)
                assert shown(target) == shown(source)
                assert target.check() == []
                assert st.copy_store(source, target) == st.CopyReport(threads=report.threads, entries=report.entries)
        assert commits > 3
