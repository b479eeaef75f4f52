"""Pages of a thread, whatever else is in the store: beside others, among many others, and in a fork."""

from __future__ import annotations

from pathlib import Path

import pytest

import sessiontree as st


def pages(journal: st.Journal, thread: str, limit: int) -> list[str]:
    found: list[str] = []
    while page := journal.entries(thread, after=found[-1] if found else None, limit=limit):
        found += [entry.id for entry in page]
    return found


@pytest.mark.parametrize("others", [0, 1, 40])
def test_pages_hold_every_entry_once(tmp_path: Path, others: int) -> None:
    with st.open(tmp_path / "journal.db", durability="process_crash") as journal:
        for at in range(9):
            journal.append("t", st.user(f"mine {at}"), create=True)
            for other in range(others):
                journal.append(f"other {other}", st.user("theirs"), create=True)
        middle = journal.path("t")[5].id
        journal.fork("t", at=middle, new_id="fork")
        journal.append_many("fork", [st.user(f"fork {at}") for at in range(5)])
        for thread in ("t", "fork"):
            everything = [entry.id for entry in journal.entries(thread)]
            for limit in (1, 2, 3, 100):
                assert pages(journal, thread, limit) == everything
